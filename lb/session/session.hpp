// SPDX-License-Identifier: Apache-2.0
//
// Session — the data of one call's session, from the call's filters to its end (gRFC A55).
//
//   stateful_session: begin() ─▶ [Session] in the Pick ─▶ wish() ─▶ SessionArgs ─▶ the picker
//                                     │   ├─ read() ◀─ if no seat has the cookie ◀──┤
//                                     │   └─ settle() ◀─ Affinity ◀────────────────┘
//                                     └▶ the Set-Cookie of its response, or none
//
// A Session serves all picks of its call. It may outlive the configuration of its cookie, so it
// copies the parts that it needs. Each thread keeps ended Sessions, with their memory, for later
// calls, so a pick usually allocates nothing.
//
// Invariants
//   S1  A Set-Cookie exists only while the pick is complete, and names the endpoint of the pick.
//   S2  The picker only looks the cookie's hosts up among the cluster's endpoints. So a forged
//       cookie cannot send a call elsewhere (A55-18).

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "lb/session/sealed_cookie.hpp"
#include "lb/session/session_args.hpp"
#include "lb/session/session_cookie.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/counting/striped.hpp"
#include "messages/http_filter.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

/// The settings, keys and clocks for the sessions of one target.
struct SessionTerms {
  /// The target, such as "xds:///orders". A cookie sealed for one target cannot be used for
  /// another.
  std::string target;
  /// The clock, read only for calls with sessions. Unset: the time is always Instant().
  std::function<Instant()> now = nullptr;
  CookieSealPtr seal = nullptr;  ///< Null: cookies are not sealed, as in gRPC and Envoy.
  /// With a seal: unsealed cookies are accepted too, for clients that got theirs before sealing
  /// began.
  bool accepts_plain = false;
  /// The form in which unsealed cookies are written. Both forms are read (A55-45).
  CookieForm form = CookieForm::kGrpc;
  /// The wall clock, for `expires` in cookies of Envoy's form. Unset: those cookies have no expiry.
  std::function<std::uint64_t()> unix_seconds = nullptr;
  /// Receives a warning about a cookie that could not be used, on the thread that picks, at most
  /// once in kWarnInterval. Must neither block nor throw. Unset: no warnings.
  std::function<void(const std::string& text)> warn = nullptr;

  static constexpr Duration kWarnInterval = std::chrono::minutes(1);
};

/// The cookie of a stateful_session filter, prepared for calls.
class CompiledCookie {
 public:
  CompiledCookie(const SessionCookie& cookie, bool strict);

  absl::string_view path() const { return path_; }

  bool is_strict() const { return is_strict_; }

  absl::string_view name() const { return absl::string_view(text_).substr(0, name_size_); }

  /// The cookie's lifetime in seconds, at most 2^32 - 1; 0: the cookie has no lifetime.
  std::uint32_t ttl_seconds() const { return ttl_seconds_; }

  /// The cookie's name, followed by the attributes of its Set-Cookie. Sessions copy this text.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string path_;
  std::uint32_t name_size_;
  std::uint32_t ttl_seconds_;
  bool is_strict_;
};

/// Owns copies of two texts, side by side, so that few cache lines are written. They need no
/// allocation if they have at most 184 bytes together.
class KeptTexts {
 public:
  /// Precondition: neither text's data() is null, even if the text is empty.
  void assign(absl::string_view first, absl::string_view second) {
    first_size_ = static_cast<std::uint32_t>(first.size());
    size_ = static_cast<std::uint32_t>(first.size() + second.size());
    if (size_ <= short_.size()) [[likely]] {
      std::memcpy(short_.data(), first.data(), first.size());
      std::memcpy(short_.data() + first.size(), second.data(), second.size());
    } else {
      assign_long(first, second);
    }
  }

  absl::string_view first() const { return both().substr(0, first_size_); }

  absl::string_view second() const { return both().substr(first_size_); }

  /// About how many bytes are allocated beside the object itself.
  std::size_t memory() const { return long_.capacity(); }

 private:
  absl::string_view both() const {
    return {size_ <= short_.size() ? short_.data() : long_.data(), size_};
  }

  void assign_long(absl::string_view first, absl::string_view second);

  std::uint32_t first_size_ = 0;
  std::uint32_t size_ = 0;
  std::array<char, 184> short_;  // Only size_ bytes are set; longer texts are in long_.
  std::string long_;
};

