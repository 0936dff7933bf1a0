// SPDX-License-Identifier: Apache-2.0
//
// signalbox_nightly_client: a program that embeds signalbox, for the parts S13, S14 and S16 to S18.
//
//   a line on stdin ─▶ [client] ─▶ a line of JSON on stdout
//                         ├─ calls at a steady rate, by a drop-in channel for each target
//                         ├─ picks, by a router for each target
//                         └─ admin pages
//
//   counts              what became of the calls
//   mark                the same; "begun", "kept" and "moved" count from here on
//   rate NUMBER         calls a second from now on, to all targets together
//   picks SECONDS       times picks of the first target
//   pick [COOKIE]       one pick of the first target, with this cookie header
//   crowd NUMBER        so many calls to the first target at once
//   watch TARGET        uses another target from now on, without calls
//
// The first line of stdout has the address of the admin pages. SIGTERM and the end of stdin stop
// new calls. The process ends when the calls in flight have ended, with a last line of counts. Exit
// status: 0 it ended so, 1 signalbox did not start, 2 wrong arguments.
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <CLI/CLI.hpp>
#include <grpcpp/client_context.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "signalbox/runtime.hpp"
#include "tests/nightly/ledger.hpp"
#include "tools/child_process.hpp"
#include "tools/proto/orders.grpc.pb.h"
#include "tools/stop_signals.hpp"

namespace signalbox::nightly {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using Stub = demo::v1::Orders::Stub;

constexpr const char* kMethod = "/signalbox.demo.v1.Orders/Place";
constexpr int kPicksAtOnce = 1'000;
// With --max-endpoints the other limits have room for so many endpoints, and for little more.
constexpr std::size_t kMostBytesOfEndpoint = 400;
constexpr std::size_t kMostMemoryOfEndpoint = 2'000;

struct Options {
  std::string bootstrap;
  std::vector<std::string> targets;
  std::string admin = "127.0.0.1:0";
  std::string cookie;    // The cookie header of every call; empty: none.
  std::string key_file;  // Of sealed cookies; empty: cookies are plain.
  std::size_t sessions = 0;
  double rate = 0;
  double deadline_seconds = 20;
  bool is_assumed = false;        // Every endpoint counts as connected; for picks without backends.
  std::size_t max_endpoints = 0;  // Of a cluster; 0: signalbox's own limits.
};

struct Call {
  Ticket ticket;
  grpc::ClientContext context;
  demo::v1::PlaceRequest request;
  demo::v1::PlaceReply reply;
};

std::string set_cookie_of(const grpc::ClientContext& context) {
  const auto& headers = context.GetServerInitialMetadata();
  const auto found = headers.find("set-cookie");
  return found == headers.end() ? "" : std::string(found->second.data(), found->second.size());
}

// The calls to all targets in turn, at a rate that may change.
class Load {
 public:
  Load(const Options& options, Runtime& runtime)
      : options_(options), ledger_(options.sessions), rate_(options.rate) {
    for (const std::string& target : options.targets)
      stubs_.push_back(demo::v1::Orders::NewStub(runtime.channel(target)));
    thread_ = std::thread([this] { run(); });
  }

  ~Load() { stop(); }

  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void set_rate(double rate) {
    const std::lock_guard lock(mutex_);
    rate_ = rate;
    news_.notify_all();
  }

  void crowd(int calls) {
    for (int i = 0; i < calls; ++i)
      call(*stubs_.front());
  }

  // No call begins from now on. Returns when all calls have ended.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      news_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    ledger_.wait_for_all();
  }

  Json counts() const { return ledger_.counts(); }

