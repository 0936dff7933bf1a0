// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/server.hpp"

#include <chrono>
#include <utility>

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/fleet/resources.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fleet {

using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;

Server::Server(testing::FakeClock& clock, Record& record, double capacity, Deliver deliver)
    : clock_(clock), record_(record), capacity_(capacity), deliver_(std::move(deliver)) {
  for (const ResourceType type : kTypes)
    publish(type);
}

// --- arrivals ---------------------------------------------------------------

void Server::dial(ConnectionId connection) {
  if (!is_up_) {
    ++record_.at(clock_.now()).refused;
    deliver_(connection, Ended{});
    return;
  }
  ++record_.at(clock_.now()).connections;
  connections_.emplace(connection, Subscriptions());
  add({connection, Handshake{}, clock_.now()});
}

void Server::hang_up(ConnectionId connection) {
  connections_.erase(connection);
}

void Server::receive(ConnectionId connection, std::string bytes) {
  if (!connections_.contains(connection)) return;
  ++record_.at(clock_.now()).requests;
  add({connection, Request{std::move(bytes)}, clock_.now()});
}

// --- the scenario's orders --------------------------------------------------

void Server::stop() {
  is_up_ = false;
  is_working_ = false;
  ++epoch_;
  queue_.clear();
  for (const auto& [connection, subscriptions] : std::exchange(connections_, {}))
    deliver_(connection, Ended{});
}

void Server::publish(ResourceType type, bool valid) {
  Published& newest = published(type);
  ++newest.version;
  newest.bytes = response_of(type, newest.version, valid);
  for (auto& [connection, subscriptions] : connections_) {
    const auto found = subscriptions.find(type);
    if (found == subscriptions.end()) continue;
    if (!std::exchange(found->second.is_queued, true)) add({connection, Push{type}, clock_.now()});
  }
}

std::array<std::uint64_t, kTypes.size()> Server::versions() const {
  std::array<std::uint64_t, kTypes.size()> versions{};
  for (std::size_t i = 0; i < versions.size(); ++i)
    versions[i] = published_[i].version;
  return versions;
}

// --- work -------------------------------------------------------------------

void Server::add(Work work) {
  queue_.push_back(std::move(work));
  if (!std::exchange(is_working_, true)) work_on_next();
}

void Server::work_on_next() {
  const auto cost =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1) / capacity_);
  record_.add_wait(clock_.now() - queue_.front().arrived);
  clock_.after_exactly(cost, [this, epoch = epoch_] {
    if (epoch != epoch_) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    run(work);
    is_working_ = !queue_.empty();
    if (is_working_) work_on_next();
  });
}

void Server::run(const Work& work) {
  const auto found = connections_.find(work.connection);
  if (found == connections_.end()) return record_.add_wasted();
  std::visit([&](const auto& what) { on(work.connection, found->second, what); }, work.what);
}

void Server::on(ConnectionId connection, Subscriptions& /*subscriptions*/, const Handshake&) {
  deliver_(connection, Accepted{});
}

void Server::on(ConnectionId connection, Subscriptions& subscriptions, const Request& request) {
  DiscoveryRequest proto;
  const bool is_request = proto.ParseFromString(request.bytes);
  const auto type = xds::resource_type_of(proto.type_url());
  SIGNALBOX_INVARIANT(is_request && type.has_value(), "a client sends discovery requests");
  Subscription& subscription = subscriptions[*type];
  const bool is_first = proto.response_nonce().empty();
  if (!is_first) {
    if (proto.response_nonce() != std::to_string(subscription.nonce)) return;  // A3
    subscription.is_unanswered = false;
  }
  if (proto.has_error_detail()) record_.add_nack(connection.client);
  const bool is_behind = subscription.sent != published(*type).version;
  if (is_first || is_behind || (sends_again_ && proto.has_error_detail()))
    respond(connection, *type, subscription);
}

void Server::on(ConnectionId connection, Subscriptions& subscriptions, const Push& push) {
  Subscription& subscription = subscriptions.at(push.type);
  subscription.is_queued = false;
  if (!subscription.is_unanswered && subscription.sent != published(push.type).version)
    respond(connection, push.type, subscription);
}

void Server::respond(ConnectionId connection, ResourceType type, Subscription& subscription) {
  const Published& newest = published(type);
  subscription.sent = newest.version;
  subscription.nonce = ++nonces_;
  subscription.is_unanswered = true;
  DiscoveryResponse nonce;
  nonce.set_nonce(std::to_string(subscription.nonce));
  deliver_(connection, Response{newest.bytes + nonce.SerializeAsString()});
}

}  // namespace signalbox::fleet
