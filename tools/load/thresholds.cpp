// SPDX-License-Identifier: Apache-2.0
#include "tools/load/thresholds.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "tools/commands.hpp"

namespace signalbox::tools {
namespace {

struct FigureRow {
  absl::string_view name;
  absl::string_view unit;
  bool is_of_acts;
};

constexpr std::array kFigures{
    FigureRow{"lost", "calls", true},
    FigureRow{"failback-errors", "calls", true},
    FigureRow{"sessions-moved", "calls", true},
    FigureRow{"recovery", "ns", true},
    FigureRow{"first-success", "ns", true},
    FigureRow{"p50", "ns", false},
    FigureRow{"p95", "ns", false},
    FigureRow{"p99", "ns", false},
    FigureRow{"p99.9", "ns", false},
    FigureRow{"max", "ns", false},
    FigureRow{"error-rate", "%", false},
    FigureRow{"rate", "/s", false},
};

absl::Status refused(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", why));
}

absl::StatusOr<double> limit_of(absl::string_view text, absl::string_view unit) {
  double limit = 0;
  if (unit == "ns") {
    absl::Duration duration;
    if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration())
      return absl::ToDoubleNanoseconds(duration);
    return absl::InvalidArgumentError("expected a duration such as 50ms or 1s");
  }
  if (unit == "%" && !absl::ConsumeSuffix(&text, "%"))
    return absl::InvalidArgumentError("expected percent such as 0.1%");
  if (absl::SimpleAtod(text, &limit) && limit >= 0) return limit;
  return absl::InvalidArgumentError("expected a number of 0 or more");
}

// A share in percent. nullopt if `whole` is 0: the quotient would be NaN, and no comparison with
// NaN is true, so no threshold would ever be missed.
std::optional<double> share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::optional<double> overall(const std::string& figure,
                              const LoadReport& report,
                              const LoadSide& side) {
  const auto percentile = [&](double percent) {
    return static_cast<double>(side.from_due.percentile(percent));
  };
  if (figure == "lost") return static_cast<double>(side.failed);
  if (figure == "error-rate") return share(side.failed, side.ok + side.failed);
  if (figure == "rate") return report.ran_s > 0 ? static_cast<double>(side.ok) / report.ran_s : 0;
  // Without an answered call there is no latency, which counts as longer than every limit.
  if (side.from_due.count() == 0) return std::nullopt;
  if (figure == "p50") return percentile(50);
  if (figure == "p95") return percentile(95);
  if (figure == "p99") return percentile(99);
  if (figure == "p99.9") return percentile(99.9);
  return static_cast<double>(side.from_due.max());
}

std::optional<double> of_act(const std::string& figure, const LoadFaultFigures& act) {
  const auto time = [](const std::optional<std::int64_t>& ns) {
    return ns ? std::optional(static_cast<double>(*ns)) : std::nullopt;
  };
  if (figure == "lost") return static_cast<double>(act.lost);
  if (figure == "failback-errors") return static_cast<double>(act.failback_errors);
  if (figure == "sessions-moved") return static_cast<double>(act.sessions_moved);
  return figure == "recovery" ? time(act.recovery_ns) : time(act.first_success_ns);
}

// The threshold's figure over all faults: the sum if it is a count, the longest if it is a time.
// first-success leaves out faults without a first success, and is nullopt if no fault has one.
// recovery is nullopt if one fault or more has no recovery.
std::optional<double> of_acts(const Threshold& threshold,
                              const LoadReport& report,
                              const LoadSide& side) {
  const bool is_optional = threshold.figure == "first-success";
  std::optional<double> result = is_optional ? std::nullopt : std::optional(0.0);
  for (std::size_t i = 0; i < report.faults.size() && i < side.faults.size(); ++i) {
    if (!report.faults[i].is_fault) continue;
    const auto one = of_act(threshold.figure, side.faults[i]);
    if (!one && is_optional) continue;
    if (!one) return std::nullopt;
    const double before = result.value_or(0);
    result = threshold.unit == "ns" ? std::max(before, *one) : before + *one;
  }
  return result;
}

std::optional<double> measured(const Threshold& threshold,
                               const LoadReport& report,
                               const LoadSide& side) {
  if (!threshold.act.empty()) {
    for (std::size_t i = 0; i < report.faults.size() && i < side.faults.size(); ++i) {
      if (report.faults[i].name == threshold.act) return of_act(threshold.figure, side.faults[i]);
    }
    return std::nullopt;
  }
  const auto* const row = std::ranges::find(kFigures, threshold.figure, &FigureRow::name);
  if (row->is_of_acts && threshold.figure != "lost") return of_acts(threshold, report, side);
  return overall(threshold.figure, report, side);
}

bool happens(Comparison comparison, double value, double limit) {
  switch (comparison) {
    case Comparison::kAbove:
      return value > limit;
    case Comparison::kAtLeast:
      return value >= limit;
    case Comparison::kBelow:
      return value < limit;
    case Comparison::kAtMost:
      return value <= limit;
  }
  return true;
}

std::string figure_names() {
  return absl::StrJoin(kFigures, ", ", [](std::string* out, const FigureRow& row) {
    absl::StrAppend(out, row.name);
  });
}

}  // namespace

