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
  const signalbox::CallArgs call{.path = "/consumer.v1.Hello/Greet", .seed = 4};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  auto pick = (*router)->pick(call);
  while (pick.connection() == nullptr && (*router)->wait(pick, deadline)) {
    (*router)->repick(pick, call);
  }
  if (pick.connection() == nullptr) return 1;
  std::cout << pick.connection()->address() << '\n';
  return 0;
}
