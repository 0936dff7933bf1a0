// SPDX-License-Identifier: Apache-2.0
#include "xds/discovery_server.hpp"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/client/resource_text.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;

constexpr std::size_t kRememberedClosedStreams = 64;
constexpr std::size_t kRememberedNacks = 1000;

// Whether a response of this type is complete: a resource that the response lacks does not exist.
bool is_complete_by_protocol(absl::string_view type_url) {
  return type_url == kListenerTypeUrl || type_url == kClusterTypeUrl;
}

// Returns the end of the error text for an absent resource: which resources of its type exist.
std::string names_in(absl::string_view type_url,
                     const std::map<std::string, std::string>& resources) {
  const auto type = resource_type_of(type_url);
  const absl::string_view kind = type ? to_string(*type) : api_name(type_url);
  if (resources.empty()) return absl::StrCat(", which has no ", kind, " resource");
  std::vector<std::string> names;
  for (const auto& [name, bytes] : resources)
    names.push_back(name);
  return absl::StrCat("; its ", kind, " resources are: ", listed(names));
}

// The send order of types. Clusters are sent before the routes that name them, so that the client
// can have the clusters first.
int order_of(absl::string_view type_url) {
  if (type_url == kClusterTypeUrl) return 0;
  if (type_url == kClusterLoadAssignmentTypeUrl) return 1;
  if (type_url == kListenerTypeUrl) return 2;
  return 3;
}

bool wants_one_of(const TypeRecord& record, const std::set<std::string>& names) {
  return record.wildcard || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return record.names.contains(name);
         });
}

void record_answer(const DiscoveryRequest& request,
                   StreamId stream,
                   TypeRecord& record,
                   std::vector<Nack>& nacks) {
  if (request.has_error_detail()) {
    if (nacks.size() == kRememberedNacks) nacks.erase(nacks.begin());
    nacks.push_back({.stream = stream,
                     .type_url = request.type_url(),
                     .nonce = request.response_nonce(),
                     .version = request.version_info(),
                     .code = request.error_detail().code(),
                     .detail = request.error_detail().message()});
  } else if (!request.response_nonce().empty()) {
    record.acked_nonce = request.response_nonce();
    record.acked_version = request.version_info();
  }
}

// Stores the names of the request; returns the names that are new.
std::set<std::string> record_names(const DiscoveryRequest& request,
                                   bool first,
                                   TypeRecord& record) {
  std::set<std::string> names(request.resource_names().begin(), request.resource_names().end());
  if (is_complete_by_protocol(request.type_url())) {
    record.wildcard = names.contains("*") || (names.empty() && (first || record.wildcard));
  }
  std::set<std::string> added;
  std::set_difference(names.begin(),
                      names.end(),
                      record.names.begin(),
                      record.names.end(),
                      std::inserter(added, added.end()));
  record.names = std::move(names);
  return added;
}

}  // namespace

std::size_t DiscoveryRecord::open_streams() const {
  return static_cast<std::size_t>(std::count_if(
      streams.begin(), streams.end(), [](const auto& stream) { return stream.open; }));
}

OutgoingResponses DiscoveryServer::replace(const std::vector<ResourceBytes>& resources) {
  Changes changes;
  std::set<std::pair<std::string, std::string>> kept;
  for (const auto& resource : resources) {
    change(resource, changes);
    kept.emplace(resource.type_url, resource.name);
  }
  Changes gone;
  for (const auto& [type_url, type] : types_) {
    for (const auto& [name, bytes] : type.resources) {
      if (!kept.contains({type_url, name})) gone[type_url].insert(name);
    }
  }
  for (const auto& [type_url, names] : gone) {
    for (const auto& name : names)
      erase(type_url, name, changes);
  }
  return push(changes);
}

OutgoingResponses DiscoveryServer::update(const std::vector<ResourceBytes>& resources) {
  Changes changes;
  for (const auto& resource : resources)
    change(resource, changes);
  return push(changes);
}

OutgoingResponses DiscoveryServer::remove(absl::string_view type_url, absl::string_view name) {
  Changes changes;
  erase(std::string(type_url), std::string(name), changes);
  return push(changes);
}

StreamId DiscoveryServer::open_stream() {
  record_.streams.push_back({.id = next_stream_++, .open = true, .node_id = {}, .types = {}});
  ++record_.streams_opened;
  return record_.streams.back().id;
}

void DiscoveryServer::close_stream(StreamId stream) {
  stream_of(stream).open = false;
  auto& streams = record_.streams;
  if (streams.size() - record_.open_streams() <= kRememberedClosedStreams) return;
  streams.erase(std::find_if(
      streams.begin(), streams.end(), [](const auto& candidate) { return !candidate.open; }));
}

