// SPDX-License-Identifier: Apache-2.0
//
// Catch2 3 under the names of Catch2 2.
//
//   <catch2/catch.hpp> ─▶ Debian 12: Catch2's own header
//                      └▶ Debian 13: this one ─▶ headers of Catch2 3
//
// Tests use the part of Catch2 that both versions share. CMake puts this folder on the include path
// for Catch2 3 only, which has no <catch2/catch.hpp>.
#pragma once

#include <string>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace Catch {
namespace Matchers {

// Catch2 3 has another Contains, for ranges. The header of that one must not be included here.
inline StringContainsMatcher Contains(const std::string& text,
                                      CaseSensitive case_sensitive = CaseSensitive::Yes) {
  return ContainsSubstring(text, case_sensitive);
}

}  // namespace Matchers

using Matchers::Contains;
using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::StartsWith;

}  // namespace Catch

using Catch::Approx;
