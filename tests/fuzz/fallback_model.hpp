// SPDX-License-Identifier: Apache-2.0
//
// FallbackModel — a small model of an xDS client with several servers: which server is active, and
// what watchers must be told.
//
//   what happened (watch, failure, answer, time) ─▶ [FallbackModel] ─▶ which server is asked what
//                                                                 └──▶ what each watcher has
//
// It is written from gRFC A71, not from xds/client, and shares no code with it.
//
// Rules
//   F1  An authority uses its servers from the best one down to the active one, and asks each of
//       them for all watched resources. Servers that no authority uses are disconnected.
//   F2  An authority falls back to its next server exactly when the active one has failed, no
//       better one works, and a watched resource has neither content nor error.
//   F3  A valid watched resource from a better server makes that server active, wherever the
//       resource is in the response.
//   F4  When the active server has failed and a better one works, the better one becomes active.
//   F5  Watchers learn of a server's failure while that server is active. Cached resources stay
//       (A57, A88).
//   F6  A resource without content that the active server was asked for on a live stream and does
//       not send for 15 s does not exist (A57). If the server's timer_is_transient_error is set, it
//       is UNAVAILABLE after 30 s (A88). Another server's response moves no deadline; a resource or
//       an error in it ends the wait.
//   F7  Only the server that sent a resource, and the active server, can remove it, and only with
//       fail_on_data_errors (A88).
//   F8  An authority without watched resources goes back to its best server. A failed server that
//       is asked for nothing is disconnected. A disconnected server no longer counts as failed.

#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/xds_events.hpp"
#include "tests/fuzz/told.hpp"

namespace signalbox::fuzz {

inline constexpr std::size_t kServers = 3;
inline constexpr std::size_t kAuthorities = 2;

struct ServerRules {
  bool fail_on_data_errors = false;
  bool timer_is_transient_error = false;
};

struct FallbackOptions {
  std::array<std::vector<ServerId>, kAuthorities> authorities;  ///< Best first.
  std::array<ServerRules, kServers> servers;
};

/// Identifies a resource in the model.
struct FallbackKey {
  std::size_t authority = 0;
  ResourceType type = ResourceType::kCluster;
  std::size_t id = 0;

  friend auto operator<=>(const FallbackKey&, const FallbackKey&) = default;
};

/// The answer of one server about one resource.
struct Said {
  std::optional<int> content;  ///< Set when the server sends a valid resource.
  /// Without content: the error. UNAVAILABLE stands for a refused resource.
  absl::StatusCode wrong = absl::StatusCode::kOk;
};

class FallbackModel {
 public:
  explicit FallbackModel(FallbackOptions options) : options_(std::move(options)) {}

  // --- what happened ---
  void watch(WatcherId watcher, const FallbackKey& key);
  void unwatch(WatcherId watcher, const FallbackKey& key);
  void gone(WatcherId watcher);
  /// `keys`: all resources of `type` that the server's live stream asks for; empty without a
  /// stream.
  void asked(ServerId server, ResourceType type, const std::set<FallbackKey>& keys);
  void changed(ServerId server, bool well);
  void answered(ServerId server, ResourceType type, const std::map<FallbackKey, Said>& said);
  /// Only time passed, until `now`.
  void advance(Instant now);

  // --- what must be ---
  bool is_used(ServerId server) const;

  bool is_well(ServerId server) const { return !failed_.contains(server); }

  bool is_watched(WatcherId watcher, const FallbackKey& key) const;
  std::set<FallbackKey> wanted(ServerId server, ResourceType type) const;
  /// The server that sent the resource in use, or that is expected to send it.
  ServerId serving(const FallbackKey& key) const;
  bool is_right(WatcherId watcher, const FallbackKey& key, const Told& told) const;
  std::string expected(const FallbackKey& key) const;
  std::set<FallbackKey> watched() const;

 private:
  struct Entry {
    std::set<WatcherId> watchers;
    std::optional<int> content;
    ServerId origin = 0;
    absl::StatusCode wrong = absl::StatusCode::kOk;
    std::set<ServerId> asked;  // The servers that a live stream asks for the resource.
    // The servers in use that sent the resource or an error by its name. A request without the name
    // removes its server.
    std::set<ServerId> answered;
    std::optional<Instant> deadline;
  };

  ServerId active(std::size_t authority) const;
  bool uses(std::size_t authority, ServerId server) const;
  bool is_asked(ServerId server) const;
  bool is_awaiting(std::size_t authority) const;
  void turn_to(std::size_t authority, std::size_t place);
  void choose(std::size_t authority);
  void update_deadline(const FallbackKey& key, Entry& entry);
  void refuse(ServerId server, const FallbackKey& key, absl::StatusCode wrong, bool is_loss);
  void leave(const FallbackKey& key, WatcherId watcher);
  void begin_anew();

  FallbackOptions options_;
  // The index of the active server in the authority's list.
  std::array<std::size_t, kAuthorities> places_{};
  std::set<ServerId> failed_;
  std::map<FallbackKey, Entry> entries_;
  Instant now_;
};

}  // namespace signalbox::fuzz
