// SPDX-License-Identifier: Apache-2.0
#include "channel/check_options.hpp"

#include <chrono>
#include <functional>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::channel {
namespace {

using namespace std::chrono_literals;

TEST_CASE("check_options: what is set to nothing is right", "[channel][options]") {
  CHECK(check_options({}).ok());
  RuntimeOptions zero;
  zero.resource_timeout = zero.failover_timeout = zero.lost_backoff = 0ns;
  zero.scheduler_threads = 1;
  CHECK(check_options(zero).ok());
}

TEST_CASE("check_options: an option that cannot be meant is refused by its name",
          "[channel][options]") {
  struct Row {
    std::function<void(RuntimeOptions&)> set;
    std::string text;
  };

  const std::string negative = ": must not be negative, found -1.5 s";
  const auto row = GENERATE_COPY(values<Row>({
      {[](auto& it) { it.resource_timeout = -1500ms; }, "resource_timeout" + negative},
      {[](auto& it) { it.failover_timeout = -1500ms; }, "failover_timeout" + negative},
      {[](auto& it) { it.initial_backoff = -1500ms; }, "initial_backoff" + negative},
      {[](auto& it) { it.max_backoff = -1500ms; }, "max_backoff" + negative},
      {[](auto& it) { it.lost_backoff = -1500ms; }, "lost_backoff" + negative},
      {[](auto& it) { it.connection_attempt_delay = -1500ms; },
       "connection_attempt_delay" + negative},
      {[](auto& it) { it.keepalive_time = -1500ms; }, "keepalive_time" + negative},
      {[](auto& it) { it.keepalive_timeout = -1500ms; }, "keepalive_timeout" + negative},
      {[](auto& it) { it.xds_keepalive_time = -1500ms; }, "xds_keepalive_time" + negative},
      {[](auto& it) { it.resource_timeout = -1ns; },
       "resource_timeout: must not be negative, found -1e-09 s"},
      {[](auto& it) { it.scheduler_threads = 0; },
       "scheduler_threads: must be at least 1, found 0"},
      {[](auto& it) { it.bootstrap_path = it.bootstrap_json = ""; },
       "bootstrap_path, bootstrap_json: only one of them may be set, found both"},
      {[](auto& it) { it.panic_threshold = 101; },
       "panic_threshold: must be at most 100 (percent), found 101"},
      {[](auto& it) { it.max_connections_per_endpoint = 0; },
       "max_connections_per_endpoint: must be 1 to 64, found 0"},
      {[](auto& it) { it.max_connections_per_endpoint = 65; },
       "max_connections_per_endpoint: must be 1 to 64, found 65"},
      {[](auto& it) { it.streams_per_connection = 0; },
       "streams_per_connection: must be at least 1, found 0"},
      {[](auto& it) { it.record = RecordOptions{.path = ""}; }, "record.path: must not be empty"},
      {[](auto& it) { it.record = RecordOptions{.path = "f", .max_bytes = 1}; },
       "record.max_bytes: must be at least 1048576 (1 MiB), found 1"},
      {[](auto& it) { it.record = RecordOptions{.path = "f", .max_bytes = (4ULL << 30U) + 1}; },
       "record.max_bytes: must be at most 4294967296 (4 GiB), because `signalbox replay` reads "
       "files of at most 2 GiB, found 4294967297"},
      {[](auto& it) { it.retry_throttling = RetryThrottling{.max_tokens = 0}; },
       "retry_throttling.max_tokens: must be more than 0 and at most 1000, found 0"},
  }));
  RuntimeOptions options;
  row.set(options);
  const absl::Status status = check_options(options);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()) == "RuntimeOptions::" + row.text);
  // Runtime::start() checks the options before it reads the bootstrap.
  const auto runtime = Runtime::start(options);
  CHECK(runtime.status() == status);
}

TEST_CASE("check_options: the longest durations mean a century", "[channel][options]") {
  RuntimeOptions options;
  options.failover_timeout = std::chrono::nanoseconds::max();
  options.resource_timeout = 36'525 * 24h + 1ns;
  options.keepalive_time = std::chrono::nanoseconds::max();
  options.max_backoff = 36'525 * 24h - 1ns;
  const RuntimeOptions lowered = bounded(options);
  CHECK(lowered.failover_timeout == 36'525 * 24h);
  CHECK(lowered.resource_timeout == 36'525 * 24h);
  CHECK(lowered.keepalive_time == 36'525 * 24h);
  CHECK(lowered.max_backoff == options.max_backoff);
  CHECK(bounded({}).keepalive_time == std::nullopt);
}

}  // namespace
}  // namespace signalbox::channel
