// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>

#include "signalbox/runtime.hpp"

// One pick, with no stub: prints the address of the endpoint.
int main() {
  const auto runtime = signalbox::Runtime::start();
  if (!runtime.ok()) {
    std::cerr << runtime.status() << '\n';
    return 1;
  }
  const auto router = (*runtime)->router("xds:///hello");
  if (!router.ok()) {
    std::cerr << router.status() << '\n';
    return 1;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto pick = (*router)->pick_until(
      {.path = "/consumer.v1.Hello/Greet", .seed = signalbox::next_seed()}, deadline);
  if (pick.outcome() != signalbox::PickOutcome::kComplete) {
    std::cerr << pick.status() << '\n';
    return 1;
  }
  std::cout << pick.connection()->address() << '\n';
  return 0;
}
