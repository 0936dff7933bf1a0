// SPDX-License-Identifier: Apache-2.0
//
// property — RapidCheck as a test like any other: the same cases in every run.
//
//   CHECK(holds("an order is an order", 500, [](const std::vector<int>& any) { RC_ASSERT(…); }));
//
// RC_PARAMS (RapidCheck's own) takes the place of seed and number, to look further.

#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include <rapidcheck.h>

namespace signalbox::test {

/// Tries `cases` cases of a property; what fails is made as small as can be and told on stderr.
template <typename Property>
bool holds(const std::string& what, int cases, Property&& property) {
  if (std::getenv("RC_PARAMS") != nullptr) {
    return rc::check(what, std::forward<Property>(property));
  }
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = what;
  rc::detail::TestParams params;
  params.seed = 1;
  params.maxSuccess = cases;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  const bool held = result.template is<rc::detail::SuccessResult>();
  if (!held) rc::detail::printResultMessage(result, std::cerr << what << ": ");
  return held;
}

}  // namespace signalbox::test
