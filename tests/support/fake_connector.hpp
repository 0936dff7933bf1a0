// SPDX-License-Identifier: Apache-2.0
//
// FakeConnector — backends that are up, refuse, or never answer.
//
//   subchannel actor ─▶ connect(address) ─▶ [FakeConnector] ─▶ connected | failed, later closed
//   world ─▶ set_state(address), reset(address) ─┘
//
// All answers come later, in virtual time. The connector knows all attempts and connections that
// exist, so that tests can check invariants about them.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "actors/io/connector.hpp"
#include "actors/io/silent_addresses.hpp"
#include "actors/reclaimer.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::testing {

enum class BackendState : std::uint8_t { kUp, kRefusing, kBlackholed };

class FakeConnector final : public actors::Connector {
 public:
  FakeConnector(FakeClock& clock,
                FakeChance& chance,
                FakeFaults& faults,
                FakeComplaints& complaints,
                std::shared_ptr<actors::Reclaimer> reclaimer)
      : clock_(clock),
        chance_(chance),
        faults_(faults),
        complaints_(complaints),
        reclaimer_(std::move(reclaimer)) {}

  std::unique_ptr<Attempt> connect(const actors::Peer& peer,
                                   Duration timeout,
                                   Events events) override;

  /// The calls that take no stream of `lanes` use `first`.
  ConnectionPtr with_lanes(const ConnectionPtr& first,
                           std::shared_ptr<const lb::StreamLanes> lanes) override;

  /// The lanes of a connection that with_lanes() has made; null: it has none.
  static const lb::StreamLanes* lanes_of(const Connection& connection);

  /// The Connection::stream_limit() of the connections that are made from now on.
  void set_stream_limit(std::optional<std::uint32_t> limit) { stream_limit_ = limit; }

  /// A backend that leaves kUp loses its connections: within 5 ms if it is kRefusing now, after 1
  /// to 20 s if it is kBlackholed (as when a keepalive notices that the backend is gone). FakeClock
  /// may round both times up, as for all timers.
  void set_state(const Address& address, BackendState state);
  BackendState state_of(const Address& address) const;
  /// Closes the connections to an address within 5 ms, which FakeClock may round up. The backend's
  /// state stays as it is.
  void reset(const Address& address);
  void all_up();

  /// While `badly` is true, the backend answers calls with an error. Connections are as its state
  /// says.
  void set_answers_badly(const Address& address, bool badly) {
    if (badly) {
      bad_.insert(address);
    } else {
      bad_.erase(address);
    }
  }

  bool answers_badly(const Address& address) const { return bad_.contains(address); }

  /// For each address: the number of attempts and connections that the client still holds, without
  /// failed attempts and closed connections.
  std::map<Address, int> wanted() const;

  /// The open connections of each address. A connection is identified by its number.
  std::map<Address, std::set<std::uint64_t>> standing() const;

  struct Standing {
    ConnectionPtr connection;
    bool is_shared = false;  ///< Other users may have calls on it: it has no Peer::sole_user.
  };

  /// The open connections that the client still holds, the oldest first.
  std::vector<Standing> open() const;

  std::size_t attempts() const { return attempts_.size(); }

  /// Whether this connection has not been destroyed.
  bool exists(const Connection* connection) const { return connections_.contains(connection); }

  std::size_t connections() const { return connections_.size(); }

 private:
  class FakeAttempt;
  class FakeConnection;

  struct Wish {
    Address address;
    Events events;
    bool is_shared = false;
    bool connected = false;
    bool ended = false;
    std::weak_ptr<const FakeConnection> connection = {};
  };

  Duration handshake_time(const Address& address, Duration timeout);
  void answer(std::uint64_t number, BackendState seen);
  void fail(std::uint64_t number, absl::Status why);
  void close_later(const Address& address, Duration soonest, Duration latest);
  void close(std::uint64_t number);

  FakeClock& clock_;
  FakeChance& chance_;
  FakeFaults& faults_;
  FakeComplaints& complaints_;
  std::shared_ptr<actors::Reclaimer> reclaimer_;
  std::optional<std::uint32_t> stream_limit_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Wish> attempts_;
  std::map<Address, BackendState> states_;  // An address without an entry is up.
  std::set<Address> bad_;
  actors::SilentAddresses silent_;  // As the maker of sockets remembers them.
  std::set<const Connection*> connections_;
};

}  // namespace signalbox::testing
