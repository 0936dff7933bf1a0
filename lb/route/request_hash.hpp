// SPDX-License-Identifier: Apache-2.0
//
// RequestHash — a call's place on the rings of hashing policies, from its route (gRFC A42).
//
//   ForwardAction::hash_policies ─▶ [RequestHash], compiled once ─▶ of(headers) ─▶ PickArgs::hash
//
// Each policy that has a result joins it to those before: turned left by one bit, then xor. One
// that is terminal ends the list, if there is a result by now. Without any result there is no hash,
// and policies that want one take it by chance.
//
// Immutable; of() runs on any thread and allocates nothing, unless several values of one header
// must be joined, or one is rewritten.

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
  /// `channel_id`: the same for all calls of a channel, another one for each channel.
  /// `pool`: of the snapshot; null: each pattern is compiled by itself.
  RequestHash(const std::vector<HashPolicy>& policies,
              std::uint64_t channel_id,
              RegexPool* pool = nullptr);

  [[gnu::hot]] std::optional<std::uint64_t> of(const HeaderSource* headers) const;

 private:
  struct Step {
    std::string header;  ///< Empty: the channel's id.
    RegexPtr pattern;    ///< Null: the value as it is.
    std::string substitution;
    bool terminal = false;
  };

  std::optional<std::uint64_t> hash_of(const Step& step, const HeaderSource* headers) const;

  std::vector<Step> steps_;
  std::uint64_t channel_hash_;
};

}  // namespace signalbox::lb
