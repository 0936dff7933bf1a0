// SPDX-License-Identifier: Apache-2.0
#include "lb/route/session.hpp"

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace signalbox {
namespace {

// What a seal is good for: this cookie, of this target. Into memory that is kept.
const std::string& write_purpose(std::string& purpose,
                                 const std::string& cookie,
                                 const lb::SessionTerms& terms) {
  return purpose.assign(cookie).append(1, '\0').append(terms.target);
}

}  // namespace

using lb::CookieFlaw;

std::optional<CookieFlaw> Session::read(const lb::CompiledCookie& config,
                                        const HeaderSource& headers) {
  name_ = config.cookie.name;
  attributes_ = config.attributes;
  strict_ = config.strict;
  const lb::FoundCookie found = lb::find_cookie(headers, name_);
  std::optional<CookieFlaw> wrong;
  if (found.value) wrong = open(*found.value);
  if (found.is_cut) wrong = CookieFlaw::kTooMany;
  is_bad_ = wrong.has_value();
  return wrong;
}

// Where plain cookies are taken beside sealed ones, it is their flaw that is told.
std::optional<CookieFlaw> Session::open(absl::string_view value) {
  using Opened = lb::CookieSeal::Opened;
  if (value.size() > lb::kLongestCookieValue) return CookieFlaw::kTooLong;
  Opened opened = Opened::kNo;
  if (terms->seal != nullptr) {
    opened = terms->seal->open(value, write_purpose(purpose_, name_, *terms), text_);
    if (opened == Opened::kNo && !terms->accepts_plain) return CookieFlaw::kSeal;
    is_outdated_ = opened != Opened::kYes;
  }
  if (opened == Opened::kNo) {
    if (const auto wrong = lb::decode_cookie(value, text_)) return wrong;
  }
  const auto host = lb::parse_cookie_host(text_);
  if (!host) return CookieFlaw::kHost;
  own_ = *host;
  return std::nullopt;
}

SessionArgs Session::wish(Instant now) const {
  const absl::string_view hosts = is_elsewhere_ ? absl::string_view(hosts_) : own_.hosts;
  return {.hosts = hosts, .strict = strict_ && has_cookie(), .now = now};
}

// The picker knows only the hosts: why there are none, or none that it knows, is known here.
AffinityResult Session::result_of(AffinityResult of_picker) const {
  switch (of_picker) {
    case AffinityResult::kNew:
      return is_bad_ ? AffinityResult::kBadCookie : of_picker;
    case AffinityResult::kUnknownHost:
    case AffinityResult::kUnhealthy:
      return is_off_its_cluster_ ? AffinityResult::kOtherCluster : of_picker;
    default:
      return of_picker;
  }
}

void Session::settle(const Affinity& affinity,
                     PickOutcome outcome,
                     const ClusterName& cluster,
                     const CallStats& stats,
                     const lb::SessionTerms& context) {
  const AffinityResult result = result_of(affinity.result);
  if (result != AffinityResult::kNone) stats.count_affinity(result);
  if (outcome != PickOutcome::kComplete || affinity.hosts == nullptr) return;
  const std::string& hosts = *affinity.hosts;
  if (hosts != own_.hosts) hosts_ = hosts;
  has_moved_ = hosts != own_.hosts;
  const bool is_same = !has_moved_ && cluster.str() == own_.cluster;
  if (is_same && !is_outdated_) return;
  write(hosts, cluster.str(), context);
  if (set_cookie_.empty() || is_same || std::exchange(is_counted_, true)) return;
  stats.count_cookie(has_cookie() ? CookieSet::kMoved : CookieSet::kNew);
}

void Session::reached() {
  is_elsewhere_ = has_moved_;
}

// One that could not be read again is not written.
void Session::write(absl::string_view hosts,
                    const std::string& cluster,
                    const lb::SessionTerms& context) {
  host_.assign(hosts.data(), hosts.size()).append(1, ';').append(cluster);
  encoded_.clear();
  if (context.seal == nullptr) {
    absl::Base64Escape(host_, &encoded_);
  } else {
    if (!context.seal->seal(host_, write_purpose(purpose_, name_, context), encoded_)) return;
  }
  if (encoded_.size() > lb::kLongestCookieValue) return;
  set_cookie_.assign(name_).append(1, '=').append(encoded_).append(attributes_);
}

void Session::clear() {
  for (std::string* text : {&name_, &attributes_, &text_, &hosts_, &set_cookie_})
    text->clear();
  own_ = {};
  flaw.reset();
  terms = nullptr;
  strict_ = is_bad_ = is_outdated_ = is_off_its_cluster_ = is_counted_ = has_moved_ =
      is_elsewhere_ = false;
}

std::size_t Session::memory() const {
  std::size_t bytes = 0;
  for (const std::string* text :
       {&name_, &attributes_, &text_, &hosts_, &host_, &purpose_, &encoded_, &set_cookie_})
    bytes += text->capacity();
  return bytes;
}

}  // namespace signalbox

namespace signalbox::lb {
namespace {

// Of this thread. A call may end on another one, and after this one has let go of all it had.
class Spares {
 public:
  ~Spares() {
    is_gone = true;
    while (size_ > 0)
      delete kept_[--size_];
  }

  Session* take() { return size_ > 0 ? kept_[--size_] : nullptr; }

  bool keep(Session* session) {
    if (size_ == kept_.size() || session->memory() > kLargestSpare) return false;
    session->clear();
    kept_[size_++] = session;
    return true;
  }

  static constinit thread_local bool is_gone;

 private:
  std::size_t size_ = 0;
  std::array<Session*, kSpareSessions> kept_;  // The first size_ mean something.
};

constinit thread_local bool Spares::is_gone = false;
thread_local Spares spares;

}  // namespace

void GiveBack::operator()(Session* session) const {
  if (Spares::is_gone || !spares.keep(session)) delete session;
}

SessionPtr make_session(const SessionTerms& terms) {
  Session* known = Spares::is_gone ? nullptr : spares.take();
  SessionPtr session(known != nullptr ? known : new Session);
  session->terms = &terms;
  return session;
}

void Sessions::tell_flaw(Session& session) const {
  const auto flaw = std::exchange(session.flaw, std::nullopt);
  if (!flaw || !terms_.warn) return;
  const std::int64_t at = now().time_since_epoch().count();
  std::int64_t before = told_at_.load(std::memory_order_relaxed);
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  if (before != kNever && at - before < SessionTerms::kWarnInterval.count()) return;
  if (!told_at_.compare_exchange_strong(before, at, std::memory_order_relaxed)) return;
  terms_.warn(absl::StrCat(terms_.target,
                           ": a call's cookie \"",
                           session.name(),
                           "\" is not used, and the call picked as if it had none: ",
                           said_of(*flaw),
                           " (said once a minute at most; signalbox_affinity_picks_total counts "
                           "all of them as fallback_bad_cookie)"));
}

}  // namespace signalbox::lb
