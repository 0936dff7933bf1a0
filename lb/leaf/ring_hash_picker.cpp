// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/ring_hash_picker.hpp"

#include "absl/strings/str_cat.h"

#include "lb/header_value.hpp"
#include "lb/trace.hpp"
#include "lb/xx_hash.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {

RingHashPicker::RingHashPicker(Parts parts, const EndpointSet& members)
    : parts_(std::move(parts)),
      ready_(members.ready()),
      any_connecting_(members.count(ConnectivityState::kConnecting) > 0),
      all_failed_(members.count(ConnectivityState::kTransientFailure) == members.counted()) {
  SIGNALBOX_INVARIANT(parts_.ring != nullptr && parts_.ring->size() > 0, "there is a ring to walk");
  slots_.reserve(members.size());
  std::uint32_t ready = 0;
  for (std::size_t at = 0; at < members.size(); ++at) {
    Slot slot{members[at].state, 0};
    if (slot.state == ConnectivityState::kReady && members[at].counts) slot.place = ready++;
    if (slot.state == ConnectivityState::kIdle) {
      slot.place = static_cast<std::uint32_t>(idle_.size());
      idle_.emplace_back(members[at].endpoint->addresses.front());
    }
    slots_.push_back(slot);
  }
}

PickResult RingHashPicker::pick(const PickArgs& args) const {
  return decide(args, Silent{});
}

PickResult RingHashPicker::explain(const PickArgs& args, PickTrace& trace) const {
  return decide(args, Telling{trace});
}

template <typename Sink>
PickResult RingHashPicker::decide(const PickArgs& args, const Sink& sink) const {
  PickResult result;
  const auto tell = [&](absl::string_view decision, const auto& reason) {
    sink.tell([&] { return PickStep{"ring_hash", std::string(decision), reason(), "CDS"}; });
  };
  const Hash hash = hash_of(args);
  tell("walks the ring", [&] { return shown_hash(hash); });
  // A call with a random hash may go to any endpoint. So the pick walks on, past endpoints that are
  // not READY, as long as there is a READY one.
  const bool goes_on = hash.by_chance && ready_.size() > 0;
  bool connects = hash.by_chance && any_connecting_;
  const HashRing& ring = *parts_.ring;
  std::size_t failed = 0;
  std::size_t at = all_failed_ ? 0 : ring.find(hash.value);
  for (std::size_t left = all_failed_ ? 0 : ring.size(); left > 0; --left) {
    const Slot& slot = slots_[ring.item(at)];
    at = at + 1 == ring.size() ? 0 : at + 1;
    if (slot.state == ConnectivityState::kTransientFailure) {
      if constexpr (Sink::kTells) ++failed;
      continue;
    }
    if (slot.state == ConnectivityState::kReady) {
      result.outcome = ready_[slot.place];
      sink.tell([&] {
        return PickStep{
            "ring_hash",
            shown(ready_[slot.place]),
            absl::StrCat(
                "the first READY one from there; ", failed, " points of failed ones were passed"),
            "CDS"};
      });
      return result;
    }
    if (slot.state == ConnectivityState::kIdle && !connects)
      sink.leave([&] { ask_for(idle_[slot.place], result); });
    connects = true;
    if (goes_on) continue;
    tell("the call waits", [&] {
      return slot.state == ConnectivityState::kIdle
                 ? absl::StrCat(idle_[slot.place].address.str(),
                                " is where it belongs, and not connected; a pick lets it connect")
                 : std::string("where it belongs is being connected");
    });
    return result;
  }
  if (connects) {
    tell("the call waits", [] { return std::string("none is READY, and one is being connected"); });
  } else {
    tell("the call fails", [&] { return std::string(parts_.failure.message()); });
  }
  if (!connects) result.outcome = Fail{parts_.failure};
  return result;
}

RingHashPicker::Hash RingHashPicker::hash_of(const PickArgs& args) const {
  if (!parts_.header.empty()) {
    const HeaderValue value(args.headers, parts_.header);
    if (value.get().has_value() && !value.get()->empty()) return {xx_hash(*value.get()), false};
  } else if (args.hash.has_value()) {
    return {*args.hash, false};
  }
  return {draw(args.seed, Salt::kRequestHash), true};
}

std::string RingHashPicker::shown_hash(const Hash& hash) const {
  return absl::StrCat("the call's hash is ",
                      hash.value,
                      hash.by_chance          ? ", by chance: nothing of it is hashed"
                      : parts_.header.empty() ? ", by the hash policies of its route"
                                              : ", of header \"" + parts_.header + "\"",
                      "; the ring has ",
                      parts_.ring->size(),
                      " points");
}

void RingHashPicker::ask_for(const Idle& idle, PickResult& result) const {
  if (parts_.ask_target == nullptr) return;
  // Reads before it writes: once the flag is set, waiting picks only read it, so all CPUs can share
  // its cache line.
  if (idle.ask_mark.load(std::memory_order_relaxed) ||
      idle.ask_mark.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  result.ask = PickAsk{PickAsk::Kind::kConnect, idle.address};
  result.ask_target = parts_.ask_target.get();
}

}  // namespace signalbox::lb