struct alignas(kCacheLine) Session final : SessionHint {
  /// Begins the session of a call. `config` and the text of `found` must live until keep() is
  /// called. Precondition: the Session is new or cleared.
  void begin(const CompiledCookie& config, const FoundCookie& found) {
    begin(config, found, found.value ? CookieKey(*found.value) : CookieKey());
  }

  /// `key`: the hash of the cookie that was found.
  void begin(const CompiledCookie& config, const FoundCookie& found, const CookieKey& key) {
    config_ = &config;
    name_size_ = static_cast<std::uint32_t>(config.name().size());
    ttl_seconds_ = config.ttl_seconds();
    strict_ = config.is_strict();
    if (found.is_cut) flaw = CookieFlaw::kTooMany;
    if (found.value && found.value->size() > kLongestCookieValue) flaw = CookieFlaw::kTooLong;
    is_bad_ = flaw.has_value();
    is_read_ = is_bad_ || !found.value;
    value_ = is_read_ ? absl::string_view("", 0) : *found.value;
    key_ = is_read_ ? CookieKey() : key;
  }

  /// Copies what begin() borrowed from its arguments, which may be destroyed afterwards.
  void keep() {
    if (config_ == nullptr) return;
    kept_.assign(config_->text(), value_);
    value_ = kept_.second();
    config_ = nullptr;
  }

  /// Decodes the cookie, if that has not been done, and returns the hosts that it names. If the
  /// cookie cannot be used, `flaw` has the reason afterwards.
  absl::string_view read();

  /// The cluster of the call's cookie, perhaps as "cluster:NAME"; empty: none. Precondition: the
  /// cookie has been read.
  absl::string_view cluster() const { return own_.cluster; }

  /// Whether the call's cookie names a host. Precondition: the cookie has been read.
  bool has_cookie() const { return !own_.hosts.empty(); }

  /// The session's wish for the next pick. `seat`: where Seats::find() begins for the call's
  /// cookie; null: unknown.
  SessionArgs wish(Instant now, const Seat* seat = nullptr) {
    SessionArgs args;
    args.hosts = own_.hosts;
    args.strict = strict_ && (!is_read_ || has_cookie());
    args.now = now;
    if (is_elsewhere_) {
      args.hosts = hosts_;
    } else {
      if (terms->seal == nullptr) {
        args.key = key_;
        args.seat = seat;
      }
      if (!is_read_) args.unread = this;
    }
    return args;
  }

  /// Call it after a pick. Counts the AffinityResult, and writes the Set-Cookie if the response
  /// needs one (A55-21, A55-24). `stats`: null: nothing is counted. Precondition: no earlier pick
  /// of the call was complete, or forget() was called since.
  void settle(const Affinity& affinity,
              PickOutcome outcome,
              const ClusterName& cluster,
              const CallStats* stats) {
    if (affinity.as_cookie) [[likely]] {
      if (stats != nullptr) stats->count_affinity(affinity.result);
    } else {
      settle_elsewhere(affinity, outcome, cluster, stats);
    }
  }

  /// Must be called when the picked endpoint has received the call. A retry of the call then tries
  /// this endpoint first (A55-37).
  void reached();

  /// Must be called when the picked endpoint will not be used. Drops the Set-Cookie for it.
  void forget() {
    set_cookie_.clear();
    has_moved_ = false;
  }

  /// The Set-Cookie for the response; empty: none.
  const std::string& set_cookie() const { return set_cookie_; }

  /// The name of the session's cookie.
  absl::string_view name() const { return text().substr(0, name_size_); }

  /// Resets the Session for another call, but keeps its memory.
  void clear();

  /// About how many bytes the Session has allocated.
  std::size_t memory() const;

  /// The settings of the call's target. Set by make_session() and before each pick. Do not use it
  /// at other times: the settings may be destroyed.
  const SessionTerms* terms = nullptr;
  Session* next_spare = nullptr;  ///< The next in the thread's list of ended Sessions.
  /// The reason why the cookie is not used, until Sessions::tell_flaw() takes it.
  std::optional<CookieFlaw> flaw;

 private:
  // The name of the cookie, followed by the attributes of its Set-Cookie.
  absl::string_view text() const { return config_ != nullptr ? config_->text() : kept_.first(); }

  // Does settle()'s work when the picker did not report that the call went to the endpoint and the
  // cluster of its cookie.
  void settle_elsewhere(const Affinity& affinity,
                        PickOutcome outcome,
                        const ClusterName& cluster,
                        const CallStats* stats);
  std::optional<CookieFlaw> open();
  AffinityResult result_of(AffinityResult of_picker, const ClusterName& cluster) const;
  void write(absl::string_view hosts, const std::string& cluster);
  // `expires` for a cookie in Envoy's form that is written now, in Unix seconds; 0: it has no
  // expiry.
  std::uint64_t expires() const;

