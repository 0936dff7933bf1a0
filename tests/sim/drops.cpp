// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/drops.hpp"

#include "absl/strings/string_view.h"

namespace signalbox::sim {
namespace {

constexpr absl::string_view kByCategory = ": the control plane drops calls of category \"";
constexpr absl::string_view kByBreaker = ": circuit breaker: ";
constexpr absl::string_view kCluster = "cluster ";

// The name at the end of "… cluster c3".
std::string last_cluster(absl::string_view text) {
  const std::size_t begin = text.rfind(kCluster);
  if (begin == absl::string_view::npos) return "";
  return std::string(text.substr(begin + kCluster.size()));
}

}  // namespace

void DropBook::note(const absl::Status& status) {
  const absl::string_view text = status.message();
  if (const std::size_t found = text.find(kByCategory); found != absl::string_view::npos) {
    const absl::string_view category = text.substr(found + kByCategory.size());
    ++counts_[last_cluster(text.substr(0, found))]
             [std::string(category.substr(0, category.find('"')))];
  } else if (const std::size_t limit = text.find(kByBreaker); limit != absl::string_view::npos) {
    ++counts_[last_cluster(text.substr(0, limit))][""];
  }
}

}  // namespace signalbox::sim
