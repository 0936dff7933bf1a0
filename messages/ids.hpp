// SPDX-License-Identifier: Apache-2.0
//
// Identities and time, as strong types: a ClusterName is never mistaken for a ChildName.
//
// All are plain values, copyable and ordered; names are also hashable (absl). Time is an argument
// of the cores (`Instant now`): xds/ and lb/ read no clock. Only lb/session gets clocks, as
// functions.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

namespace signalbox {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A text that never changes. Copies share one block of memory, and write the count of its owners.
/// So it is not for texts that picks copy.
class SharedText {
 public:
  SharedText() = default;

  explicit SharedText(std::string text)
      : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}

  const std::string& str() const { return text_ != nullptr ? *text_ : kNone; }

  // NOLINTNEXTLINE(google-explicit-constructor): a SharedText is read like a string.
  operator const std::string&() const { return str(); }

  friend bool operator==(const SharedText& left, const SharedText& right) {
    return left.text_ == right.text_ || left.str() == right.str();
  }

  friend auto operator<=>(const SharedText& left, const SharedText& right) {
    return left.str() <=> right.str();
  }

 private:
  static inline const std::string kNone;

  std::shared_ptr<const std::string> text_;  ///< Null: the text is empty.
};

/// A string with one meaning. Tag is an incomplete type that only names the meaning.
template <typename Tag, typename Text = std::string>
class Name {
 public:
  Name() = default;

  explicit Name(std::string text) : text_(std::move(text)) {}

  const std::string& str() const { return text_; }

  bool empty() const { return str().empty(); }

  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name&, const Name&) = default;

  friend std::ostream& operator<<(std::ostream& out, const Name& name) { return out << name.str(); }

  template <typename H>
  friend H AbslHashValue(H state, const Name& name) {
    return H::combine(std::move(state), name.str());
  }

 private:
  Text text_;
};

/// The name of a CDS resource; also the key of a child of cluster_manager.
using ClusterName = Name<struct ClusterNameTag>;
/// The name of a child within its composite policy; stable across configurations.
using ChildName = Name<struct ChildNameTag>;
/// "ip:port", IPv6 in brackets: one transport address. An endpoint's address has many copies.
using Address = Name<struct AddressTag, SharedText>;
/// "host:port" of a LOGICAL_DNS cluster.
using DnsName = Name<struct DnsNameTag>;
/// The place of a policy in its tree ("orders/priority/child0"); the same after a restart.
using PolicyPath = Name<struct PolicyPathTag>;

/// One control-plane server: its index among the distinct servers of the bootstrap.
using ServerId = std::size_t;

/// The number of a configuration. It rises by one with each configuration that a channel applies to
/// its policy tree. 0: none yet.
using Generation = std::uint64_t;

/// Says which timer of a core fired. Each start of a timer has a `generation` of its own, so that
/// the core recognises and drops a late TimerFired of an earlier start.
struct TimerId {
  std::string name;
  std::uint64_t generation = 0;

  friend bool operator==(const TimerId&, const TimerId&) = default;
  friend auto operator<=>(const TimerId&, const TimerId&) = default;
};

}  // namespace signalbox
