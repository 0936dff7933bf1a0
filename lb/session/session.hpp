// SPDX-License-Identifier: Apache-2.0
//
// Session — what one call of a session keeps, from its filters to its end (gRFC A55).
//
//   stateful_session: begin() ─▶ [Session] in the Pick ─▶ wish() ─▶ SessionArgs ─▶ the picker
//                                     │   ├─ read() ◀─ unless it knows the cookie ◀─┤
//                                     │   └─ settle() ◀─ Affinity ◀────────────────┘
//                                     └▶ the Set-Cookie of its response, or none
//
// It stays for all picks of the call, and outlives the configuration that its cookie is of: what it
// needs of that it copies. Sessions that have ended are kept by the thread, with their memory, for
// the calls to come: a pick allocates nothing.
//
// Invariants
//   S1  A Set-Cookie is there exactly while the pick is complete, and says where that went.
//   S2  Whatever a cookie says, the picker gets no more of it than a text to look up (A55-18).

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
#include "lb/session/session_cookie.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/counting/striped.hpp"
#include "messages/http_filter.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

/// What the sessions of one target need of the world outside.
struct SessionTerms {
  /// "xds:///orders": a sealed cookie of one target is of no use for another.
  std::string target;
  /// The time, asked for calls of sessions alone. Unset: it stands still.
  std::function<Instant()> now = nullptr;
  CookieSealPtr seal = nullptr;  ///< Null: cookies are plain, as gRPC and Envoy have them.
  bool accepts_plain = false;    ///< Where there is a seal, while clients still have plain ones.
  /// In which form plain cookies are written; every form is read (A55-45).
  CookieForm form = CookieForm::kGrpc;
  /// The wall clock, for the end of cookies of Envoy's form. Unset: they have none.
  std::function<std::uint64_t()> unix_seconds = nullptr;
  /// Told of cookies that are not used, by the calls' own threads: at most once in kWarnInterval.
  /// Must neither block nor throw. Unset: nobody is told.
  std::function<void(const std::string& text)> warn = nullptr;

  static constexpr Duration kWarnInterval = std::chrono::minutes(1);
};

/// A configured cookie as the filter has it at hand.
class CompiledCookie {
 public:
  CompiledCookie(const SessionCookie& cookie, bool strict);

  absl::string_view path() const { return path_; }

  bool is_strict() const { return is_strict_; }

  absl::string_view name() const { return absl::string_view(text_).substr(0, name_size_); }

  /// At most 2^32 - 1; 0: none.
  std::uint32_t ttl_seconds() const { return ttl_seconds_; }

  /// The name, then attributes_of(): what a session copies.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string path_;
  std::uint32_t name_size_;
  std::uint32_t ttl_seconds_;
  bool is_strict_;
};

/// A text in memory of its own, which it does not ask for as long as the text is of usual length.
class KeptText {
 public:
  /// Precondition: it is somewhere, even if it is empty.
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

  /// What it has asked for.
  std::size_t memory() const { return long_.capacity(); }

 private:
  void assign_long(absl::string_view text);

  std::size_t size_ = 0;
  std::array<char, 120> short_;  // The first size_ mean something, unless they are in long_.
  std::string long_;
};

}  // namespace signalbox::lb

namespace signalbox {

struct alignas(kCacheLine) Session {
  /// With the call's cookie as it was found. Both are borrowed until keep(). Precondition: it is
  /// new.
  void begin(const lb::CompiledCookie& config, const lb::FoundCookie& found) {
    begin(config, found, found.value ? CookieKey(*found.value) : CookieKey());
  }

  /// `key`: of the cookie that was found.
  void begin(const lb::CompiledCookie& config, const lb::FoundCookie& found, const CookieKey& key) {
    config_ = &config;
    name_size_ = static_cast<std::uint32_t>(config.name().size());
    ttl_seconds_ = config.ttl_seconds();
    strict_ = config.is_strict();
    if (found.is_cut) flaw = lb::CookieFlaw::kTooMany;
    if (found.value && found.value->size() > lb::kLongestCookieValue)
      flaw = lb::CookieFlaw::kTooLong;
    is_bad_ = flaw.has_value();
    is_read_ = is_bad_ || !found.value;
    value_ = is_read_ ? absl::string_view("", 0) : *found.value;
    key_ = is_read_ ? CookieKey() : key;
  }

  /// Copies what begin() was given.
  void keep() {
    if (config_ == nullptr) return;
    kept_.assign(config_->text());
    kept_value_.assign(value_);
    value_ = kept_value_.get();
    config_ = nullptr;
  }

  /// Reads the cookie, if nobody has yet: the hosts that it names. What is wrong with it, if
  /// anything is, is its flaw from then on.
  absl::string_view read();

  /// The cluster that the call's cookie says, perhaps as "cluster:NAME"; empty: none. It has been
  /// read.
  absl::string_view cluster() const { return own_.cluster; }

  /// Whether the call's cookie names a host. It has been read.
  bool has_cookie() const { return !own_.hosts.empty(); }

