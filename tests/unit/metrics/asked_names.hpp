// SPDX-License-Identifier: Apache-2.0
//
// asked_names — the names of series and labels in a PromQL expression.
//
//   sum by (code) (rate(signalbox_calls_total{target="t"}[5m]))
//     ─▶ series: signalbox_calls_total {target};  groupings: code
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace signalbox::test {

struct AskedSeries {
  std::string metric;
  std::set<std::string> labels;  ///< The labels of the selector.
};

struct AskedNames {
  std::vector<AskedSeries> series;
  std::set<std::string> groupings;  ///< The labels of by, without, on, ignoring and group_*.
};

/// A word is a series' name if it begins with `signalbox_`, has a colon, or stands before `{`.
AskedNames asked_names(absl::string_view expression);

}  // namespace signalbox::test