absl::StatusOr<OutgoingResponses> DiscoveryServer::receive(StreamId stream,
                                                           const std::string& bytes) {
  DiscoveryRequest request;
  if (!request.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("the bytes are no DiscoveryRequest");
  }
  if (request.type_url().empty()) {
    return absl::InvalidArgumentError("a request on an aggregated stream needs a type_url");
  }
  StreamRecord& client = stream_of(stream);
  if (request.has_node()) client.node_id = request.node().id();

  TypeRecord& record = client.types[request.type_url()];
  const bool first = ++record.requests == 1;
  if (first) {
    record.initial_version = request.version_info();
  } else if (request.response_nonce() != record.sent_nonce) {
    ++record_.stale_requests;
    return OutgoingResponses{};
  } else {
    record_answer(request, stream, record, record_.nacks);
  }

  const std::set<std::string> added = record_names(request, first, record);
  if (!first && added.empty()) return OutgoingResponses{};
  const auto& have = types_[request.type_url()].resources;
  const bool have_one = std::any_of(
      added.begin(), added.end(), [&](const std::string& name) { return have.contains(name); });
  const bool says_all = is_complete_by_protocol(request.type_url()) || !absence_.empty();
  if (!have_one && !says_all) return OutgoingResponses{};
  return OutgoingResponses{respond(client, request.type_url())};
}

void DiscoveryServer::change(const ResourceBytes& resource, Changes& changes) {
  auto& resources = types_[resource.type_url].resources;
  const auto [place, is_new] = resources.try_emplace(resource.name, resource.bytes);
  if (!is_new && place->second == resource.bytes) return;
  // A new string, because assigning to the old one would keep the memory of a longer old value.
  place->second = std::string(resource.bytes);
  changes[resource.type_url].insert(resource.name);
}

void DiscoveryServer::erase(const std::string& type_url,
                            const std::string& name,
                            Changes& changes) {
  if (types_[type_url].resources.erase(name) > 0) changes[type_url].insert(name);
}

OutgoingResponses DiscoveryServer::push(const Changes& changes) {
  std::vector<std::string> in_order;
  for (const auto& [type_url, names] : changes)
    in_order.push_back(type_url);
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& left, const auto& right) {
    return order_of(left) < order_of(right);
  });

  OutgoingResponses responses;
  for (const std::string& type_url : in_order) {
    ++types_[type_url].version;
    for (StreamRecord& stream : record_.streams) {
      const auto wanted = stream.types.find(type_url);
      if (!stream.open || wanted == stream.types.end()) continue;
      if (!wants_one_of(wanted->second, changes.at(type_url))) continue;
      responses.push_back(respond(stream, type_url));
    }
  }
  return responses;
}

OutgoingResponse DiscoveryServer::respond(StreamRecord& stream, const std::string& type_url) {
  const TypeState& type = types_[type_url];
  TypeRecord& record = stream.types[type_url];
  DiscoveryResponse response;
  response.set_type_url(type_url);
  response.set_version_info(std::to_string(type.version));
  response.set_nonce(std::to_string(next_nonce_++));
  response.mutable_control_plane()->set_identifier("signalbox");
  for (const auto& [name, bytes] : type.resources) {
    if (!record.wildcard && !record.names.contains(name)) continue;
    auto& any = *response.add_resources();
    any.set_type_url(type_url);
    any.set_value(bytes);
  }
  std::string absence;
  for (const std::string& name : record.names) {
    if (absence_.empty() || name == "*" || type.resources.contains(name)) continue;
    if (absence.empty()) absence = absl::StrCat(absence_, names_in(type_url, type.resources));
    auto& error = *response.add_resource_errors();
    error.mutable_resource_name()->set_name(name);
    error.mutable_error_detail()->set_code(static_cast<int>(absl::StatusCode::kNotFound));
    error.mutable_error_detail()->set_message(absence);
  }
  record.sent_version = response.version_info();
  record.sent_nonce = response.nonce();
  ++record.responses;
  return {.stream = stream.id, .bytes = response.SerializeAsString()};
}

StreamRecord& DiscoveryServer::stream_of(StreamId stream) {
  const auto place = std::find_if(record_.streams.begin(),
                                  record_.streams.end(),
                                  [&](const auto& candidate) { return candidate.id == stream; });
  SIGNALBOX_INVARIANT(place != record_.streams.end(), "the stream is open");
  return *place;
}

}  // namespace signalbox::xds