  Json mark() { return ledger_.mark(); }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    auto due = Clock::now();
    for (std::size_t turn = 0; !is_ending_; ++turn) {
      if (rate_ <= 0) {
        news_.wait(lock);
        due = Clock::now();
        continue;
      }
      due += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate_));
      if (news_.wait_until(lock, due, [this] { return is_ending_ || rate_ <= 0; })) continue;
      lock.unlock();
      call(*stubs_[turn % stubs_.size()]);
      lock.lock();
    }
  }

  void call(Stub& stub) {
    auto ticket = ledger_.begin();
    if (!ticket) return;
    auto* const call = new Call;
    call->ticket = *std::move(ticket);
    // The monotonic clock: a step of the wall clock between two readings would move the deadline.
    call->context.set_deadline(gpr_time_add(
        gpr_now(GPR_CLOCK_MONOTONIC),
        gpr_time_from_millis(static_cast<std::int64_t>(1e3 * options_.deadline_seconds),
                             GPR_TIMESPAN)));
    const std::string& cookie =
        options_.cookie.empty() ? call->ticket.session.cookie : options_.cookie;
    if (!cookie.empty()) call->context.AddMetadata("cookie", cookie);
    stub.async()->Place(
        &call->context, &call->request, &call->reply, [this, call](const grpc::Status& status) {
          const std::unique_ptr<Call> owned(call);
          ledger_.end(owned->ticket,
                      {.status = status,
                       .backend = owned->reply.backend(),
                       .set_cookie = status.ok() ? set_cookie_of(owned->context) : ""});
        });
  }

  const Options& options_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  Ledger ledger_;
  std::mutex mutex_;
  std::condition_variable news_;
  double rate_;             // Guarded by mutex_.
  bool is_ending_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

struct CookieHeader : HeaderSource {
  explicit CookieHeader(std::string header) : cookie(std::move(header)) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override {
    if (name == "cookie" && !cookie.empty()) visit(cookie);
  }

  const std::string cookie;
};

Json pick_once(const Router& router, const std::string& cookie) {
  const CookieHeader headers(cookie);
  const Pick pick = router.pick_until({.path = kMethod, .headers = &headers, .seed = next_seed()},
                                      Clock::now() + std::chrono::seconds(20),
                                      OnFail::kWait);
  if (pick.outcome() != PickOutcome::kComplete)
    return {{"error", std::string(pick.status().message())}};
  return {{"address", pick.connection()->address().str()},
          {"set_cookie", std::string(pick.set_cookie())}};
}

// Counts durations in buckets. A bucket is as wide as a sixteenth of its lower bound. The memory
// does not grow with the number of durations, because the client's memory is judged, too.
class Durations {
 public:
  void add(std::int64_t ns) {
    ++counts_[bucket_of(static_cast<std::uint64_t>(ns))];
    ++total_;
  }

  std::uint64_t total() const { return total_; }

  /// The lower bound of the bucket in which `percent` of the durations end.
  std::uint64_t at(std::uint64_t percent) const {
    std::uint64_t left = total_ * percent / 100;
    std::size_t bucket = 0;
    while (bucket + 1 < counts_.size() && counts_[bucket] <= left)
      left -= counts_[bucket++];
    const std::size_t shift = bucket / kSteps;
    return shift == 0 ? bucket : (kSteps + bucket % kSteps) << (shift - 1);
  }

 private:
  static constexpr std::uint64_t kSteps = 16;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < kSteps) return ns;
    const auto shift = static_cast<std::uint64_t>(std::bit_width(ns)) - 5;
    return (shift + 1) * kSteps + (ns >> shift) - kSteps;
  }

  std::array<std::uint64_t, 61 * kSteps> counts_{};
  std::uint64_t total_ = 0;
};