  /// What the next pick is asked for. `seat`: where the call's cookie may lead; null: nobody knows.
  SessionArgs wish(Instant now, const Seat* seat = nullptr) {
    SessionArgs args{
        .hosts = own_.hosts, .strict = strict_ && (!is_read_ || has_cookie()), .now = now};
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

  /// What has become of the wish, where nothing was picked before, or forget() said so: counts it,
  /// and writes the Set-Cookie if there is to be one (A55-21, A55-24).
  void settle(const Affinity& affinity,
              PickOutcome outcome,
              const ClusterName& cluster,
              const CallStats& stats) {
    if (affinity.as_cookie) [[likely]] {
      stats.count_affinity(affinity.result);
    } else {
      settle_elsewhere(affinity, outcome, cluster, stats);
    }
  }

  /// The endpoint has seen the call: if it is tried again, then there (A55-37).
  void reached();

  /// Nothing is picked any more.
  void forget() {
    set_cookie_.clear();
    has_moved_ = false;
  }

  /// Empty: none.
  const std::string& set_cookie() const { return set_cookie_; }

  /// The name of its cookie.
  absl::string_view name() const { return text().substr(0, name_size_); }

  /// It is as if it were new, but for its memory.
  void clear();

  /// What it takes beside itself.
  std::size_t memory() const;

  /// Whose it is. Set by who makes it and by who picks, and good as long as they look.
  const lb::SessionTerms* terms = nullptr;
  Session* next_spare = nullptr;  ///< Of those that have ended.
  /// Of its cookie, if somebody still has to hear of it.
  std::optional<lb::CookieFlaw> flaw;

 private:
  // The configured cookie's name and attributes.
  absl::string_view text() const { return config_ != nullptr ? config_->text() : kept_.get(); }

  // Where the picker does not say that it went just where the cookie says.
  void settle_elsewhere(const Affinity& affinity,
                        PickOutcome outcome,
                        const ClusterName& cluster,
                        const CallStats& stats);
  std::optional<lb::CookieFlaw> open();
  AffinityResult result_of(AffinityResult of_picker, const ClusterName& cluster) const;
  void write(absl::string_view hosts, const std::string& cluster);
  // Of a cookie of Envoy's form that is written now; 0: never.
  std::uint64_t expires() const;

  // First what every call needs: it is on few cache lines.
  const lb::CompiledCookie* config_ = nullptr;  // Until keep(); then its text is in kept_.
  absl::string_view value_;                     // Of the call's cookie, until then as its own.
  std::uint32_t name_size_ = 0;
  std::uint32_t ttl_seconds_ = 0;  // Of the configured cookie.
  bool is_read_ = false;
  bool strict_ = false;
  bool is_bad_ = false;
  bool is_outdated_ = false;   // Its cookie is good, but plain, or sealed with an old key.
  bool is_counted_ = false;    // Its Set-Cookie.
  bool has_moved_ = false;     // The pick is complete, and went to hosts_.
  bool is_elsewhere_ = false;  // hosts_ are wished for, and not those of the cookie.
  CookieKey key_;              // Of value_.
  lb::CookieHost own_;         // In decoded_; without hosts: it has no cookie that could be used.
  lb::KeptText kept_;
  lb::KeptText kept_value_;
  std::string set_cookie_;
  std::string decoded_;  // The call's cookie.
  std::string hosts_;    // Of the endpoint picked last, where these are not own_.hosts.
  std::string host_;     // What a Set-Cookie says; so are the next two.
  std::string purpose_;
  std::string encoded_;
};

}  // namespace signalbox

namespace signalbox::lb {

/// The hosts that the session's cookie names, which is read for that if nobody has yet.
inline absl::string_view hosts_of(const SessionArgs& session) {
  return session.unread != nullptr ? session.unread->read() : session.hosts;
}

struct GiveBack {
  void operator()(Session* session) const;
};

using SessionPtr = std::unique_ptr<Session, GiveBack>;

/// Those that have ended, for the calls to come.
struct SpareSessions {
  Session* first = nullptr;
  std::size_t count = 0;

  /// Asks for what a pick writes and reads of the next one.
  void prefetch() const {
    if (first == nullptr) return;
    __builtin_prefetch(first, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(first) + kCacheLine, 1);
  }

  /// Null: there is none.
  Session* take() {
    if (first == nullptr) return nullptr;
    --count;
    return std::exchange(first, first->next_spare);
  }
};

/// Of the calling thread. Constant-initialised, so that asking for it is no call.
inline constinit thread_local SpareSessions spare_sessions;

/// One that a call of this thread had before, or another.
inline SessionPtr make_session(const SessionTerms& terms) {
  Session* const known = spare_sessions.take();
  SessionPtr session(known != nullptr ? known : new Session);
  session->terms = &terms;
  return session;
}

/// How many of those that have ended a thread keeps.
inline constexpr std::size_t kSpareSessions = 256;
/// Of these none that has more memory than that; others are not kept.
inline constexpr std::size_t kLargestSpare = std::size_t{2} << 10U;

/// The sessions of one target, for its routers. Thread-safe.
class Sessions {
 public:
  explicit Sessions(SessionTerms terms) : terms_(std::move(terms)) {}

  const SessionTerms& terms() const { return terms_; }

  Instant now() const { return terms_.now ? terms_.now() : Instant(); }

  /// Tells what an operator should know of the call's cookie, if it is time for that (A55-17). Not
  /// to be called in a read section.
  void tell_flaw(Session& session) const {
    if (session.flaw) [[unlikely]]
      warn_of(*std::exchange(session.flaw, std::nullopt), session.name());
  }

 private:
  void warn_of(CookieFlaw flaw, absl::string_view cookie) const;

  const SessionTerms terms_;
  mutable std::atomic<std::int64_t> told_at_{std::numeric_limits<std::int64_t>::min()};
};

using SessionsPtr = std::shared_ptr<const Sessions>;

}  // namespace signalbox::lb
