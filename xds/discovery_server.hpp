// SPDX-License-Identifier: Apache-2.0
//
// The thinking half of a control plane: the state-of-the-world protocol, without streams.
//
//   request bytes ─────▶ [DiscoveryServer] ─▶ response bytes
//   resources set, changed, removed ─▶
//
// It has two shells: `signalbox serve` puts it behind gRPC (tools/control_plane), and a resource
// file stands in for a server through it (actors/io/file_ads_transport).
//
// It keeps the resources by type and name, and what every stream's client wants and said. A change
// is pushed to the streams that want one of the changed names; a request is answered when it asks
// for something new. What clients said stays readable: tests look there.
//
// Invariants
//   D1  A response names every resource of its type that the stream wants and we have.
//   D2  A request with another nonce than the last one sent for its type changes nothing.
//   D3  The version of a type rises exactly when a resource of that type changes.
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

/// What a stream's client last said of one type, and what it was last sent.
struct TypeRecord {
  std::set<std::string> names;  ///< Wanted; see `wildcard`.
  bool wildcard = false;        ///< It wants all there are (listeners and clusters only).
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
  std::map<std::string, TypeRecord> types;  ///< By type URL.
};

struct Nack {
  StreamId stream = 0;
  std::string type_url, nonce;
  std::string version;  ///< What the client still uses.
  int code = 0;
  std::string detail;
};

/// What clients did so far. The oldest closed streams and NACKs are forgotten.
struct DiscoveryRecord {
  std::vector<StreamRecord> streams;  ///< In the order of their opening.
  std::vector<Nack> nacks;
  std::size_t streams_opened = 0;
  std::size_t stale_requests = 0;

  std::size_t open_streams() const;
  /// The newest open stream's record of a type; nullptr where there is none.
  const TypeRecord* newest(absl::string_view type_url) const;
};

struct OutgoingResponse {
  StreamId stream = 0;
  std::string bytes;
};

using OutgoingResponses = std::vector<OutgoingResponse>;

class DiscoveryServer {
 public:
  /// `absence`: what to tell of each resource that was asked for and is not there (resource_errors
  /// of A88, NOT_FOUND), so that nobody waits for it; empty: nothing, as most servers do.
  explicit DiscoveryServer(std::string absence = {}) : absence_(std::move(absence)) {}

  /// Everything there is from now on; what is not named is removed.
  OutgoingResponses replace(const std::vector<ResourceBytes>& resources);
  /// Adds or changes these; the others stay.
  OutgoingResponses update(const std::vector<ResourceBytes>& resources);
  OutgoingResponses remove(absl::string_view type_url, absl::string_view name);

  StreamId open_stream();
  void close_stream(StreamId stream);
  /// INVALID_ARGUMENT where the bytes are no request: the stream is to be ended with it.
  absl::StatusOr<OutgoingResponses> receive(StreamId stream, const std::string& bytes);

  const DiscoveryRecord& record() const { return record_; }

 private:
  struct TypeState {
    std::map<std::string, std::string> resources;  // By name.
    std::uint64_t version = 0;
  };

  using Changes = std::map<std::string, std::set<std::string>>;  // Names by type URL.

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
