// SPDX-License-Identifier: Apache-2.0
//
// Connection — a client's connection to the control plane: there is none, it is being made, or it
// is made.
//
//           dial              accepted
//    None ────────▶ Dialing ──────────▶ Made
//     ▲ ▲   20 s, or │                    │
//     │ └────────────┘ ended: failed()    │
//     └───────────────────────────────────┘ ended: lost()
//
// The client gives a connection up that is not made in time. The control plane does not notice
// this before it comes to the connection, so its work for it is lost.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "messages/ids.hpp"
#include "tests/support/fake_clock.hpp"

namespace signalbox::fleet {

/// Says which connection of which client. A client's connections are numbered from 1.
struct ConnectionId {
  std::size_t client = 0;
  std::uint64_t number = 0;

  friend auto operator<=>(const ConnectionId&, const ConnectionId&) = default;
};

/// The way to the control plane. All that is sent arrives in order, after the client's latency.
class Network {
 public:
  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  virtual void dial(ConnectionId connection) = 0;
  virtual void hang_up(ConnectionId connection) = 0;
  virtual void send(ConnectionId connection, std::string bytes) = 0;
};

class Connection {
 public:
  struct Events {
    std::function<void()> made;
    std::function<void()> failed;  ///< It was refused, or not made in time.
    std::function<void()> lost;    ///< The server ended it after it was made.
  };

  Connection(testing::FakeClock& clock, Network& network, std::size_t client, Events events);

  /// Precondition: there is none. `patience`: the time after which it is given up.
  void dial(Duration patience);

  /// Ends it without an event, if there is one.
  void hang_up();

  /// Precondition: it is made.
  void send(std::string bytes);

  /// From the network. An event of an earlier connection is ignored.
  void accepted(std::uint64_t number);
  void ended(std::uint64_t number);

  bool is_made() const { return state_ == State::kMade; }

  bool is_dialing() const { return state_ == State::kDialing; }

  bool is_current(std::uint64_t number) const { return is_made() && number == number_; }

 private:
  enum class State : std::uint8_t { kNone, kDialing, kMade };

  testing::FakeClock& clock_;
  Network& network_;
  std::size_t client_;
  Events events_;
  State state_ = State::kNone;
  std::uint64_t number_ = 0;
};

}  // namespace signalbox::fleet