absl::StatusOr<Threshold> parse_threshold(absl::string_view text) {
  Threshold threshold{.text = std::string(text)};
  // The name of an act may have < or >.
  const auto bracket = text.find('[');
  const auto end = bracket == absl::string_view::npos ? 0 : text.rfind(']');
  const auto at = end == absl::string_view::npos ? end : text.find_first_of("<>", end);
  if (at == absl::string_view::npos)
    return refused(text, "expected FIGURE>LIMIT or FIGURE[ACT]>LIMIT, with >, >=, < or <=");
  absl::string_view figure = text.substr(0, at);
  absl::string_view limit = text.substr(at + 1);
  const bool or_equal = absl::ConsumePrefix(&limit, "=");
  const bool is_above = text[at] == '>';
  threshold.comparison = is_above ? (or_equal ? Comparison::kAtLeast : Comparison::kAbove)
                                  : (or_equal ? Comparison::kAtMost : Comparison::kBelow);
  if (bracket != absl::string_view::npos && bracket < at) {
    threshold.act = std::string(text.substr(bracket + 1, end - bracket - 1));
    if (threshold.act.empty() || end + 1 != at)
      return refused(text, "expected the name of an act between [ and ]");
    figure = text.substr(0, bracket);
  }
  const auto* const row = std::ranges::find(kFigures, figure, &FigureRow::name);
  if (row == kFigures.end())
    return refused(text,
                   absl::StrCat("there is no figure '", figure, "'; there are: ", figure_names()));
  if (!threshold.act.empty() && !row->is_of_acts)
    return refused(text,
                   absl::StrCat(figure, " is a figure of the whole run; leave the [ACT] out"));
  threshold.figure = std::string(figure);
  threshold.unit = std::string(row->unit);
  const auto read = limit_of(limit, row->unit);
  if (!read.ok())
    return refused(text, absl::StrCat(read.status().message(), ", got '", limit, "'"));
  threshold.limit = *read;
  return threshold;
}

absl::Status check_act(const Threshold& threshold, const std::vector<Act>& acts) {
  if (threshold.act.empty()) return absl::OkStatus();
  std::vector<std::string> faults;
  for (const Act& act : acts) {
    if (act.is_fault()) faults.push_back(act.name);
  }
  if (std::ranges::find(faults, threshold.act) != faults.end()) return absl::OkStatus();
  return refused(
      threshold.text,
      absl::StrCat("the script has no fault '",
                   threshold.act,
                   "'; ",
                   faults.empty() ? std::string("it has none")
                                  : absl::StrCat("it has: ", absl::StrJoin(faults, ", "))));
}

LoadThreshold judge_threshold(const Threshold& threshold,
                              const LoadReport& report,
                              const LoadSide& side) {
  LoadThreshold judged{.text = threshold.text,
                       .side = side.name,
                       .fault = threshold.act,
                       .measured = measured(threshold, report, side),
                       .limit = threshold.limit,
                       .unit = threshold.unit};
  const bool is_upper =
      threshold.comparison == Comparison::kAbove || threshold.comparison == Comparison::kAtLeast;
  judged.is_missed =
      judged.measured ? happens(threshold.comparison, *judged.measured, threshold.limit) : is_upper;
  return judged;
}

int exit_status_of(const LoadReport& report) {
  const auto not_done = [](const LoadFault& fault) { return !fault.error.empty(); };
  const auto not_valid = [](const LoadSide& side) { return !side.validity.is_valid; };
  if (std::ranges::any_of(report.faults, not_done)) return kExitUsage;
  if (std::ranges::any_of(report.sides, not_valid)) return kExitNotValid;
  const bool is_missed = std::ranges::any_of(report.thresholds, &LoadThreshold::is_missed);
  return is_missed ? kExitFailed : kExitOk;
}

}  // namespace signalbox::tools
