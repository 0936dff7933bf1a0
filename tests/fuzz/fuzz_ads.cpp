// SPDX-License-Identifier: Apache-2.0
//
// The bytes choose a sequence of steps: a watcher comes or goes, a stream opens or closes, a
// response comes, time passes. After every step the real client and session (AdsWorld) are compared
// with a model (AdsModel).

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include <google/protobuf/stubs/logging.h>

#include "tests/fuzz/ads_world.hpp"
#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

using namespace std::chrono_literals;

const ::google::protobuf::LogSilencer silence;

constexpr std::size_t kMaxActions = 200;
constexpr ResourceType kTypes[] = {ResourceType::kListener,
                                   ResourceType::kRouteConfig,
                                   ResourceType::kCluster,
                                   ResourceType::kEndpoints};
constexpr const char* kNames[] = {"a", "b", "c"};
constexpr WatcherId kWatchers[] = {1, 2, 3};
constexpr Duration kDurations[] = {100ms, 1s, 5s, 15s, 150s};
constexpr absl::StatusCode kCodes[] = {
    absl::StatusCode::kNotFound, absl::StatusCode::kPermissionDenied, absl::StatusCode::kInternal};
// Most resources are valid, so kValid has several entries.
constexpr SentResource::Form kForms[] = {SentResource::Form::kValid,
                                         SentResource::Form::kValid,
                                         SentResource::Form::kValid,
                                         SentResource::Form::kInvalid,
                                         SentResource::Form::kUnnamed};

ResourceKey make_key(ByteSource& bytes) {
  const ResourceType type = bytes.one_of(kTypes);
  return {type, bytes.one_of(kNames)};
}

// Versions may repeat, but each nonce is new.
SentResponse make_response(ByteSource& bytes, std::size_t number) {
  SentResponse response;
  response.type = bytes.one_of(kTypes);
  response.version = std::to_string(bytes.below(4));
  response.nonce = absl::StrCat("n", number);
  for (std::size_t left = bytes.below(4); left > 0; --left) {
    const auto form = bytes.one_of(kForms);
    const std::string name = bytes.one_of(kNames);
    response.resources.push_back({name, form, static_cast<int>(bytes.below(kContents))});
  }
  if (bytes.below(4) == 0) {
    const std::string name = bytes.one_of(kNames);
    response.errors.push_back({name, bytes.one_of(kCodes)});
  }
  return response;
}

void play(ByteSource bytes) {
  const bool fail_on_data_errors = bytes.flip();
  AdsWorld world(ModelOptions{fail_on_data_errors, bytes.flip()});
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
        world.open_stream();
        break;
      case 6:
        world.close_stream();
        break;
      case 7:
        world.respond_nonsense();
        break;
      case 8:
        world.disturb();
        break;
      case 9:
        world.advance(bytes.one_of(kDurations));
        break;
      default:
        world.respond(make_response(bytes, number));
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
