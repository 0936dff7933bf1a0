// SPDX-License-Identifier: Apache-2.0
#include "actors/log_events.hpp"

#include <array>
#include <chrono>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "messages/overloaded.hpp"

namespace signalbox::actors {
namespace {

// The most errors of a response that a line shows. Further errors are only counted.
constexpr std::size_t kMostErrors = 4;

const char* reason_text(FailoverReason reason) {
  constexpr std::array kTexts{"the one before failed",
                              "the one before did not connect in time",
                              "it has recovered",
                              "the configuration changed"};
  return kTexts[static_cast<std::size_t>(reason)];
}

const char* method_text(DetectionMethod method) {
  return method == DetectionMethod::kSuccessRate ? "success_rate" : "failure_percentage";
}

std::optional<LogLine> line_of_priority(const PriorityActive& seen) {
  // A line is written only when no priority carries calls any more. If no priority has carried
  // calls yet, there is nothing to warn of.
  if (seen.priority >= 0 || !seen.before) return std::nullopt;
  return LogLine{LogLevel::kWarning,
                 LogKind::kPriority,
                 absl::StrCat("cluster ",
                              seen.cluster.str(),
                              ": no priority can take calls any more; the last one was ",
                              *seen.before)};
}

LogLine line_of_failover(const FailedOver& seen) {
  const bool is_down = seen.direction == FailoverDirection::kDown;
  return {is_down ? LogLevel::kWarning : LogLevel::kInfo,
          LogKind::kPriority,
          absl::StrCat("cluster ",
                       seen.cluster.str(),
                       ": calls go to a ",
                       is_down ? "lower" : "higher",
                       " priority: ",
                       reason_text(seen.reason))};
}

LogLine line_of_end(const FailoverEnded& seen) {
  return {LogLevel::kInfo,
          LogKind::kPriority,
          absl::StrFormat("cluster %s: a priority can take calls again, after %.3f s without one",
                          seen.cluster.str(),
                          std::chrono::duration<double>(seen.duration).count())};
}

std::optional<LogLine> line_of_outliers(const OutliersDetected& seen) {
  if (seen.outcome != DetectionOutcome::kEjected) return std::nullopt;
  return LogLine{LogLevel::kWarning,
                 LogKind::kEjection,
                 absl::StrCat("cluster ",
                              seen.cluster.str(),
                              ": outlier detection ejected ",
                              seen.endpoints,
                              seen.endpoints == 1 ? " endpoint" : " endpoints",
                              " (",
                              method_text(seen.method),
                              ")")};
}

}  // namespace

std::optional<LogLine> line_of(const Observation& seen) {
  using Line = std::optional<LogLine>;
  return std::visit(Overloaded{
                        [](const PriorityActive& one) -> Line { return line_of_priority(one); },
                        [](const FailedOver& one) -> Line { return line_of_failover(one); },
                        [](const FailoverEnded& one) -> Line { return line_of_end(one); },
                        [](const OutliersDetected& one) -> Line { return line_of_outliers(one); },
                        [](const auto&) -> Line { return std::nullopt; },
                    },
                    seen);
}

LogLine server_line(absl::string_view server, const ServerStatusChanged& changed) {
  if (changed.status.ok())
    return {
        LogLevel::kInfo, LogKind::kControlPlane, absl::StrCat("xDS server ", server, " is back")};
  // Some statuses begin with the server's name. This prefix is removed, because the line names the
  // server anyway.
  absl::string_view why = changed.status.message();
  absl::ConsumePrefix(&why, absl::StrCat("xDS server ", server, ": "));
  return {LogLevel::kWarning,
          LogKind::kControlPlane,
          absl::StrCat(
              "xDS server ", server, " is lost: ", why, "; resources that it sent stay in use")};
}

std::optional<LogLine> refused_line(absl::string_view server, const ResourcesReceived& received) {
  std::vector<std::string> errors;
  std::uint64_t refused = received.unnamed_errors.size() + received.more_unnamed;
  for (const ReceivedResource& one : received.resources) {
    if (one.resource.ok()) continue;
    ++refused;
    if (errors.size() < kMostErrors)
      errors.push_back(absl::StrCat(one.name, ": ", one.resource.status().message()));
  }
  for (const std::string& error : received.unnamed_errors) {
    if (errors.size() < kMostErrors) errors.push_back(error);
  }
  if (refused == 0) return std::nullopt;
  return LogLine{LogLevel::kWarning,
                 LogKind::kConfigRefused,
                 absl::StrCat("xDS server ",
                              server,
                              ": ",
                              to_string(received.type),
                              " version ",
                              received.version,
                              ": refused ",
                              refused,
                              refused == 1 ? " resource: " : " resources: ",
                              absl::StrJoin(errors, "; "))};
}

LogLine refused_line(absl::string_view server, const ResponseRefused& refused) {
  return {LogLevel::kWarning,
          LogKind::kConfigRefused,
          absl::StrCat("xDS server ",
                       server,
                       ": refused a whole response (",
                       to_string(refused.reason),
                       "); the last good configuration stays in use")};
}

LogLine load_line(absl::string_view server, const LoadServerNoted& noted) {
  return {LogLevel::kWarning,
          LogKind::kControlPlane,
          absl::StrCat("load reports to ", server, ": ", noted.text)};
}

}  // namespace signalbox::actors
