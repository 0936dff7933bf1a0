// SPDX-License-Identifier: Apache-2.0
//
// FallbackModel — which server serves, and what watchers know, in as few words as possible.
//
//   what happened (watch, failure, answer, time) ─▶ [FallbackModel] ─▶ who is asked for what
//                                                                 └──▶ what each watcher has
//
// It is written from gRFC A71, not from xds/client, and shares no code with it.
//
// Rules
//   F1  An authority uses its servers from the best one down to the active one, and asks each of
//       them for all that is watched. Servers that nobody uses are left.
//   F2  It falls back to the next one exactly when the active one has failed and something is
//       watched that nothing is known of.
//   F3  A valid resource of a better server makes that one active, wherever it is in the response.
//   F4  When the active one has failed and a better one is well, that one is active.
//   F5  A server's failure is told while it is the active one; what is cached stays (A57, A88).
//   F6  What the active server was asked for on a live stream and does not send for 15 s does not
//       exist (A57); twice as long where that may pass (A88). What others do moves no deadline.
//   F7  A server takes away what it sent, or is asked for now as the active one (A88).
//   F8  An authority of which nothing is watched begins anew, and so does a server that was left.

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

/// A resource, as the model knows it.
struct FallbackKey {
  std::size_t authority = 0;
  ResourceType type = ResourceType::kCluster;
  std::size_t id = 0;

  friend auto operator<=>(const FallbackKey&, const FallbackKey&) = default;
};

/// What a server says of one resource.
struct Said {
  std::optional<int> content;  ///< Of a valid one.
  /// Otherwise what is wrong: UNAVAILABLE for one that is refused.
  absl::StatusCode wrong = absl::StatusCode::kOk;
};

class FallbackModel {
 public:
  explicit FallbackModel(FallbackOptions options) : options_(std::move(options)) {}

  // --- what happened ---
  void watch(WatcherId watcher, const FallbackKey& key);
  void unwatch(WatcherId watcher, const FallbackKey& key);
  void gone(WatcherId watcher);
  /// All that the live stream of a server was asked for; nothing once it is gone.
  void asked(ServerId server, ResourceType type, const std::set<FallbackKey>& keys);
  void changed(ServerId server, bool well);
  void answered(ServerId server, ResourceType type, const std::map<FallbackKey, Said>& said);
  /// As far as `now` nothing else happened.
  void advance(Instant now);

  // --- what must be ---
  bool is_used(ServerId server) const;

  bool is_well(ServerId server) const { return !failed_.contains(server); }

  bool is_watched(WatcherId watcher, const FallbackKey& key) const;
  std::set<FallbackKey> wanted(ServerId server, ResourceType type) const;
  /// Where what is in use came from, or is expected from.
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
    std::set<ServerId> asked;     // On live streams.
    std::set<ServerId> answered;  // By its name, on live streams.
    std::optional<Instant> deadline;
  };

  ServerId active(std::size_t authority) const;
  bool uses(std::size_t authority, ServerId server) const;
  bool is_awaiting(std::size_t authority) const;
  void turn_to(std::size_t authority, std::size_t place);
  void choose(std::size_t authority);
  void update_deadline(const FallbackKey& key, Entry& entry);
  void refuse(ServerId server, const FallbackKey& key, absl::StatusCode wrong, bool is_loss);
  void leave(const FallbackKey& key, WatcherId watcher);
  void begin_anew();

  FallbackOptions options_;
  std::array<std::size_t, kAuthorities> places_{};  // Of the active ones.
  std::set<ServerId> failed_;
  std::map<FallbackKey, Entry> entries_;
  Instant now_;
};

}  // namespace signalbox::fuzz
