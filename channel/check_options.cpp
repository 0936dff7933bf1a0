// SPDX-License-Identifier: Apache-2.0
#include "channel/check_options.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/strings/str_cat.h"

#include "actors/io/connection_arguments.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "messages/century.hpp"
#include "messages/header_rules.hpp"

namespace signalbox::channel {

absl::Status check_authority(const std::string& authority) {
  if (is_header_value(":authority", authority)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the default authority: ", unprintable_in(authority)));
}

namespace {

absl::Status wrong(absl::string_view option, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("RuntimeOptions::", option, ": ", why));
}

absl::Status check_bootstrap(const RuntimeOptions& options) {
  if (!options.bootstrap_path || !options.bootstrap_json) return absl::OkStatus();
  return wrong("bootstrap_path, bootstrap_json", "only one of them may be set, found both");
}

absl::Status check_log(const RuntimeOptions& options) {
  if (!options.log || !options.log_line) return absl::OkStatus();
  return wrong("log, log_line", "only one of them may be set, found both");
}

template <typename Options, typename Visit>
void visit_durations(Options& options, const Visit& visit) {
  visit("resource_timeout", options.resource_timeout);
  visit("failover_timeout", options.failover_timeout);
  visit("initial_backoff", options.initial_backoff);
  visit("max_backoff", options.max_backoff);
  visit("lost_backoff", options.lost_backoff);
  visit("connection_attempt_delay", options.connection_attempt_delay);
  if (options.keepalive_time) visit("keepalive_time", *options.keepalive_time);
  visit("keepalive_timeout", options.keepalive_timeout);
  visit("xds_keepalive_time", options.xds_keepalive_time);
}

absl::Status check_durations(const RuntimeOptions& options) {
  absl::Status valid;
  visit_durations(options, [&](const char* name, std::chrono::nanoseconds duration) {
    if (duration >= std::chrono::nanoseconds::zero()) return;
    const std::chrono::duration<double> seconds = duration;
    valid.Update(wrong(name, absl::StrCat("must not be negative, found ", seconds.count(), " s")));
  });
  return valid;
}

absl::Status check_throttling(const std::optional<RetryThrottling>& throttling) {
  if (!throttling) return absl::OkStatus();
  const auto check = [](const char* name, double value) -> absl::Status {
    if (value > 0 && value <= 1000) return absl::OkStatus();
    return wrong(absl::StrCat("retry_throttling.", name),
                 absl::StrCat("must be more than 0 and at most 1000, found ", value));
  };
  absl::Status status = check("max_tokens", throttling->max_tokens);
  status.Update(check("token_ratio", throttling->token_ratio));
  return status;
}

absl::Status check_channel_arguments(const grpc::ChannelArguments& arguments) {
  absl::Status status = actors::check_arguments(arguments);
  status.Update(check_authority(actors::default_authority(arguments)));
  return status.ok() ? status : wrong("channel_arguments", status.message());
}

absl::Status check_panic_threshold(std::uint32_t percent) {
  if (percent <= 100) return absl::OkStatus();
  return wrong("panic_threshold", absl::StrCat("must be at most 100 (percent), found ", percent));
}

absl::Status check_connections(const RuntimeOptions& options) {
  const std::uint32_t most = options.max_connections_per_endpoint;
  if (most < 1 || most > lb::StreamLanes::kMost) {
    return wrong("max_connections_per_endpoint",
                 absl::StrCat("must be 1 to ", lb::StreamLanes::kMost, ", found ", most));
  }
  if (options.streams_per_connection == 0U)
    return wrong("streams_per_connection", "must be at least 1, found 0");
  return absl::OkStatus();
}

absl::Status check_record(const std::optional<RecordOptions>& record) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20U;
  // Two files of 2 GiB, the most that `signalbox replay` reads of a file.
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30U;
  if (!record) return absl::OkStatus();
  if (record->path.empty()) return wrong("record.path", "must not be empty");
  if (record->max_bytes < kLeast) {
    return wrong("record.max_bytes",
                 absl::StrCat("must be at least 1048576 (1 MiB), found ", record->max_bytes));
  }
  if (record->max_bytes > kMost) {
    return wrong(
        "record.max_bytes",
        absl::StrCat("must be at most 4294967296 (4 GiB), because `signalbox replay` reads "
                     "files of at most 2 GiB, found ",
                     record->max_bytes));
  }
  return absl::OkStatus();
}

absl::Status check_threads(std::size_t threads) {
  if (threads > 0) return absl::OkStatus();
  return wrong("scheduler_threads", "must be at least 1, found 0");
}

}  // namespace

absl::Status check_options(const RuntimeOptions& options) {
  absl::Status valid = check_bootstrap(options);
  valid.Update(check_log(options));
  valid.Update(check_durations(options));
  valid.Update(check_throttling(options.retry_throttling));
  valid.Update(check_panic_threshold(options.panic_threshold));
  valid.Update(check_connections(options));
  valid.Update(check_channel_arguments(options.channel_arguments));
  valid.Update(check_threads(options.scheduler_threads));
  valid.Update(check_record(options.record));
  return valid;
}

RuntimeOptions bounded(RuntimeOptions options) {
  visit_durations(options, [](const char*, std::chrono::nanoseconds& duration) {
    duration = std::min<std::chrono::nanoseconds>(duration, kCentury);
  });
  return options;
}

}  // namespace signalbox::channel
