// SPDX-License-Identifier: Apache-2.0
//
// RequestHash — a call's place on the rings of hashing policies, from its route (gRFC A42).
//
//   ForwardAction::hash_policies ─▶ [RequestHash], compiled once ─▶ of(headers) ─▶ PickArgs::hash
//
// Each policy with a result joins it to the hash so far: the hash is rotated left by one bit, then
// xor. A terminal policy ends the list, if there is a hash by now. Without any result there is no
// hash, and policies that want one draw it.
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
  /// `channel_id`: the same for all calls of a channel, and another one for each channel. `pool`:
  /// the snapshot's; null: each pattern is compiled by itself.
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
