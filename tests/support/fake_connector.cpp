// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_connector.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/io/socket_dialer.hpp"

namespace signalbox::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FakeConnector::FakeConnection final : public Connection {
 public:
  FakeConnection(Address address, FakeConnector* owner)
      : Connection(std::move(address), owner->stream_limit_), owner_(owner) {
    owner_->connections_.insert(this);
  }

  FakeConnection(ConnectionPtr leads_to,
                 std::shared_ptr<const lb::StreamLanes> offered,
                 FakeConnector* owner)
      : Connection(leads_to->address(), leads_to->stream_limit()),
        lanes(std::move(offered)),
        owner_(owner),
        first_(std::move(leads_to)) {
    owner_->connections_.insert(this);
  }

  ~FakeConnection() override {
    owner_->complaints_.require(
        !in_use(), "a connection that a call uses is never destroyed", address().str());
    owner_->connections_.erase(this);
  }

  bool takes_calls() const override { return !is_closed; }

  mutable bool is_closed = false;
  const std::shared_ptr<const lb::StreamLanes> lanes;

 private:
  FakeConnector* owner_;
  const ConnectionPtr first_;  ///< Null without lanes.
};

class FakeConnector::FakeAttempt final : public actors::Connector::Attempt {
 public:
  FakeAttempt(FakeConnector* owner, std::uint64_t number) : owner_(owner), number_(number) {}

  ~FakeAttempt() override { owner_->attempts_.erase(number_); }

 private:
  FakeConnector* owner_;
  std::uint64_t number_;
};

std::unique_ptr<actors::Connector::Attempt> FakeConnector::connect(const actors::Peer& peer,
                                                                   Duration timeout,
                                                                   Events events) {
  const std::uint64_t number = ++next_;
  const Address& address = peer.address;
  const bool is_shared = peer.sole_user == actors::UserId();
  attempts_.emplace(number, Wish{address, std::move(events), is_shared});
  const Duration handshake = handshake_time(address, timeout);
  if (faults_.fires(Fault::kHandshakeReset)) {
    clock_.after(std::min(handshake, timeout),
                 [this, number] { fail(number, absl::UnavailableError("handshake reset")); });
  } else if (handshake < timeout) {
    clock_.after(handshake, [this, number, address] { answer(number, state_of(address)); });
  }
  clock_.after_exactly(
      timeout, [this, number] { fail(number, absl::UnavailableError("connect timed out")); });
  return std::make_unique<FakeAttempt>(this, number);
}

ConnectionPtr FakeConnector::with_lanes(const ConnectionPtr& first,
                                        std::shared_ptr<const lb::StreamLanes> lanes) {
  return make_tracked<FakeConnection>(reclaimer_, first, std::move(lanes), this);
}

const lb::StreamLanes* FakeConnector::lanes_of(const Connection& connection) {
  return static_cast<const FakeConnection&>(connection).lanes.get();
}

std::vector<FakeConnector::Standing> FakeConnector::open() const {
  std::vector<Standing> standing;
  for (const auto& [number, wish] : attempts_) {
    const auto connection = wish.connection.lock();
    if (connection != nullptr && !wish.ended) standing.push_back({connection, wish.is_shared});
  }
  return standing;
}

// A server that is late is dialed, and counts as silent after kSilence or half of the timeout. Then
// gRPC connects, at once while the address is remembered, and waits for the SETTINGS.
Duration FakeConnector::handshake_time(const Address& address, Duration timeout) {
  if (faults_.fires(Fault::kSettingsLate)) {
    const Duration late =
        faults_.dice(Fault::kSettingsLate).between(milliseconds(100), seconds(19));
    if (silent_.has(address, clock_.now())) return late;
    silent_.add(address, clock_.now());
    return std::min<Duration>(actors::SocketDialer::kSilence, timeout / 2) + late;
  }
  if (faults_.fires(Fault::kHandshakeSlow))
    return faults_.dice(Fault::kHandshakeSlow).between(milliseconds(1), seconds(8));
  return chance_.between(milliseconds(1), milliseconds(20));
}

void FakeConnector::answer(std::uint64_t number, BackendState seen) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end() || found->second.ended || seen == BackendState::kBlackholed) return;
  if (seen == BackendState::kRefusing) {
    fail(number, absl::UnavailableError("connection refused"));
    return;
  }
  found->second.connected = true;
  auto connection = make_tracked<FakeConnection>(reclaimer_, found->second.address, this);
  found->second.connection = connection;
  if (faults_.fires(Fault::kConnectionShort)) {
    clock_.after(faults_.dice(Fault::kConnectionShort).between(Duration::zero(), seconds(2)),
                 [this, number] { close(number); });
  }
  found->second.events.connected(std::move(connection));
}

void FakeConnector::fail(std::uint64_t number, absl::Status why) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end() || found->second.connected || found->second.ended) return;
  found->second.ended = true;
  found->second.events.failed(std::move(why));
}

void FakeConnector::set_state(const Address& address, BackendState state) {
  states_[address] = state;
  if (state == BackendState::kRefusing) close_later(address, Duration::zero(), milliseconds(5));
  if (state == BackendState::kBlackholed) close_later(address, seconds(1), seconds(20));
}

BackendState FakeConnector::state_of(const Address& address) const {
  const auto found = states_.find(address);
  return found == states_.end() ? BackendState::kUp : found->second;
}

void FakeConnector::reset(const Address& address) {
  close_later(address, Duration::zero(), milliseconds(5));
}

void FakeConnector::all_up() {
  states_.clear();
  bad_.clear();
}

void FakeConnector::close_later(const Address& address, Duration soonest, Duration latest) {
  for (const auto& [number, wish] : attempts_) {
    if (wish.address != address || !wish.connected || wish.ended) continue;
    clock_.after(chance_.between(soonest, latest), [this, which = number] { close(which); });
  }
}

void FakeConnector::close(std::uint64_t number) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end() || !found->second.connected || found->second.ended) return;
  found->second.ended = true;
  if (const auto connection = found->second.connection.lock()) connection->is_closed = true;
  found->second.events.closed(absl::UnavailableError("connection reset"));
}

std::map<Address, int> FakeConnector::wanted() const {
  std::map<Address, int> count;
  for (const auto& [number, wish] : attempts_) {
    if (!wish.ended) ++count[wish.address];
  }
  return count;
}

std::map<Address, std::set<std::uint64_t>> FakeConnector::standing() const {
  std::map<Address, std::set<std::uint64_t>> numbers;
  for (const auto& [number, wish] : attempts_) {
    if (wish.connected && !wish.ended) numbers[wish.address].insert(number);
  }
  return numbers;
}

}  // namespace signalbox::testing
