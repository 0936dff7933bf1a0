// SPDX-License-Identifier: Apache-2.0
//
// AdsModel — what watchers and the server must see of an xDS client, in as few words as possible.
//
//   what happened (watch, response, stream lost, time) ─▶ [AdsModel] ─▶ what each watcher must have
//   each request of the client ─────────────────────────▶ [AdsModel] ─▶ must it be so?
//
// It is written from the gRFCs, not from xds/client, and shares no code with it: a set of watched
// keys, the last good content of each, what is wrong with it.
//
// Rules
//   M1  A response to what was asked is answered by its nonce, an ACK with its version or a NACK
//       with the last accepted one. A NACK may wait, and a newer answer may take its place (A27,
//       A46).
//   M2  The names last asked for, of each type, are those that somebody watches; a change may wait
//       for an answer, but no longer than kPatience.
//   M3  Streams are opened a second apart at least, and while something is watched there is always
//       one, or one to come (B8, A57).
//   M4  The node is in the first request of a stream and in no other.
//   M5  A watcher has the last good content, and beside it an error exactly while something is
//       wrong; without a good one it has the error of the resource, else that of the server (A88).
//   M6  What was asked for on a live stream and is not mentioned for 15 s does not exist (A57);
//       twice as long where that may pass (A88).
//   M7  A version is sent only for types of which something was watched ever since it came, and
//       was asked for ever since.

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
  /// By the server, or because of what it sent.
  void closed();
  void received(const SentResponse& response);
  /// What came is no response, and the stream is over for that.
  void refused();
  /// As far as `now` nothing else happened.
  void advance(Instant now);

  // --- what must be ---
  /// Aborts where the client must not ask so.
  void check_request(const AdsRequest& request);
  /// Whether a watcher that was told this knows what it must.
  bool is_right(WatcherId watcher, const ResourceKey& key, const Told& told) const;
  std::string expected(const ResourceKey& key) const;
  std::set<std::string> watched(ResourceType type) const;
  bool is_watched(WatcherId watcher, const ResourceKey& key) const;

  /// At the end of a step. `settled`: long enough ago for a NACK that waits.
  void check_subscriptions(bool settled);

  bool is_live() const { return live_; }

  bool is_asked(ResourceType type) const { return live_ && asked_.contains(type); }

  bool is_anything_watched() const { return !entries_.empty(); }

 private:
  struct Entry {
    std::set<WatcherId> watchers;
    std::optional<int> content;
    absl::StatusCode wrong = absl::StatusCode::kOk;
    bool asked = false;     // On this stream.
    bool answered = false;  // By its name, on this stream, since it was last asked for.
    std::optional<Instant> deadline;
  };

  struct Asked {
    std::set<std::string> names;
    std::optional<Instant> differs;  // Since then they are not those that are watched.
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
