// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/connection.hpp"

#include <utility>

#include "messages/invariant.hpp"

namespace signalbox::fleet {

Connection::Connection(testing::FakeClock& clock,
                       Network& network,
                       std::size_t client,
                       Events events)
    : clock_(clock), network_(network), client_(client), events_(std::move(events)) {}

void Connection::dial(Duration patience) {
  SIGNALBOX_INVARIANT(state_ == State::kNone, "a client has one connection");
  state_ = State::kDialing;
  network_.dial({client_, ++number_});
  clock_.after_exactly(patience, [this, number = number_] {
    if (!is_dialing() || number != number_) return;
    hang_up();
    events_.failed();
  });
}

void Connection::hang_up() {
  if (std::exchange(state_, State::kNone) != State::kNone) network_.hang_up({client_, number_});
}

void Connection::send(std::string bytes) {
  SIGNALBOX_INVARIANT(is_made(), "a message is sent on a connection that is made");
  network_.send({client_, number_}, std::move(bytes));
}

void Connection::accepted(std::uint64_t number) {
  if (!is_dialing() || number != number_) return;
  state_ = State::kMade;
  events_.made();
}

void Connection::ended(std::uint64_t number) {
  if (number != number_) return;
  const State before = std::exchange(state_, State::kNone);
  if (before == State::kDialing) events_.failed();
  if (before == State::kMade) events_.lost();
}

}  // namespace signalbox::fleet
