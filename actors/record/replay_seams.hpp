// SPDX-License-Identifier: Apache-2.0
//
// replay_seams — the outside as a recording has it: what actors ask for is matched with what the
// recorded runtime asked for.
//
//   Recording ─▶ [Script]: per server, peer, name, probe ─▶ replayed transport, connector, …
//
// The n-th stream of a server, attempt of a peer, look-up of a name and probe of an endpoint gets
// the n-th recorded answer, at the recorded time. If the actors ask later than that, they get it at
// once. They may ask earlier or later than the recorded runtime: their timers have other jitter.
//
// A replayed subchannel has one connection, because no calls ask for streams. It lasts as long as
// the recorded subchannel had any (A105).
//
// The replayed runtime may give up what the recorded one kept, because its sessions have no calls.
// The peer's next attempt then goes on with that, unless a recorded attempt is due.
//
// The state with which a segment begins (RecordedEvent::carried) answers at once. A peer that could
// not be connected to before the segment fails again until the first recorded attempt begins. A
// client takes only resources that it has asked for, and learns some names from others (the leaves
// of an aggregate cluster). So carried responses come again when a request names more of their
// resources, until a later response of their type. Some policies connect an endpoint only when a
// call asks for it, so they are asked again for the connections that they had (ReplayedAsks).

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/ask_relay.hpp"
#include "actors/environment.hpp"
#include "actors/record/virtual_time.hpp"
#include "messages/recording.hpp"

namespace signalbox::actors {

/// A recording, by subject.
struct Script {
  /// Something that came at an instant of the virtual time.
  template <typename What>
  struct Timed {
    Instant at{};
    What what;
  };

  struct Response {
    Instant at{};
    std::string bytes;
    bool carried = false;
  };

  struct Stream {
    std::optional<Instant> opened;
    std::deque<Response> received;
    std::optional<Timed<absl::Status>> ended;
  };

  struct Attempt {
    Instant began{};
    bool carried = false;
    std::optional<Instant> made;
    std::optional<Timed<absl::Status>> ended;
    std::optional<Instant> left;  ///< When the recorded runtime gave it up.
  };

  std::map<ServerId, std::deque<std::shared_ptr<Stream>>> streams;
  using Attempts = std::deque<std::shared_ptr<Attempt>>;

  std::map<std::string, std::map<std::string, Attempts>> attempts;  ///< By authority and peer.
  /// What the replayed runtime gave up, and the recorded one did not, by peer.
  std::map<std::string, Attempts> kept;
  std::map<DnsName, std::deque<NameAnswered>> names;
  std::map<std::string, std::deque<Timed<ProbeAnswered>>> probes;
  std::vector<Timed<OutsideEvent>> program;  ///< Of targets and asks, since the segment began.
  /// The carried asks, by target and address.
  std::map<std::pair<std::string, Address>, std::map<PolicyPath, PickAsk>> asked;
  std::set<std::string> woken;  ///< The targets that the program woke before the segment.
  Instant resumed{};            ///< When the segment began, if it began with a state.
  Instant end{};                ///< The time of the last event.
  /// How often actors asked for something that the recording does not have, until its end.
  std::uint64_t unmatched = 0;

  /// Counts what actors ask for now, and the recording does not have.
  void lacks(Instant now) {
    if (now <= end) ++unmatched;
  }
};

/// `begin`: the virtual time at which the recording began.
std::shared_ptr<Script> make_script(const Recording& recording, Instant begin);

/// The policies of the replayed actors, by target and path.
///
/// A policy that registers is asked for the target's carried attempts and connections, unless a
/// subchannel has taken them. An address with a carried ask is left to the policy that got the ask.
/// If that policy is not there, or if there was no ask, any policy is asked: it ignores an address
/// that it does not have.
class ReplayedAsks final : public AskRelay {
 public:
  /// The time must outlive it.
  ReplayedAsks(std::shared_ptr<const Script> script, VirtualTime& time)
      : script_(std::move(script)), time_(time) {}

  std::shared_ptr<const AskTarget> relay(const std::string& target,
                                         const PolicyPath& path,
                                         std::shared_ptr<const AskTarget> policy) override;

  /// Makes a recorded ask. Does nothing if there is no such policy now.
  void ask(const PolicyAsked& asked) const;

 private:
  void resume(const std::string& target, const PolicyPath& path) const;
  std::optional<PickAsk> ask_of(const std::string& target,
                                const PolicyPath& path,
                                const Address& address,
                                const Script::Attempt& next) const;

  const std::shared_ptr<const Script> script_;
  VirtualTime& time_;
  std::map<std::pair<std::string, PolicyPath>, std::weak_ptr<const AskTarget>> policies_;
};

/// Sets all that the environment has from outside. `servers`: the names of its control planes. The
/// script and the time must outlive the actors.
void replay_outside(const std::shared_ptr<Script>& script,
                    VirtualTime& time,
                    const std::vector<std::string>& servers,
                    Environment& environment);

}  // namespace signalbox::actors
