// SPDX-License-Identifier: Apache-2.0
#include "lb/session/session.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace signalbox::lb {
namespace {

// Writes into `purpose` what a seal authenticates beside the cookie: the cookie's name and the
// target. `purpose` is reused memory.
const std::string& write_purpose(std::string& purpose,
                                 absl::string_view cookie,
                                 const SessionTerms& terms) {
  return purpose.assign(cookie.data(), cookie.size()).append(1, '\0').append(terms.target);
}

}  // namespace

absl::string_view Session::read() {
  if (std::exchange(is_read_, true)) return own_.hosts;
  flaw = open();
  is_bad_ = flaw.has_value();
  return own_.hosts;
}

// Decodes the call's cookie. With accepts_plain, a cookie that no key opens is read as an unsealed
// cookie, and an error is reported as for an unsealed cookie.
std::optional<CookieFlaw> Session::open() {
  using Opened = CookieSeal::Opened;
  Opened opened = Opened::kNo;
  if (terms->seal != nullptr) {
    opened = terms->seal->open(value_, write_purpose(purpose_, name(), *terms), decoded_);
    if (opened == Opened::kNo && !terms->accepts_plain) return CookieFlaw::kSeal;
    is_outdated_ = opened != Opened::kYes;
  }
  if (opened == Opened::kNo) {
    if (const auto wrong = decode_cookie(value_, decoded_)) return wrong;
  }
  return parse_cookie_host(decoded_, own_);
}

// Makes the picker's result more precise. The picker gets only the hosts to look up; only the
// Session knows whether the cookie was unusable, or named a cluster that the route does not have.
AffinityResult Session::result_of(AffinityResult of_picker, const ClusterName& cluster) const {
  switch (of_picker) {
    case AffinityResult::kNew:
      return is_bad_ ? AffinityResult::kBadCookie : of_picker;
    case AffinityResult::kUnknownHost:
    case AffinityResult::kUnhealthy: {
      // The route does not name the cookie's cluster (A55-19).
      const bool is_off_its_cluster = !own_.cluster.empty() && !own_.names_cluster(cluster.str());
      return is_off_its_cluster ? AffinityResult::kOtherCluster : of_picker;
    }
    default:
      return of_picker;
  }
}

void Session::settle_elsewhere(const Affinity& affinity,
                               PickOutcome outcome,
                               const ClusterName& cluster,
                               const CallStats* stats) {
  const bool may_move = outcome == PickOutcome::kComplete && affinity.hosts != nullptr;
  if (may_move) read();  // The picker may not have read the cookie.
  const AffinityResult result = result_of(affinity.result, cluster);
  if (stats != nullptr && result != AffinityResult::kNone) stats->count_affinity(result);
  if (!may_move) return;
  const std::string& hosts = *affinity.hosts;
  has_moved_ = !own_.names_hosts(hosts);
  if (has_moved_) hosts_ = hosts;
  // A cookie that Envoy made names no cluster. This alone is no reason to replace it, because Envoy
  // might not be able to read the replacement (A55-45).
  const bool is_envoys = own_.form == CookieForm::kEnvoy && own_.cluster.empty();
  const bool is_same = !has_moved_ && (is_envoys || own_.names_cluster(cluster.str()));
  if (is_same && !is_outdated_) return;
  write(hosts, cluster.str());
  if (set_cookie_.empty() || is_same || std::exchange(is_counted_, true)) return;
  if (stats != nullptr) stats->count_cookie(has_cookie() ? CookieSet::kMoved : CookieSet::kNew);
}

void Session::reached() {
  is_elsewhere_ = has_moved_;
}

