// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "messages/invariant.hpp"

namespace signalbox::sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// The memory that the parent and the workers share.
struct Board {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> passed{0};
  std::atomic<std::size_t> failed{0};
};

// Waits for SIGCHLD. The signal is blocked otherwise, so that no end of a child is missed.
class ChildEnds {
 public:
  ChildEnds() {
    sigemptyset(&ends_);
    sigaddset(&ends_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends_, &before_);
  }

  ~ChildEnds() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  ChildEnds(const ChildEnds&) = delete;
  ChildEnds& operator=(const ChildEnds&) = delete;

  /// Waits for a second, or until a child ends.
  void wait_a_second() const {
    const timespec second{1, 0};
    sigtimedwait(&ends_, nullptr, &second);
  }

 private:
  sigset_t ends_{};
  sigset_t before_{};
};

struct Worker {
  pid_t process = -1;
  // The number of the worker's present job, in shared memory.
  std::atomic<std::size_t>* job = nullptr;
};

template <typename T>
T* shared() {
  void* memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SIGNALBOX_INVARIANT(memory != MAP_FAILED, "there is a page to share");
  return new (memory) T();
}

class Pool {
 public:
  Pool(std::size_t count, const std::function<bool(std::size_t)>& job)
      : count_(count), job_(job), board_(shared<Board>()) {}

  ~Pool() {
    for (const Worker& worker : workers_)
      munmap(worker.job, sizeof *worker.job);
    munmap(board_, sizeof *board_);
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void start() { start(workers_.emplace_back(Worker{-1, shared<std::atomic<std::size_t>>()})); }

  // Reaps workers that have ended, and replaces those that crashed. False: no worker is left.
  bool reap(const std::function<void(std::size_t, const std::string&)>& crashed);

  Tally tally() const { return {board_->passed, board_->failed}; }

 private:
  void start(Worker& worker);
  [[noreturn]] void work(const Worker& worker);

  std::size_t count_;
  const std::function<bool(std::size_t)>& job_;
  Board* board_;
  std::vector<Worker> workers_;
};

void Pool::start(Worker& worker) {
  std::cout.flush();
  worker.process = fork();
  SIGNALBOX_INVARIANT(worker.process >= 0, "a process can be forked");
  if (worker.process == 0) work(worker);
}

void Pool::work(const Worker& worker) {
  for (std::size_t job = board_->next++; job < count_; job = board_->next++) {
    *worker.job = job;
    ++(job_(job) ? board_->passed : board_->failed);
  }
  std::cout.flush();
  _exit(0);  // The parent's destructors must not run here.
}

bool Pool::reap(const std::function<void(std::size_t, const std::string&)>& crashed) {
  bool any = false;
  for (Worker& worker : workers_) {
    if (worker.process < 0) continue;
    int status = 0;
    const pid_t ended = waitpid(worker.process, &status, WNOHANG);
    if (ended == worker.process) {
      worker.process = -1;
      if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
        ++board_->failed;
        crashed(*worker.job, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exited");
        start(worker);
      }
    }
    any = any || worker.process >= 0;
  }
  return any;
}

void tell_progress(const Tally& tally, std::size_t count, Clock::duration spent) {
  const std::size_t done = tally.passed + tally.failed;
  const double seconds_spent = std::chrono::duration<double>(spent).count();
  const double rest = seconds_spent / static_cast<double>(std::max<std::size_t>(done, 1)) *
                      static_cast<double>(count - std::min(done, count));
  std::fprintf(stderr,
               "%zu of %zu seeds, %zu failed; about %.0f s to go\n",
               done,
               count,
               tally.failed,
               rest);
}

}  // namespace

Tally run_jobs(std::size_t count,
               std::size_t processes,
               const std::function<bool(std::size_t)>& job,
               const std::function<void(std::size_t, const std::string& how)>& crashed) {
  constexpr auto kBetweenReports = seconds(5);
  const ChildEnds ends;
  Pool pool(count, job);
  for (std::size_t i = 0; i < std::min(count, processes); ++i)
    pool.start();
  const auto begin = Clock::now();
  auto report = begin + kBetweenReports;
  while (pool.reap(crashed)) {
    ends.wait_a_second();
    if (Clock::now() < report) continue;
    report += kBetweenReports;
    tell_progress(pool.tally(), count, Clock::now() - begin);
  }
  return pool.tally();
}

}  // namespace signalbox::sim