  // Fields that every call reads come first, so that they share few cache lines.
  const CompiledCookie* config_ = nullptr;  // Null after keep(), which copies its text() to kept_.
  absl::string_view value_;                 // The call's cookie; after keep() a view of kept_.
  std::uint32_t name_size_ = 0;
  std::uint32_t ttl_seconds_ = 0;  // From the cookie's configuration.
  bool is_read_ = false;
  bool strict_ = false;
  bool is_bad_ = false;
  bool is_outdated_ = false;  // With a seal: the cookie is not sealed with the first key.
  bool is_counted_ = false;   // This call's new Set-Cookie is in the statistics.
  bool has_moved_ = false;  // The last pick was complete, and chose hosts_, not the cookie's hosts.
  bool is_elsewhere_ = false;  // The next pick tries hosts_, not the cookie's hosts.
  CookieKey key_;              // The hash of value_.
  // The decoded cookie: views into decoded_. Without hosts: the cookie is missing, unread or
  // unusable.
  CookieHost own_;
  KeptTexts kept_;  // The cookie's text(), and value_.
  std::string set_cookie_;
  std::string decoded_;  // The call's cookie, decoded.
  std::string hosts_;    // The addresses of the endpoint picked last, if the cookie names others.
  std::string host_;     // host_, purpose_ and encoded_: memory for making a Set-Cookie.
  std::string purpose_;
  std::string encoded_;
};

/// The hosts that the session's cookie names. Decodes the cookie, unless that has been done.
inline absl::string_view hosts_of(const SessionArgs& session) {
  return session.unread != nullptr ? session.unread->read() : session.hosts;
}

/// Casts the result of FilterCall::begin_session(). Null: an earlier filter has begun the session.
inline Session* session_of(SessionHint* hint) {
  return static_cast<Session*>(hint);
}

struct GiveBack {
  void operator()(Session* session) const;
};

using SessionPtr = std::unique_ptr<Session, GiveBack>;

/// A list of ended Sessions. Later calls use them again, with their memory.
struct SpareSessions {
  Session* first = nullptr;
  std::size_t count = 0;

  /// Prefetches the first two cache lines of the Session that take() will return.
  void prefetch() const {
    if (first == nullptr) return;
    __builtin_prefetch(first, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(first) + kCacheLine, 1);
  }

  /// Takes a Session from the list; null: the list is empty.
  Session* take() {
    if (first == nullptr) return nullptr;
    --count;
    return std::exchange(first, first->next_spare);
  }
};

/// The ended Sessions of the calling thread. Constant-initialised, so access needs no function
/// call.
inline constinit thread_local SpareSessions spare_sessions;

/// Takes an ended Session of this thread, or makes a new one.
inline SessionPtr make_session(const SessionTerms& terms) {
  Session* const known = spare_sessions.take();
  SessionPtr session(known != nullptr ? known : new Session);
  session->terms = &terms;
  return session;
}

/// The most ended Sessions that a thread keeps.
inline constexpr std::size_t kSpareSessions = 256;
/// A thread does not keep an ended Session for later calls, but deletes it, if the Session has
/// allocated more bytes than this.
inline constexpr std::size_t kLargestSpare = std::size_t{2} << 10U;

/// The common data of one target's sessions: settings, keys, clocks and the limit of warnings. Used
/// by the target's routers. Thread-safe.
class Sessions {
 public:
  explicit Sessions(SessionTerms terms) : terms_(std::move(terms)) {}

  const SessionTerms& terms() const { return terms_; }

  Instant now() const { return terms_.now ? terms_.now() : Instant(); }

  /// Warns the operator that the call's cookie could not be used, unless a warning was given within
  /// the last kWarnInterval (A55-17). Not to be called while a SnapshotCell::Reader is alive,
  /// because the warning may be slow.
  void tell_flaw(Session& session) const {
    if (session.flaw) [[unlikely]]
      warn_of(*std::exchange(session.flaw, std::nullopt), session.name());
  }

 private:
  void warn_of(CookieFlaw flaw, absl::string_view cookie) const;

  const SessionTerms terms_;
  mutable std::atomic<std::int64_t> warned_at_{std::numeric_limits<std::int64_t>::min()};
};

using SessionsPtr = std::shared_ptr<const Sessions>;

}  // namespace signalbox::lb
