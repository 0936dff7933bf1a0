// SPDX-License-Identifier: Apache-2.0
//
// signalbox_stress — calls of all kinds race with their cancellation, their deadlines, new
// configurations, dying backends, and the end of channels and runtimes.
//
//   signalbox_stress --seconds N [--seed S] [--slack-seconds S]
//
// Exit status 0: every rule held (ledger.hpp, picks.hpp). The seed decides the plan, but not how
// the threads interleave.

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "tests/stress/calls.hpp"
#include "tests/stress/picks.hpp"
#include "tests/stress/world.hpp"

namespace signalbox::stress {
namespace {

struct Options {
  int seconds = 10;
  std::uint64_t seed = std::random_device()();
  int slack_seconds = 30;
};

constexpr std::size_t kOpenCalls = 48;

class Stress {
 public:
  explicit Stress(const Options& options);

  /// True if no rule was broken and all calls have ended.
  bool run();

 private:
  template <typename Work>
  void add_thread(Work work);

  void make_room() const;
  void call_async(Random& random, Api api, grpc::CompletionQueue& queue);
  void call_short_queues(Random& random);
  void watch_state(Random& random);
  void start_threads();
  bool wait_for_calls();
  void pause(milliseconds time);
  void tell() const;

  const Options options_;
  Random random_;
  Ledger ledger_;
  Canceller canceller_;
  const Means means_{ledger_, canceller_};
  World world_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<PickUser>> pick_users_;
  std::atomic<bool> ending_{false};
  std::mutex pause_mutex_;
  std::condition_variable never_;
  std::vector<std::thread> threads_;
};

Stress::Stress(const Options& options)
    : options_(options),
      random_(options.seed),
      ledger_(std::chrono::seconds(options.slack_seconds)),
      world_(ledger_, random_()) {}

// Starts a thread that repeats `work(random)` until the end.
template <typename Work>
void Stress::add_thread(Work work) {
  threads_.emplace_back([this, work, random = Random(random_())]() mutable {
    while (!ending_)
      work(random);
  });
}

// Threads that start asynchronous calls wait here while too many calls are open; open calls end by
// themselves.
void Stress::make_room() const {
  while (!ending_ && ledger_.open() > kOpenCalls)
    ledger_.wait_for_room(kOpenCalls);
}

void Stress::call_async(Random& random, Api api, grpc::CompletionQueue& queue) {
  make_room();
  start_async(means_, world_.channel(random), draw_plan(random, api), queue);
}

// Uses completion queues that are shut down while their calls wait or run.
void Stress::call_short_queues(Random& random) {
  make_room();
  grpc::CompletionQueue queue;
  for (int i = below(random, 4); i >= 0; --i) {
    Plan plan = draw_plan(random, one_in(random, 2) ? Api::kAsync : Api::kGenericAsync);
    plan.shape = Shape::kUnary;
    start_async(means_, world_.channel(random), plan, queue);
  }
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok))
    static_cast<AsyncCall*>(tag)->proceed(ok);
}

void Stress::watch_state(Random& random) {
  const ChannelPtr channel = world_.channel(random);
  const auto soon = std::chrono::system_clock::now() + milliseconds(below(random, 20));
  const grpc_connectivity_state state = channel->GetState(one_in(random, 2));
  if (one_in(random, 2)) {
    channel->WaitForStateChange(state, soon);
    return;
  }
  grpc::CompletionQueue queue;
  channel->NotifyOnStateChange(state, soon, &queue, this);
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok) || tag != this) ledger_.report("a state watch has no end");
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

void Stress::start_threads() {
  for (int i = 0; i < 3; ++i) {
    add_thread([this](Random& random) {
      run_sync(means_, world_.channel(random), draw_plan(random, Api::kSync));
    });
  }
  add_thread([this](Random& random) { call_async(random, Api::kAsync, queue_); });
  add_thread([this](Random& random) { call_async(random, Api::kGenericAsync, queue_); });
  add_thread([this](Random& random) { call_short_queues(random); });
  for (const Api api : {Api::kCallback, Api::kGenericCallback}) {
    add_thread([this, api](Random& random) {
      make_room();
      start_callback(means_, world_.channel(random), draw_plan(random, api));
    });
  }
  add_thread([this](Random& random) { watch_state(random); });
  for (int i = 0; i < 2; ++i) {
    auto& user = *pick_users_.emplace_back(std::make_unique<PickUser>(ledger_, random_()));
    add_thread([this, &user](Random& random) {
      for (int call = 0; call < 32; ++call)
        user.call(world_.router(random));
      pause(milliseconds(below(random, 5)));
    });
  }
}

bool Stress::wait_for_calls() {
  while (ledger_.open() != 0) {
    if (ledger_.find_overdue()) return false;
    ledger_.wait_for_room(0);
  }
  return true;
}

void Stress::pause(milliseconds time) {
  std::unique_lock lock(pause_mutex_);
  never_.wait_for(lock, time);
}

void Stress::tell() const {
  for (const std::string& sentence : ledger_.broken())
    std::cout << "broke: " << sentence << '\n';
  std::cout << ledger_.totals() << world_.totals() << std::flush;
}

bool Stress::run() {
  start_threads();
  std::thread pump([this] {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok))
      static_cast<AsyncCall*>(tag)->proceed(ok);
  });
  const auto end = Clock::now() + std::chrono::seconds(options_.seconds);
  bool in_time = true;
  while (in_time && Clock::now() < end) {
    world_.disturb();
    pause(milliseconds(below(random_, 30)));
    in_time = !ledger_.find_overdue();
  }
  ending_ = true;
  if (in_time && wait_for_calls()) {
    for (std::thread& thread : threads_)
      thread.join();
    in_time = wait_for_calls();
  } else {
    in_time = false;
  }
  if (!in_time) {
    // Threads may hang in calls that have not ended, so an orderly shutdown is impossible.
    tell();
    std::_Exit(1);
  }
  queue_.Shutdown();
  pump.join();
  world_.end_runtimes();
  for (const auto& user : pick_users_)
    user->finish();
  world_.check_counters();
  tell();
  return ledger_.broken().empty();
}

int run(const Options& options) {
  std::cout << "signalbox_stress --seconds " << options.seconds << " --seed " << options.seed
            << std::endl;
  const auto stress = std::make_unique<Stress>(options);
  const bool good = stress->run();
  std::cout << (good ? "passed" : "failed") << std::endl;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace signalbox::stress

int main(int argc, char** argv) {
  signalbox::stress::Options options;
  CLI::App app{"Races calls of all APIs with whatever can happen to them."};
  app.add_option("--seconds", options.seconds, "how long")->capture_default_str();
  app.add_option("--seed", options.seed, "of the plan; else a random one");
  app.add_option("--slack-seconds", options.slack_seconds, "how late a call may end")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return signalbox::stress::run(options);
}
