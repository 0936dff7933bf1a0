// SPDX-License-Identifier: Apache-2.0
//
// Prints the endpoint that a call of each method would go to.
#include <chrono>
#include <iostream>
#include <utility>

#include "bulkhead.hpp"

#include "signalbox/runtime.hpp"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: pick /SERVICE/METHOD...\n";
    return 2;
  }
  signalbox::RuntimeOptions options;  // The bootstrap: from the environment.
  options.lb_policies.push_back(bulkhead::policy());
  const auto runtime = signalbox::Runtime::start(std::move(options));
  if (!runtime.ok()) {
    std::cerr << "pick: " << runtime.status() << '\n';
    return 1;
  }
  const auto router = *(*runtime)->router("xds:///orders");  // A literal, so the name is valid.
  for (int i = 1; i < argc; ++i) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const signalbox::CallArgs call{.path = argv[i], .seed = signalbox::next_seed()};
    const auto pick = router->pick_until(call, deadline, signalbox::OnFail::kWait);
    if (pick.outcome() != signalbox::PickOutcome::kComplete) {
      std::cerr << "pick: " << argv[i] << ": no endpoint: " << pick.status() << '\n';
      return 1;
    }
    std::cout << argv[i] << " goes to " << pick.connection()->address() << std::endl;
  }
}
