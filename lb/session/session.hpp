// SPDX-License-Identifier: Apache-2.0
//
// Session — the data of one call's session, from its filters to its end (gRFC A55).
//
//   stateful_session: begin() ─▶ [Session] in the Pick ─▶ wish() ─▶ SessionArgs ─▶ the picker
//                                     │   ├─ read() ◀─ unless it knows the cookie ◀─┤
//                                     │   └─ settle() ◀─ Affinity ◀────────────────┘
//                                     └▶ the Set-Cookie of its response, or none
//
// A Session stays for all picks of the call, and outlives the configuration of its cookie: it
// copies the parts that it needs. Each thread keeps ended Sessions, with their memory, for later
// calls, so a pick usually allocates nothing.
//
// Invariants
//   S1  A Set-Cookie exists only while the pick is complete, and names the endpoint of the pick.
//   S2  Whatever a cookie says, the picker gets only a text to look up (A55-18).

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
  /// The clock, read only for calls with sessions. Unset: time stands still.
  std::function<Instant()> now = nullptr;
  CookieSealPtr seal = nullptr;  ///< Null: cookies are plain, as gRPC and Envoy have them.
  /// With a seal: plain cookies are accepted too, for clients that still have them.
  bool accepts_plain = false;
  /// The form in which plain cookies are written; every form is read (A55-45).
  CookieForm form = CookieForm::kGrpc;
  /// The wall clock, for the expiry in cookies of Envoy's form. Unset: these have no expiry.
  std::function<std::uint64_t()> unix_seconds = nullptr;
  /// Receives warnings of unused cookies, on the calls' own threads, at most once in kWarnInterval.
  /// Must neither block nor throw. Unset: no warnings.
  std::function<void(const std::string& text)> warn = nullptr;

  static constexpr Duration kWarnInterval = std::chrono::minutes(1);
};

/// A configured cookie, as the filter needs it.
class CompiledCookie {
 public:
  CompiledCookie(const SessionCookie& cookie, bool strict);

  absl::string_view path() const { return path_; }

  bool is_strict() const { return is_strict_; }

  absl::string_view name() const { return absl::string_view(text_).substr(0, name_size_); }

  /// The cookie's lifetime, at most 2^32 - 1; 0: the cookie has none.
  std::uint32_t ttl_seconds() const { return ttl_seconds_; }

  /// The name, then attributes_of(). Sessions copy this text.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string path_;
  std::uint32_t name_size_;
  std::uint32_t ttl_seconds_;
  bool is_strict_;
};

/// A text in memory of its own. A text of usual length needs no allocation.
class KeptText {
 public:
  /// Precondition: `text` points somewhere, even if it is empty.
  void assign(absl::string_view text) {
    size_ = text.size();
    if (size_ <= short_.size()) [[likely]] {
      std::memcpy(short_.data(), text.data(), size_);
    } else {
      assign_long(text);
    }
  }

  absl::string_view get() const {
    return {size_ <= short_.size() ? short_.data() : long_.data(), size_};
  }

  /// The allocated bytes.
  std::size_t memory() const { return long_.capacity(); }

 private:
  void assign_long(absl::string_view text);

  std::size_t size_ = 0;
  std::array<char, 120> short_;  // Only the first size_ are set, unless the text is in long_.
  std::string long_;
};

struct alignas(kCacheLine) Session final : SessionHint {
  /// Begins with the call's cookie as it was found. Both arguments are borrowed until keep().
  /// Precondition: the Session is new.
  void begin(const CompiledCookie& config, const FoundCookie& found) {
    begin(config, found, found.value ? CookieKey(*found.value) : CookieKey());
  }

  /// `key`: the key of the cookie that was found.
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

  /// Copies the borrowed arguments of begin(), which may be destroyed afterwards.
  void keep() {
    if (config_ == nullptr) return;
    kept_.assign(config_->text());
    kept_value_.assign(value_);
    value_ = kept_value_.get();
    config_ = nullptr;
  }

  /// Reads the cookie if it is unread, and returns the hosts that it names. Any flaw of the cookie
  /// is in `flaw` afterwards.
  absl::string_view read();

  /// The cluster of the call's cookie, perhaps as "cluster:NAME"; empty: none. Precondition: the
  /// cookie has been read.
  absl::string_view cluster() const { return own_.cluster; }

  /// Whether the call's cookie names a host. Precondition: the cookie has been read.
  bool has_cookie() const { return !own_.hosts.empty(); }

  /// The wish for the next pick. `seat`: the seat that the call's cookie may lead to; null:
  /// unknown.
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

  /// Counts the AffinityResult, and writes the Set-Cookie if the response needs one (A55-21,
  /// A55-24). `stats`: null: nothing counts. Precondition: nothing was picked before, or forget()
  /// was called.
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

  /// The endpoint has seen the call. A retry wishes for the same endpoint (A55-37).
  void reached();

