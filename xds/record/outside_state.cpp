// SPDX-License-Identifier: Apache-2.0
#include "xds/record/outside_state.hpp"

#include <utility>

#include "absl/strings/match.h"

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/type_url.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::discovery::v3::DiscoveryResponse;

// The name of a resource: field 1 of all four types, and field 3 of the message that wraps one.
// Empty: the bytes have no name.
std::string name_in(const ::google::protobuf::Any& any) {
  const bool is_wrapper = absl::EndsWith(any.type_url(), "/envoy.service.discovery.v3.Resource");
  const int field = is_wrapper ? 3 : 1;
  WireReader reader(any.value());
  while (const auto value = reader.next()) {
    if (value->field == field && value->content) return std::string(*value->content);
  }
  return {};
}

// Whether each response has all resources of its type.
bool has_all(ResourceType type) {
  return type == ResourceType::kListener || type == ResourceType::kCluster;
}

// The attempts of a state's failures need numbers that no recorded attempt has.
constexpr std::uint64_t kFirstOfFailures = std::uint64_t{1} << 63U;

}  // namespace

void OutsideState::apply(const OutsideEvent& event) {
  std::visit([this](const auto& what) { on(what); }, event);
}

// The client forgets no resource when a stream ends, so the resources stay.
void OutsideState::on(const StreamBegan& event) {
  Stream& stream = streams_[event.server];
  stream.number = event.stream;
  stream.is_open = false;
  stream.ended.reset();
}

void OutsideState::on(const StreamReceived& event) {
  DiscoveryResponse response;
  if (!response.ParseFromString(event.bytes)) return;
  const auto type = resource_type_of(response.type_url());
  if (!type) return;
  Resources& known = streams_[event.server].by_type[*type];
  known.version = response.version_info();
  known.nonce = response.nonce();
  if (has_all(*type)) known.by_name.clear();
  for (const auto& any : response.resources())
    known.by_name.insert_or_assign(name_in(any), any.SerializeAsString());
}

void OutsideState::on(const ConnectMade& event) {
  const auto found = attempts_.find(event.attempt);
  if (found == attempts_.end()) return;
  found->second.is_made = true;
  failures_.erase(found->second.peer);
}

void OutsideState::on(const ConnectEnded& event) {
  const auto found = attempts_.find(event.attempt);
  if (found == attempts_.end()) return;
  if (failures_.size() >= kMostFailures) failures_.erase(failures_.begin());
  // A lost connection is no failed attempt: the next attempt may succeed at once.
  if (!found->second.is_made) failures_.insert_or_assign(found->second.peer, event.why);
  attempts_.erase(found);
}

void OutsideState::on(const NameAnswered& event) {
  if (names_.size() >= kMostAnswers) names_.erase(names_.begin());
  names_.insert_or_assign(event.name, event);
}

void OutsideState::on(const ProbeAnswered& event) {
  if (probes_.size() >= kMostAnswers) probes_.erase(probes_.begin());
  probes_.insert_or_assign(event.probe, event);
}

std::vector<OutsideEvent> OutsideState::events() const {
  std::vector<OutsideEvent> all;
  all.reserve(targets_.size() + names_.size() + probes_.size() +
              2 * (failures_.size() + attempts_.size()));
  for (const std::string& target : targets_)
    all.emplace_back(TargetOpened{target});
  for (const auto& [server, stream] : streams_) {
    all.emplace_back(StreamBegan{server, stream.number});
    if (stream.is_open || !stream.by_type.empty())
      all.emplace_back(StreamOpened{server, stream.number});
    for (const auto& [type, known] : stream.by_type) {
      DiscoveryResponse response;
      response.set_type_url(std::string(type_url_of(type)));
      response.set_version_info(known.version);
      response.set_nonce(known.nonce);
      for (const auto& [name, bytes] : known.by_name)
        response.add_resources()->ParseFromString(bytes);
      all.emplace_back(StreamReceived{server, stream.number, response.SerializeAsString()});
    }
    if (stream.ended) all.emplace_back(StreamClosed{server, stream.number, *stream.ended});
  }
  std::uint64_t number = kFirstOfFailures;
  for (const auto& [peer, why] : failures_) {
    all.emplace_back(ConnectBegan{number, peer});
    all.emplace_back(ConnectEnded{number++, why});
  }
  for (const auto& [attempt, state] : attempts_) {
    all.emplace_back(ConnectBegan{attempt, state.peer});
    if (state.is_made) all.emplace_back(ConnectMade{attempt});
  }
  for (const auto& [name, answered] : names_)
    all.emplace_back(answered);
  for (const auto& [probe, answered] : probes_)
    all.emplace_back(answered);
  return all;
}

}  // namespace signalbox::xds
