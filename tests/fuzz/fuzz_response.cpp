// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a DiscoveryResponse, checked by the rules of resource_rules.hpp.

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/proto_mutator.hpp"
#include "tests/fuzz/resource_rules.hpp"
#include "tests/fuzz/seed_messages.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  signalbox::fuzz::check_response(signalbox::fuzz::text_of(data, size));
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                    std::size_t size,
                                    std::size_t max_size,
                                    unsigned int seed) {
  using namespace signalbox::fuzz;
  const signalbox::envoy::service::discovery::v3::DiscoveryResponse prototype;
  return mutate_bytes(prototype, seed_donors(), data, size, max_size, seed);
}
