// SPDX-License-Identifier: Apache-2.0
#include "tools/tier_log.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "messages/invariant.hpp"

namespace signalbox::tools {
namespace {

constexpr double kDeviations = 5;

// The value of a label in `{cluster="orders",leaf="a",…}`; no name of the demo has a quote in it.
std::string label_of(absl::string_view line, absl::string_view label) {
  const std::string mark = absl::StrCat(label, "=\"");
  const auto begin = line.find(mark);
  if (begin == absl::string_view::npos) return "";
  const absl::string_view rest = line.substr(begin + mark.size());
  return std::string(rest.substr(0, rest.find('"')));
}

}  // namespace

std::map<std::string, double> TierStep::measured() const {
  std::map<std::string, double> shares;
  for (const auto& [cluster, share] : computed) {
    const auto found = per_cluster.find(cluster);
    const std::uint64_t answered = found == per_cluster.end() ? 0 : found->second;
    shares[cluster] =
        calls == 0 ? 0 : 100.0 * static_cast<double>(answered) / static_cast<double>(calls);
  }
  return shares;
}

double TierStep::tolerance(const std::string& cluster) const {
  const double share = computed.at(cluster) / 100;
  return 100 * kDeviations * std::sqrt(share * (1 - share) / static_cast<double>(calls));
}

bool TierStep::is_as_computed() const {
  if (!settled || calls == 0) return false;
  return std::ranges::all_of(measured(), [this](const auto& entry) {
    const auto& [cluster, share] = entry;
    return std::abs(share - computed.at(cluster)) <= tolerance(cluster);
  });
}

void TierLog::begin(CallTime now, std::string killed, std::map<std::string, double> computed) {
  TierStep step;
  step.killed = std::move(killed);
  step.computed = std::move(computed);
  step.begun = now;
  steps_.push_back(std::move(step));
}

void TierLog::settled(CallTime now) {
  SIGNALBOX_INVARIANT(!steps_.empty(), "what settles has begun");
  steps_.back().settled = now;
}

void TierLog::add(const FinishedCall& call) {
  // The newest step that began before the call ended; mostly the last step.
  const auto step = std::find_if(
      steps_.rbegin(), steps_.rend(), [&](const TierStep& at) { return at.begun <= call.ended; });
  if (step == steps_.rend()) return;
  if (!call.ok) {
    ++step->failed;
  } else if (step->settled && call.started >= *step->settled) {
    ++step->calls;
    ++step->per_cluster[call.cluster];
  }
}

std::map<std::string, double> tier_loads(const std::string& metrics, const std::string& aggregate) {
  std::map<std::string, double> loads;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StartsWith(line, "signalbox_tier_load_percent{")) continue;
    double load = 0;
    const auto value = line.rfind(' ');
    if (label_of(line, "cluster") == aggregate && absl::SimpleAtod(line.substr(value + 1), &load))
      loads[label_of(line, "leaf")] += load;
  }
  return loads;
}

}  // namespace signalbox::tools
