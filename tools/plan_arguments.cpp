// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_arguments.hpp"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace signalbox::tools {
namespace {

using Place = std::pair<std::string, std::uint32_t>;  // A cluster and a priority.
using Percents = std::map<Place, std::uint32_t>;

// Splits at the last '=' and at the last '/' before it: names of clusters may have both.
bool read(const std::string& text, Place& place, std::uint32_t& percent) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return false;
  const auto slash = text.rfind('/', equals - 1);
  if (slash == std::string::npos || slash == 0) return false;
  place.first = text.substr(0, slash);
  return absl::SimpleAtoi(text.substr(slash + 1, equals - slash - 1), &place.second) &&
         absl::SimpleAtoi(text.substr(equals + 1), &percent) && percent <= 100;
}

absl::StatusOr<Percents> read_all(const char* option, const std::vector<std::string>& texts) {
  Percents percents;
  for (const std::string& text : texts) {
    Place place;
    std::uint32_t percent = 0;
    if (!read(text, place, percent)) {
      return absl::InvalidArgumentError(absl::StrCat(
          option, ": expected CLUSTER/PRIORITY=PERCENT with 0 to 100 percent, got '", text, "'"));
    }
    if (!percents.emplace(place, percent).second) {
      return absl::InvalidArgumentError(absl::StrCat(option,
                                                     ": must be said once of each priority, got ",
                                                     place.first,
                                                     "/",
                                                     place.second,
                                                     " twice"));
    }
  }
  return percents;
}

}  // namespace

absl::StatusOr<std::vector<AssumedHealth>> read_health(const std::vector<std::string>& healthy,
                                                       const std::vector<std::string>& degraded) {
  const auto of_healthy = read_all("--health", healthy);
  if (!of_healthy.ok()) return of_healthy.status();
  const auto of_degraded = read_all("--degraded", degraded);
  if (!of_degraded.ok()) return of_degraded.status();
  std::map<Place, AssumedHealth> all;
  for (const auto& [place, percent] : *of_degraded)
    all[place] = {ClusterName(place.first), place.second, 100 - percent, percent};
  for (const auto& [place, percent] : *of_healthy) {
    AssumedHealth& health =
        all.try_emplace(place, AssumedHealth{ClusterName(place.first), place.second}).first->second;
    health.healthy_percent = percent;
  }
  std::vector<AssumedHealth> list;
  for (auto& [place, health] : all)
    list.push_back(std::move(health));
  return list;
}

absl::StatusOr<LocalityName> read_zone(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  LocalityName name;
  if (parts.size() == 1) {
    name.zone = parts[0];
  } else if (parts.size() <= 3) {
    name.region = parts[0];
    name.zone = parts[1];
    if (parts.size() == 3) name.sub_zone = parts[2];
  }
  if (!name.zone.empty()) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("--zone: expected ZONE, REGION/ZONE or REGION/ZONE/SUB_ZONE, got '", text, "'"));
}

}  // namespace signalbox::tools
