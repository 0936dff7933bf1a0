// SPDX-License-Identifier: Apache-2.0
//
// The protocol core of a control plane: state of the world, without the transport.
//
//   request bytes ─────▶ [DiscoveryServer] ─▶ response bytes
//   resources set, changed, removed ─▶
//
// DiscoveryServer has two shells. `signalbox serve` puts it behind gRPC (tools/control_plane). A
// resource file replaces a control plane through it (actors/io/file_ads_transport).
//
// The core keeps the resources by type and name, and the subscriptions and answers of each stream's
// client. A change is pushed to the streams that want one of the changed names. A stream's first
// request of a type is answered, and so is a later request with a new name. There is no answer if
// none of the new names exists, unless the type is listeners or clusters, or the server reports
// absent resources (see the constructor). record() is a history of the clients' requests, for tests
// and for the shells: file_ads_transport reports NACKs from it.
//
// Invariants
//   D1  A response has every resource of its type that the stream wants and the server has.
//   D2  A request changes no subscription, and is not answered, if its nonce is not the last nonce
//       sent for its type. A stream's first request of a type is always taken.
//   D3  The version of a type rises by one in each step that changes resources of that type, and
//       not otherwise.
//
// Source: the xDS transport protocol, state-of-the-world variant, aggregated (ADS).

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/resource_file.hpp"

namespace signalbox::xds {

using StreamId = std::uint64_t;

/// The state of one type on one stream: the client's last request, and the last response sent.
struct TypeRecord {
  std::set<std::string> names;  ///< Names the client wants; see `wildcard`.
  bool wildcard = false;        ///< The client wants all resources (listeners, clusters only).
  std::string initial_version;  ///< version_info of the stream's first request of this type.
  std::string sent_version, sent_nonce;
  std::string acked_version, acked_nonce;
  int requests = 0;
  int responses = 0;
};

struct StreamRecord {
  StreamId id = 0;
  bool open = true;
  std::string node_id;
  std::map<std::string, TypeRecord> types;  ///< The state of each type. Keys: type URLs.
};

struct Nack {
  StreamId stream = 0;
  std::string type_url, nonce;
  std::string version;  ///< The version that the client still uses.
  int code = 0;
  std::string detail;
};

/// The history of all clients. Only the newest closed streams and NACKs are kept.
struct DiscoveryRecord {
  std::vector<StreamRecord> streams;  ///< The streams, in the order in which they were opened.
  std::vector<Nack> nacks;
  std::size_t streams_opened = 0;
  std::size_t stale_requests = 0;

  std::size_t open_streams() const;
};

struct OutgoingResponse {
  StreamId stream = 0;
  std::string bytes;
};

using OutgoingResponses = std::vector<OutgoingResponse>;

class DiscoveryServer {
 public:
  /// The server sends a NOT_FOUND error (resource_errors of A88) for each requested resource that
  /// does not exist, so that clients do not wait for the resource. `absence` is the first part of
  /// the error text; names of existing resources of the type follow it. If `absence` is empty, the
  /// server sends no such errors, like most servers.
  explicit DiscoveryServer(std::string absence = {}) : absence_(std::move(absence)) {}

  /// Replaces all resources: a resource that is not in the list is removed.
  OutgoingResponses replace(const std::vector<ResourceBytes>& resources);
  /// Adds or changes these resources; all other resources stay.
  OutgoingResponses update(const std::vector<ResourceBytes>& resources);
  OutgoingResponses remove(absl::string_view type_url, absl::string_view name);

  StreamId open_stream();
  void close_stream(StreamId stream);
  /// Returns INVALID_ARGUMENT if the bytes are no valid request. The caller then ends the stream
  /// with that status.
  absl::StatusOr<OutgoingResponses> receive(StreamId stream, const std::string& bytes);

  const DiscoveryRecord& record() const { return record_; }

 private:
  struct TypeState {
    std::map<std::string, std::string> resources;  // Serialised resources. Keys: names.
    std::uint64_t version = 0;
  };

  using Changes = std::map<std::string, std::set<std::string>>;  // Changed names by type URL.

  void change(const ResourceBytes& resource, Changes& changes);
  void erase(const std::string& type_url, const std::string& name, Changes& changes);
  OutgoingResponses push(const Changes& changes);
  OutgoingResponse respond(StreamRecord& stream, const std::string& type_url);
  StreamRecord& stream_of(StreamId stream);

  std::string absence_;
  std::map<std::string, TypeState> types_;
  DiscoveryRecord record_;
  std::uint64_t next_stream_ = 1;
  std::uint64_t next_nonce_ = 1;
};

}  // namespace signalbox::xds