  /// The pick is given up: its Set-Cookie is dropped.
  void forget() {
    set_cookie_.clear();
    has_moved_ = false;
  }

  /// The Set-Cookie for the response; empty: none.
  const std::string& set_cookie() const { return set_cookie_; }

  /// The name of the session's cookie.
  absl::string_view name() const { return text().substr(0, name_size_); }

  /// Makes the Session as new, but keeps its memory.
  void clear();

  /// The bytes that the Session has allocated.
  std::size_t memory() const;

  /// The terms of its target. Set by make_session() and by each pick, and good only while these
  /// run.
  const SessionTerms* terms = nullptr;
  Session* next_spare = nullptr;  ///< In the thread's list of ended Sessions.
  /// The cookie's flaw, until it is reported.
  std::optional<CookieFlaw> flaw;

 private:
  // The name and the attributes of the configured cookie.
  absl::string_view text() const { return config_ != nullptr ? config_->text() : kept_.get(); }

  // Settles a call when the picker did not say that the call went to the cookie's endpoint.
  void settle_elsewhere(const Affinity& affinity,
                        PickOutcome outcome,
                        const ClusterName& cluster,
                        const CallStats* stats);
  std::optional<CookieFlaw> open();
  AffinityResult result_of(AffinityResult of_picker, const ClusterName& cluster) const;
  void write(absl::string_view hosts, const std::string& cluster);
  // The expiry of a cookie in Envoy's form that is written now; 0: never.
  std::uint64_t expires() const;

  // The fields that every call needs come first: they are on few cache lines.
  const CompiledCookie* config_ = nullptr;  // Null after keep(): kept_ has its text.
  absl::string_view value_;                 // The call's cookie; borrowed until keep().
  std::uint32_t name_size_ = 0;
  std::uint32_t ttl_seconds_ = 0;  // From the cookie's configuration.
  bool is_read_ = false;
  bool strict_ = false;
  bool is_bad_ = false;
  bool is_outdated_ = false;  // With a seal: the cookie is plain, or not sealed with the first key.
  bool is_counted_ = false;   // The Set-Cookie is counted.
  bool has_moved_ = false;    // The pick is complete, and went to hosts_.
  bool is_elsewhere_ = false;  // The wish is hosts_, not the hosts of the cookie.
  CookieKey key_;              // The key of value_.
  CookieHost own_;             // Points into decoded_; no hosts: no usable cookie.
  KeptText kept_;
  KeptText kept_value_;
  std::string set_cookie_;
  std::string decoded_;  // The call's cookie, decoded.
  std::string hosts_;    // The hosts of the endpoint picked last, if not own_.hosts.
  std::string host_;     // Reused memory for making a Set-Cookie, like the next two members.
  std::string purpose_;
  std::string encoded_;
};

/// The hosts that the session's cookie names. Reads the cookie first if it is unread.
inline absl::string_view hosts_of(const SessionArgs& session) {
  return session.unread != nullptr ? session.unread->read() : session.hosts;
}

/// The Session behind FilterCall::begin_session(). Null: an earlier filter has begun one.
inline Session* session_of(SessionHint* hint) {
  return static_cast<Session*>(hint);
}

struct GiveBack {
  void operator()(Session* session) const;
};

using SessionPtr = std::unique_ptr<Session, GiveBack>;

/// Ended Sessions, for later calls.
struct SpareSessions {
  Session* first = nullptr;
  std::size_t count = 0;

  /// Prefetches what a pick writes and reads of the next Session.
  void prefetch() const {
    if (first == nullptr) return;
    __builtin_prefetch(first, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(first) + kCacheLine, 1);
  }

  /// Takes a spare Session; null: there is none.
  Session* take() {
    if (first == nullptr) return nullptr;
    --count;
    return std::exchange(first, first->next_spare);
  }
};

/// The spare Sessions of the calling thread. Constant-initialised, so that access needs no call.
inline constinit thread_local SpareSessions spare_sessions;

/// A spare Session of this thread, or a new one.
inline SessionPtr make_session(const SessionTerms& terms) {
  Session* const known = spare_sessions.take();
  SessionPtr session(known != nullptr ? known : new Session);
  session->terms = &terms;
  return session;
}

/// The most ended Sessions that a thread keeps.
inline constexpr std::size_t kSpareSessions = 256;
/// The most memory of an ended Session that is kept, in bytes.
inline constexpr std::size_t kLargestSpare = std::size_t{2} << 10U;

/// The sessions of one target, for its routers. Thread-safe.
class Sessions {
 public:
  explicit Sessions(SessionTerms terms) : terms_(std::move(terms)) {}

  const SessionTerms& terms() const { return terms_; }

  Instant now() const { return terms_.now ? terms_.now() : Instant(); }

  /// Tells an operator about the flaw of the call's cookie, unless a flaw was reported lately
  /// (A55-17). Not to be called in a read section.
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
