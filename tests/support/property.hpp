// SPDX-License-Identifier: Apache-2.0
//
// property — RapidCheck with a fixed seed: without RC_PARAMS, every run tries the same cases.
//
//   CHECK(holds("an order is an order", 500, [](const std::vector<int>& any) { RC_ASSERT(…); }));
//
// If RC_PARAMS (RapidCheck's own variable) is set, it alone decides about seed and number of cases,
// for a longer search.

#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include <rapidcheck.h>

namespace signalbox::test {

/// Tries cases of a property until one fails, at most `cases` without RC_PARAMS. Shrinks the
/// failing case, and prints it on stderr.
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
