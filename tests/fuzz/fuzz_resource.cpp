// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a resource of one type: SIGNALBOX_FUZZED_TYPE, a ResourceType [S3].

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/proto_mutator.hpp"
#include "tests/fuzz/resource_rules.hpp"
#include "tests/fuzz/seed_messages.hpp"

namespace {

constexpr auto kType = signalbox::ResourceType::SIGNALBOX_FUZZED_TYPE;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  signalbox::fuzz::check_resource(kType, signalbox::fuzz::text_of(data, size));
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                    std::size_t size,
                                    std::size_t max_size,
                                    unsigned int seed) {
  using namespace signalbox::fuzz;
  return mutate_bytes(resource_prototype(kType), seed_donors(), data, size, max_size, seed);
}
