// SPDX-License-Identifier: Apache-2.0
//
// The bytes choose a sequence of steps: a server connects, fails, recovers or answers, a watcher
// comes or goes, time passes. After every step the real client (FallbackWorld) is compared with a
// model (FallbackModel).

#include <algorithm>
#include <chrono>

#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fallback_world.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxActions = 200;
constexpr std::size_t kIds = 2;
constexpr ResourceType kTypes[] = {ResourceType::kCluster, ResourceType::kEndpoints};
constexpr WatcherId kWatchers[] = {1, 2};
constexpr Duration kDurations[] = {1s, 10s, 15s, 30s};
constexpr absl::StatusCode kWrong[] = {
    absl::StatusCode::kUnavailable, absl::StatusCode::kNotFound, absl::StatusCode::kInternal};

// The server lists of the two authorities. Both lists of a row share servers, at different places.
const std::array<std::vector<ServerId>, kAuthorities> kLayouts[] = {
    {{{0, 1}, {1, 0}}},
    {{{0, 1, 2}, {2}}},
    {{{0, 1, 2}, {1, 2}}},
    {{{0}, {2, 1, 0}}},
};

FallbackKey make_key(ByteSource& bytes, ResourceType type) {
  const std::size_t choice = bytes.below(2 * kIds);
  return {choice / kIds, type, choice % kIds};
}

FallbackKey make_key(ByteSource& bytes) {
  const ResourceType type = bytes.one_of(kTypes);
  return make_key(bytes, type);
}

Answer make_answer(ByteSource& bytes, ResourceType type) {
  Answer answer;
  for (std::size_t left = bytes.below(4); left > 0; --left) {
    const FallbackKey key = make_key(bytes, type);
    const std::size_t choice = bytes.below(8);
    const bool is_valid = choice < static_cast<std::size_t>(kContents);
    const Said said = is_valid ? Said{static_cast<int>(choice), {}}
                               : Said{{}, kWrong[choice % std::size(kWrong)]};
    const bool is_there = std::any_of(
        answer.begin(), answer.end(), [&](const auto& other) { return other.first == key; });
    if (!is_there) answer.emplace_back(key, said);
  }
  return answer;
}

FallbackOptions make_options(ByteSource& bytes) {
  FallbackOptions options;
  options.authorities = bytes.one_of(kLayouts);
  for (ServerRules& rules : options.servers) {
    rules.fail_on_data_errors = bytes.flip();
    rules.timer_is_transient_error = bytes.flip();
  }
  return options;
}

void play(ByteSource bytes) {
  FallbackWorld world(make_options(bytes));
  for (std::size_t number = 0; number < kMaxActions && !bytes.is_empty(); ++number) {
    const std::size_t action = bytes.below(12);
    switch (action) {
      case 0:
      case 1:
      case 2:
      case 3:
        change_watches(world, action, bytes.one_of(kWatchers), [&] { return make_key(bytes); });
        break;
      case 4:
      case 5:
        world.connect(bytes.below(kServers));
        break;
      case 6:
      case 7:
        world.fail(bytes.below(kServers));
        break;
      case 8:
        world.recover(bytes.below(kServers));
        break;
      case 9:
        world.advance(bytes.one_of(kDurations));
        break;
      case 10:
        world.disturb();
        break;
      default: {
        const ServerId server = bytes.below(kServers);
        const ResourceType type = bytes.one_of(kTypes);
        world.answer(server, type, make_answer(bytes, type));
      }
    }
  }
  world.end();
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  signalbox::fuzz::play(signalbox::fuzz::ByteSource(data, size));
  return 0;
}