// Writes set_cookie_, unless sealing fails or the value is longer than kLongestCookieValue. Later
// calls would ignore a cookie with a longer value.
void Session::write(absl::string_view hosts, const std::string& cluster) {
  encoded_.clear();
  if (terms->seal != nullptr) {
    write_cookie_host(hosts, cluster, host_);
    if (!terms->seal->seal(host_, write_purpose(purpose_, name(), *terms), encoded_)) return;
  } else {
    if (terms->form == CookieForm::kEnvoy) {
      write_envoy_cookie(first_host(hosts), cluster, expires(), host_);
    } else {
      write_cookie_host(hosts, cluster, host_);
    }
    absl::Base64Escape(host_, &encoded_);
  }
  if (encoded_.size() > kLongestCookieValue) return;
  const absl::string_view attributes = text().substr(name_size_);
  set_cookie_.assign(name().data(), name_size_).append(1, '=').append(encoded_);
  set_cookie_.append(attributes.data(), attributes.size());
}

std::uint64_t Session::expires() const {
  if (ttl_seconds_ == 0 || !terms->unix_seconds) return 0;
  return terms->unix_seconds() + ttl_seconds_;
}

[[gnu::hot]] void Session::clear() {
  for (std::string* text : {&decoded_, &hosts_, &set_cookie_})
    text->clear();
  config_ = nullptr;
  value_ = {};
  own_ = {};
  flaw.reset();
  terms = nullptr;
  is_read_ = strict_ = is_bad_ = is_outdated_ = is_counted_ = has_moved_ = is_elsewhere_ = false;
}

[[gnu::hot]] std::size_t Session::memory() const {
  std::size_t bytes = kept_.memory();
  for (const std::string* text : {&decoded_, &hosts_, &host_, &purpose_, &encoded_, &set_cookie_})
    bytes += text->capacity();
  return bytes;
}

namespace {

// Deletes the thread's ended Sessions when the thread ends. A call may end on any thread, even one
// that has destroyed its SpareKeeper already; is_gone then makes GiveBack delete the Session.
class SpareKeeper {
 public:
  ~SpareKeeper() {
    is_gone = true;
    while (Session* const session = spare_sessions.take())
      delete session;
  }

  [[gnu::hot]] bool keep(Session* session) {
    if (spare_sessions.count == kSpareSessions || session->memory() > kLargestSpare) return false;
    session->clear();
    session->next_spare = std::exchange(spare_sessions.first, session);
    ++spare_sessions.count;
    return true;
  }

  static constinit thread_local bool is_gone;
};

constinit thread_local bool SpareKeeper::is_gone = false;
thread_local SpareKeeper spare_keeper;

std::uint32_t seconds_in(Duration ttl) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ttl).count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(seconds, 0, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

[[gnu::hot]] void GiveBack::operator()(Session* session) const {
  if (SpareKeeper::is_gone || !spare_keeper.keep(session)) delete session;
}

CompiledCookie::CompiledCookie(const SessionCookie& cookie, bool strict)
    : text_(cookie.name + attributes_of(cookie)),
      path_(cookie.path),
      name_size_(static_cast<std::uint32_t>(cookie.name.size())),
      ttl_seconds_(seconds_in(cookie.ttl)),
      is_strict_(strict) {}

void KeptTexts::assign_long(absl::string_view first, absl::string_view second) {
  long_.assign(first.data(), first.size());
  long_.append(second.data(), second.size());
}

void Sessions::warn_of(CookieFlaw flaw, absl::string_view cookie) const {
  if (!terms_.warn) return;
  const std::int64_t at = now().time_since_epoch().count();
  std::int64_t before = warned_at_.load(std::memory_order_relaxed);
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  if (before != kNever && at - before < SessionTerms::kWarnInterval.count()) return;
  if (!warned_at_.compare_exchange_strong(before, at, std::memory_order_relaxed)) return;
  terms_.warn(absl::StrCat(terms_.target,
                           ": a call's cookie \"",
                           cookie,
                           "\" is not used, and the call picked as if it had none: ",
                           said_of(flaw),
                           " (logged once a minute at most; signalbox_affinity_picks_total counts "
                           "all of them as fallback_bad_cookie)"));
}

}  // namespace signalbox::lb
