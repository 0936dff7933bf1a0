// SPDX-License-Identifier: Apache-2.0
//
// overloaded — builds one visitor out of lambdas, for std::visit.

#pragma once

namespace signalbox {

template <typename... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};

template <typename... Lambdas>
Overloaded(Lambdas...) -> Overloaded<Lambdas...>;

}  // namespace signalbox
