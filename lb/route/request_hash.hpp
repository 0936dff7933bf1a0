// SPDX-License-Identifier: Apache-2.0
//
// RequestHash — computes a call's hash for ring_hash and maglev, by its route (gRFC A42).
//
//   ForwardAction::hash_policies ─▶ [RequestHash], compiled once ─▶ of(headers) ─▶ PickArgs::hash
//
// Each hash policy that yields a value is combined with the hash so far: hash = rotl(hash, 1) xor
// value. After a terminal policy the list ends, if there is a hash. If no policy yields a value,
// there is no hash, and ring_hash or maglev draws one.
//
// Immutable. of() runs on any thread, and allocates only to join several values of one header or to
// rewrite a value.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "re2/re2.h"

#include "lb/route/regex.hpp"
#include "messages/pick.hpp"
#include "messages/route_config.hpp"

namespace signalbox::lb {

class RequestHash {
 public:
  /// `channel_id`: one number for all calls of a channel, another for each channel. `pool`:
  /// compiles the patterns of the snapshot; null: each pattern is compiled separately.
  RequestHash(const std::vector<HashPolicy>& policies,
              std::uint64_t channel_id,
              RegexPool* pool = nullptr);

  [[gnu::hot]] std::optional<std::uint64_t> of(const HeaderSource* headers) const;

 private:
  struct Step {
    std::string header;  ///< Empty: the channel's id is hashed.
    RegexPtr pattern;    ///< Null: the value is not rewritten.
    std::string substitution;
    bool terminal = false;
  };

  std::optional<std::uint64_t> hash_of(const Step& step, const HeaderSource* headers) const;

  std::vector<Step> steps_;
  std::uint64_t channel_hash_;
};

}  // namespace signalbox::lb
