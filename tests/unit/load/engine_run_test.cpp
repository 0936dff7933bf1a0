// SPDX-License-Identifier: Apache-2.0
#include "tools/load/engine_run.hpp"

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

using namespace std::chrono_literals;

// An engine without a network. Calls end when they are sent: every third one fails, and the others
// reach two endpoints in turn.
class PretendedEngine final : public OpenLoop {
 public:
  using OpenLoop::OpenLoop;

  ~PretendedEngine() override { thread_.join(); }

  PretendedEngine(const PretendedEngine&) = delete;
  PretendedEngine& operator=(const PretendedEngine&) = delete;

  std::chrono::nanoseconds own_cpu() const override { return 0ns; }

 private:
  void launch() override {
    thread_ = std::thread([this] { run(); });
  }

  void run() {
    for (std::uint64_t number = 0;; ++number) {
      const auto due = next_due();
      if (!due) break;
      while (Clock::now() < *due)
        std::this_thread::yield();
      const auto begun = begin(*due, number);
      EndedCall ended = ended_call(*begun, number % 3 == 2 ? 14 : 0);
      if (ended.code == 0)
        ended.endpoint = endpoint_of(number % 3 == 0 ? "ipv4:127.0.0.1:1" : "ipv4:127.0.0.1:2");
      else
        ended.message = message_of("code 14", "gone");
      record(ended);
      leave(ended.is_closed_loop);
    }
    note_all_sent();
  }

  std::thread thread_;
};

CallPlan thirty_calls() {
  return {.call_timeout = 60s,
          .profile = {{.from = 1000, .to = 1000}},
          .arrivals = Arrivals::kEven,
          .duration = 30'500us};
}

}  // namespace

TEST_CASE("engine_run: every call comes once, with its names and instants", "[load][engine]") {
  const auto begin = EngineRun::Clock::now();
  std::map<std::string, int> answered;
  std::map<std::string, int> failed;
  std::size_t sent = 0;
  std::size_t ended = 0;
  std::promise<void> all_ended;
  bool is_in_order = true;
  EngineRun run(std::make_unique<PretendedEngine>(thirty_calls()),
                begin,
                [&](const EngineRun& one, const OpenLoop::Drained& drained) {
                  sent += drained.sent.size();
                  for (const EndedCall& call : drained.ended) {
                    const NamedCall named = one.named(call);
                    is_in_order = is_in_order && begin < named.due && named.due <= named.sent &&
                                  named.sent <= named.ended;
                    ++(named.ok ? answered[named.address] : failed[named.message]);
                  }
                  const bool had_all = ended == 30;
                  ended += drained.ended.size();
                  if (ended == 30 && !had_all) all_ended.set_value();
                });
  // finish() stops the engine, so the test first waits until all calls have ended.
  CHECK(all_ended.get_future().wait_for(60s) == std::future_status::ready);
  CHECK(run.finish());
  CHECK(sent == 30);
  CHECK(is_in_order);
  CHECK(answered == std::map<std::string, int>{{"127.0.0.1:1", 10}, {"127.0.0.1:2", 10}});
  CHECK(failed == std::map<std::string, int>{{"code 14: gone", 10}});
  CHECK(run.messages() == std::map<std::string, std::uint64_t>{{"code 14: gone", 10}});
}

}  // namespace signalbox::tools
