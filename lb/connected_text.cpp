// SPDX-License-Identifier: Apache-2.0
#include "lb/connected_text.hpp"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/resource.hpp"

namespace signalbox::lb {
namespace {

std::string counted(std::size_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string versions_text(const ResourceVersions& versions) {
  std::set<std::string> distinct;
  std::vector<std::string> by_type;
  for (std::size_t type = 0; type < versions.size(); ++type) {
    if (versions[type].empty()) continue;
    distinct.insert(versions[type]);
    by_type.push_back(
        absl::StrCat(to_string(static_cast<ResourceType>(type)), " ", versions[type]));
  }
  if (distinct.empty()) return "without a version";
  if (distinct.size() == 1) return absl::StrCat("version ", *distinct.begin());
  return absl::StrCat("versions ", absl::StrJoin(by_type, ", "));
}

}  // namespace

std::string connected_text(const XdsConfig& config, const ResourceVersions& versions) {
  std::size_t endpoints = 0;
  std::size_t localities = 0;
  for (const auto& [name, found] : config.clusters) {
    if (!found.ok()) continue;
    const auto* leaf = std::get_if<LeafEndpoints>(&(*found)->children);
    if (leaf == nullptr || leaf->endpoints == nullptr) continue;
    for (const Priority& priority : leaf->endpoints->priorities) {
      localities += priority.localities.size();
      for (const LocalityPtr& locality : priority.localities)
        endpoints += locality->endpoints.size();
    }
  }
  return absl::StrCat("connected: ",
                      counted(endpoints, "endpoint", "endpoints"),
                      " in ",
                      counted(localities, "locality", "localities"),
                      ", ",
                      versions_text(versions));
}

}  // namespace signalbox::lb
