// SPDX-License-Identifier: Apache-2.0
//
// AdsModel — a small model of an xDS client: what watchers must be told, and which requests are
// allowed.
//
//   what happened (watch, response, stream lost, time) ─▶ [AdsModel] ─▶ what each watcher must have
//   each request of the client ─────────────────────────▶ [AdsModel] ─▶ abort unless it is allowed
//
// It is written from the gRFCs, not from xds/client, and shares no code with it. Its state: for
// each watched key the last good content, the error and the deadline; for each type the accepted
// version and the last request; whether a stream is open, and whether the server has failed.
//
// Rules
//   M1  Each response of a type that was asked for is answered with its nonce: an ACK with the
//       response's version, or a NACK with the last accepted version. A NACK may be delayed, and a
//       newer answer may replace it (A27, A46).
//   M2  The names in the last request of a type are the watched names. A changed set may wait for
//       a response, but no longer than kPatience.
//   M3  Streams are opened at least a second apart. While something is watched, a stream is open or
//       will be opened (B8, A57).
//   M4  The node is in the first request of a stream and in no other.
//   M5  A watcher has the last good content of its resource, and beside it an ambient error exactly
//       while something is wrong. With fail_on_data_errors a refused or deleted resource loses its
//       content. Without content the watcher has the resource's error, or else the server's (A88).
//   M6  A resource without content that was requested on a live stream and is not sent for 15 s
//       does not exist (A57). If timer_is_transient_error is set, it is UNAVAILABLE after 30 s
//       (A88).
//   M7  A request has a version only if resources of its type were watched and requested without a
//       break since that version was received.
//   M8  The server is left exactly when it has failed and nothing is watched. It then no longer
//       counts as failed.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "messages/xds_events.hpp"
#include "tests/fuzz/ads_resources.hpp"
#include "tests/fuzz/told.hpp"

namespace signalbox::fuzz {

struct AdsRequest {
  ResourceType type = ResourceType::kListener;
  std::string version;
  std::string nonce;
  std::set<std::string> names;
  bool has_node = false;
  bool is_nack = false;
};

struct ModelOptions {
  bool fail_on_data_errors = false;
  bool timer_is_transient_error = false;
};

class AdsModel {
 public:
  explicit AdsModel(ModelOptions options) : options_(options) {}

  // --- what happened ---
  void watch(WatcherId watcher, const ResourceKey& key);
  void unwatch(WatcherId watcher, const ResourceKey& key);
  void gone(WatcherId watcher);
  void opening(Instant now);
  void opened(Instant now);
  /// The stream ended, or could not be opened.
  void closed();
  void received(const SentResponse& response);
  /// Received bytes are not a DiscoveryResponse, so the client ended the stream.
  void refused();
  /// The client has left the server.
  void left();
  /// Only time passed, until `now`.
  void advance(Instant now);

  // --- what must be ---
  /// Aborts when the client must not send this request now.
  void check_request(const AdsRequest& request);
  /// Whether `told`, the last that the watcher was told, is what the rules demand.
  bool is_right(WatcherId watcher, const ResourceKey& key, const Told& told) const;
  std::string expected(const ResourceKey& key) const;
  std::set<std::string> watched(ResourceType type) const;
  bool is_watched(WatcherId watcher, const ResourceKey& key) const;

  /// At the end of a step: aborts when the client must have left the server.
  void check_server() const;

  /// At the end of a step. `settled`: enough time has passed for a delayed NACK.
  void check_subscriptions(bool settled);

  bool is_live() const { return live_; }

  bool is_asked(ResourceType type) const { return live_ && asked_.contains(type); }

  bool is_anything_watched() const { return !entries_.empty(); }

 private:
  struct Entry {
    std::set<WatcherId> watchers;
    std::optional<int> content;
    absl::StatusCode wrong = absl::StatusCode::kOk;
    bool asked = false;  // Whether this stream's last request of the type names the resource.
    // This stream sent the resource or an error by its name, and no later request left the name
    // out.
    bool answered = false;
    std::optional<Instant> deadline;
  };

  struct Asked {
    std::set<std::string> names;
    std::optional<Instant> differs;  // Since when `names` are not the watched names.
    std::string nonce;
    bool answered = true;
    bool valid = true;
  };

  void refuse(Entry& entry, absl::StatusCode code);
  void leave(const ResourceKey& key, WatcherId watcher);
  void start_deadlines(ResourceType type, const std::set<std::string>& names);

  ModelOptions options_;
  std::map<ResourceKey, Entry> entries_;
  std::map<ResourceType, std::string> versions_;
  std::map<ResourceType, Asked> asked_;
  bool live_ = false;
  bool first_request_ = false;
  bool answered_ = false;
  bool failing_ = false;
  Instant now_;
  std::optional<Instant> last_opened_;
};

}  // namespace signalbox::fuzz
