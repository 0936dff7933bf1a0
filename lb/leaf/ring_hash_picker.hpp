// SPDX-License-Identifier: Apache-2.0
//
// RingHashPicker — walks along the ring from a call's hash to an endpoint (gRFC A42, A61, A76).
//
//   ring, the states of its endpoints ─▶ [RingHashPicker] ─▶ the endpoint of the call
//
// Usually the first point has a READY endpoint. Such a pick costs a binary search, and reads one
// entry in each of three tables. A pick writes nothing, except that the first pick that asks to
// connect an IDLE endpoint sets the endpoint's ask_mark.

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lb/leaf/endpoint_set.hpp"
#include "lb/leaf/hash_ring.hpp"

namespace signalbox::lb {

class RingHashPicker final : public Picker {
 public:
  struct Parts {
    std::shared_ptr<const HashRing> ring;         ///< Not empty. Its items: all endpoints.
    std::string header;                           ///< request_hash_header; empty: the route's hash.
    std::shared_ptr<const AskTarget> ask_target;  ///< Null: asks are not sent.
    absl::Status failure;                         ///< For picks that find no endpoint. Not OK.
  };

  RingHashPicker(Parts parts, const EndpointSet& members);

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override;
  PickResult explain(const PickArgs& args, PickTrace& trace) const override;

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const;

  struct Hash {
    std::uint64_t value = 0;
    bool by_chance = false;
  };

  struct Slot {
    ConnectivityState state = ConnectivityState::kIdle;
    std::uint32_t place = 0;  ///< READY: its index in ready_. IDLE: its index in idle_.
  };

  // An IDLE endpoint, and whether a pick has asked to connect it. The flag avoids duplicate asks,
  // which would change nothing.
  struct Idle {
    explicit Idle(Address first) : address(std::move(first)) {}

    Address address;
    mutable std::atomic<bool> ask_mark{false};
  };

  Hash hash_of(const PickArgs& args) const;
  std::string shown_hash(const Hash& hash) const;
  void ask_for(const Idle& idle, PickResult& result) const;

  Parts parts_;
  std::vector<Slot> slots_;  // Indexed by member.
  ReadyEndpoints ready_;
  std::deque<Idle> idle_;
  bool any_connecting_ = false;
  bool all_failed_ = false;
};

}  // namespace signalbox::lb
