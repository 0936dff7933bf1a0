// SPDX-License-Identifier: Apache-2.0
#include "xds/lint/lint.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "xds/type_url.hpp"

namespace signalbox::xds {

std::vector<LintWarning> lint(const std::vector<ResourceBytes>& resources) {
  std::vector<LintWarning> warnings;
  const auto ends = loose_ends(resources);
  for (std::size_t i = 0; i < resources.size(); ++i) {
    auto findings = unread_fields(resources[i]);
    findings.insert(findings.end(), ends[i].begin(), ends[i].end());
    for (const LintFinding& finding : findings) {
      warnings.push_back({i,
                          absl::StrCat(api_name(resources[i].type_url),
                                       " \"",
                                       resources[i].name,
                                       "\": ",
                                       finding.path,
                                       finding.path.empty() ? "" : ": ",
                                       finding.what)});
    }
  }
  return warnings;
}

}  // namespace signalbox::xds
