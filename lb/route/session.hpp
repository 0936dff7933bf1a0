// SPDX-License-Identifier: Apache-2.0
//
// Session — what one call of a session keeps, from its filters to its end (gRFC A55).
//
//   stateful_session: read() ─▶ [Session] in the Pick ─▶ wish() ─▶ SessionArgs ─▶ the picker
//                                    │     └─ settle() ◀─ Affinity ◀──────────────┘
//                                    └▶ the Set-Cookie of its response, or none
//
// It stays for all picks of the call, and outlives the configuration that its cookie is of: what it
// needs of that it copies. Sessions that have ended are kept by the thread, with their memory, for
// the calls to come: a pick allocates nothing.
//
// Invariants
//   S1  A Set-Cookie is there exactly while the pick is complete, and says where that went.
//   S2  Whatever a cookie says, the picker gets no more of it than a text to look up (A55-18).

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "lb/route/sealed_cookie.hpp"
#include "lb/route/session_cookie.hpp"
#include "messages/call_stats.hpp"
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
  /// Told of cookies that are not used, by the calls' own threads: at most once in kWarnInterval.
  /// Must neither block nor throw. Unset: nobody is told.
  std::function<void(const std::string& text)> warn = nullptr;

  static constexpr Duration kWarnInterval = std::chrono::minutes(1);
};

/// A configured cookie as the filter has it at hand.
struct CompiledCookie {
  SessionCookie cookie;
  std::string attributes;  ///< attributes_of(cookie).
  bool strict = false;
};

}  // namespace signalbox::lb

namespace signalbox {

struct Session {
  /// Reads the call's cookie: what is wrong with it, if anything is. Precondition: it is new.
  std::optional<lb::CookieFlaw> read(const lb::CompiledCookie& config, const HeaderSource& headers);

  /// The route does not name the cookie's cluster (A55-19): the call goes where the route says.
  void stay_off_its_cluster() { is_off_its_cluster_ = true; }

  /// The cluster that the call's cookie says; empty: none.
  absl::string_view cluster() const { return own_.cluster; }

  /// Whether the call's cookie names a host.
  bool has_cookie() const { return !own_.hosts.empty(); }

  /// What the next pick is asked for.
  SessionArgs wish(Instant now) const;

  /// What has become of the wish, where nothing was picked before, or forget() said so: counts it,
  /// and writes the Set-Cookie if there is to be one (A55-21, A55-24).
  void settle(const Affinity& affinity,
              PickOutcome outcome,
              const ClusterName& cluster,
              const CallStats& stats,
              const lb::SessionTerms& context);

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
  const std::string& name() const { return name_; }

  /// It is as if it were new, but for its memory.
  void clear();

  /// What it takes beside itself.
  std::size_t memory() const;

  /// Whose it is. Set by who makes it, and good while its filters are asked.
  const lb::SessionTerms* terms = nullptr;
  /// Of its cookie, if somebody still has to hear of it.
  std::optional<lb::CookieFlaw> flaw;

 private:
  std::optional<lb::CookieFlaw> open(absl::string_view value);
  AffinityResult result_of(AffinityResult of_picker) const;
  void write(absl::string_view hosts, const std::string& cluster, const lb::SessionTerms& context);

  std::string name_;  // Of the configured cookie; so are its attributes.
  std::string attributes_;
  std::string text_;    // Of the call's cookie, decoded.
  lb::CookieHost own_;  // In text_; without hosts: it has no cookie that could be used.
  std::string hosts_;   // Of the endpoint picked last, where these are not own_.hosts.
  std::string host_;    // What a Set-Cookie says; so are the next two.
  std::string purpose_;
  std::string encoded_;
  bool strict_ = false;
  bool is_bad_ = false;
  bool is_outdated_ = false;  // Its cookie is good, but plain, or sealed with an old key.
  bool is_off_its_cluster_ = false;
  bool is_counted_ = false;    // Its Set-Cookie.
  bool has_moved_ = false;     // The pick is complete, and went to hosts_.
  bool is_elsewhere_ = false;  // hosts_ are wished for, and not those of the cookie.
  std::string set_cookie_;
};

}  // namespace signalbox

namespace signalbox::lb {

struct GiveBack {
  void operator()(Session* session) const;
};

using SessionPtr = std::unique_ptr<Session, GiveBack>;

/// One that a call of this thread had before, or another.
SessionPtr make_session(const SessionTerms& terms);

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
  void tell_flaw(Session& session) const;

 private:
  const SessionTerms terms_;
  mutable std::atomic<std::int64_t> told_at_{std::numeric_limits<std::int64_t>::min()};
};

using SessionsPtr = std::shared_ptr<const Sessions>;

}  // namespace signalbox::lb
