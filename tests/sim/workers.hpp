// SPDX-License-Identifier: Apache-2.0
//
// workers — runs many seeds in several worker processes. A seed that crashes ends only its own
// worker.
//
//   jobs ─▶ [run_jobs]: forked workers take the next job ─▶ passed, failed, crashed; progress
//
// Call it before the process has threads, because it forks.

#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace signalbox::sim {

struct Tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
};

/// Runs job(0) … job(count - 1) in at most `processes` workers. A job returns whether it passed.
/// `crashed` is called with each job that ended its worker, and with the way it ended. Progress
/// goes to stderr.
Tally run_jobs(std::size_t count,
               std::size_t processes,
               const std::function<bool(std::size_t)>& job,
               const std::function<void(std::size_t, const std::string& how)>& crashed);

}  // namespace signalbox::sim