// The picks come in bursts with pauses, so that they leave the processor to the calls.
Json time_picks(const Router& router, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  Durations times;
  std::int64_t unserved = 0;
  while (Clock::now() < end) {
    for (int i = 0; i < kPicksAtOnce; ++i) {
      const auto before = Clock::now();
      const Pick pick = router.pick({.path = kMethod, .seed = next_seed()});
      times.add((Clock::now() - before).count());
      if (pick.outcome() != PickOutcome::kComplete) ++unserved;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {{"picks", times.total()},
          {"unserved", unserved},
          {"p50_ns", times.at(50)},
          {"p99_ns", times.at(99)}};
}

class Client {
 public:
  Client(const Options& options, Runtime& runtime, const Router& router)
      : runtime_(runtime), router_(router), load_(options, runtime) {}

  Json answer(const std::string& line) {
    const auto space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    double number = 0;
    const bool is_number = absl::SimpleAtod(rest, &number);
    if (word == "counts") return load_.counts();
    if (word == "mark") return load_.mark();
    if (word == "pick") return pick_once(router_, rest);
    if (word == "picks" && is_number) return time_picks(router_, number);
    if (word == "rate" && is_number) {
      load_.set_rate(number);
      return {{"rate", number}};
    }
    if (word == "crowd" && is_number) {
      load_.crowd(static_cast<int>(number));
      return {{"crowd", number}};
    }
    if (word == "watch") {
      auto watched = runtime_.router(rest);
      if (!watched.ok()) return {{"error", std::string(watched.status().message())}};
      watched_.push_back(*std::move(watched));
      return {{"watch", rest}};
    }
    return {{"error", absl::StrCat("there is no command '", line, "'")}};
  }

  Json finish() {
    load_.stop();
    return load_.counts();
  }

 private:
  Runtime& runtime_;
  const Router& router_;
  std::vector<std::shared_ptr<Router>> watched_;
  Load load_;
};

void say(const Json& json) {
  std::cout << json.dump() << "\n" << std::flush;
}

// Answers lines until stdin ends or a signal comes.
void serve(Client& client) {
  const int stop = tools::open_stop_descriptor();
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) return;
    if (fds[0].revents == 0) continue;
    const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (size <= 0) return;
    text.append(bytes.data(), static_cast<std::size_t>(size));
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      say(client.answer(text.substr(0, end)));
      text.erase(0, end + 1);
    }
  }
}

int fail(const absl::Status& status) {
  std::cerr << "signalbox_nightly_client: " << status.message() << "\n";
  return 1;
}

int run_client(const Options& chosen) {
  RuntimeOptions options;
  options.bootstrap_path = chosen.bootstrap;
  options.log_level = LogLevel::kInfo;
  if (chosen.is_assumed) options.transport = EndpointTransport::kAssumed;
  if (chosen.max_endpoints > 0) {
    options.limits.max_endpoints = chosen.max_endpoints;
    options.limits.max_message_bytes = kMostBytesOfEndpoint * chosen.max_endpoints;
    options.limits.max_decoded_memory = kMostMemoryOfEndpoint * chosen.max_endpoints;
  }
  if (!chosen.key_file.empty()) options.session_cookies.key_file = chosen.key_file;
  auto runtime = Runtime::start(std::move(options));
  if (!runtime.ok()) return fail(runtime.status());
  const auto admin = (*runtime)->serve_admin(chosen.admin);
  if (!admin.ok()) return fail(admin.status());
  const auto router = (*runtime)->router(chosen.targets.front());
  if (!router.ok()) return fail(router.status());
  Client client(chosen, **runtime, **router);
  say({{"admin", *admin}, {"pid", ::getpid()}});
  serve(client);
  say(client.finish());
  return 0;
}

int run(int argc, char** argv) {
  tools::die_with_parent(::getppid());
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  CLI::App app{"A program that embeds signalbox; tests/nightly starts it.",
               "signalbox_nightly_client"};
  Options options;
  app.add_option("--bootstrap", options.bootstrap)->required();
  app.add_option("--target", options.targets)->required();
  app.add_option("--admin", options.admin)->capture_default_str();
  app.add_option("--cookie", options.cookie);
  app.add_option("--keys", options.key_file);
  app.add_option("--sessions", options.sessions)->capture_default_str();
  app.add_option("--rate", options.rate)->capture_default_str();
  app.add_option("--deadline", options.deadline_seconds)->capture_default_str();
  app.add_flag("--assumed", options.is_assumed);
  app.add_option("--max-endpoints", options.max_endpoints)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run_client(options);
}

}  // namespace
}  // namespace signalbox::nightly

int main(int argc, char** argv) {
  signalbox::tools::block_stop_signals();
  // A write beyond the limit of a file's size is an error then.
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    return signalbox::nightly::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "signalbox_nightly_client: " << error.what() << "\n";
    return 1;
  }
}
