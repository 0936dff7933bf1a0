// SPDX-License-Identifier: Apache-2.0
//
// SessionFixture — a router for tests of calls with sessions. Its picker sends a call to the
// endpoint that the call's cookie names, as the picker of the policy override_host does.

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "lb/session/seats.hpp"
#include "lb/session/session.hpp"
#include "tests/support/filter_fixture.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::testing {

inline StatefulSessionFilter session_by(std::string name,
                                        std::string path = "",
                                        Duration ttl = {},
                                        bool strict = false) {
  return {SessionCookie{std::move(name), std::move(path), ttl}, strict};
}

inline std::string base64(absl::string_view text) {
  return absl::Base64Escape(text);
}

/// Decodes the value of a Set-Cookie: "ip:port;cluster". If it is not base64: "? " and the whole
/// Set-Cookie.
inline std::string host_in(absl::string_view set_cookie) {
  absl::string_view value = set_cookie.substr(0, set_cookie.find(';'));
  value.remove_prefix(std::min(value.find('=') + 1, value.size()));
  std::string text;
  return absl::Base64Unescape(value, &text) ? text : absl::StrCat("? ", set_cookie);
}

/// A router. Its calls pass the filter "session" that the test configures, and the router filter.
struct SessionFixture : RouterFixture {
  /// One endpoint: its addresses, the address in use first.
  struct Backend {
    std::string hosts;
    std::unique_ptr<Connection> connection;
    bool is_usable = true;
  };

  explicit SessionFixture(lb::SessionTerms terms = {}) { use(std::move(terms)); }

  void use(lb::SessionTerms terms) {
    terms.target = "xds:///orders";
    terms.now = [this] { return now; };
    terms.warn = [this](const std::string& text) { warnings.push_back(text); };
    router = lb::Router(
        cell, {"xds:///orders", "n"}, std::make_shared<const lb::Sessions>(std::move(terms)));
  }

  Backend& add(const std::string& cluster, const std::string& hosts) {
    const Address first(std::string(hosts.substr(0, hosts.find(','))));
    return backends[cluster].emplace_back(Backend{hosts, std::make_unique<Connection>(first)});
  }

  /// Finds, as override_host does, the usable endpoint with a plain (unencrypted) cookie that
  /// equals the call's cookie; nullopt: there is none. The cookie need not be decoded for this.
  std::optional<PickResult> known_at_sight(const PickArgs& args) {
    const lb::SessionArgs* const session = lb::session_of(args);
    if (session == nullptr || session->key == lb::CookieKey()) return std::nullopt;
    for (const Backend& one : backends[args.cluster->str()]) {
      const lb::CookieKey his(lb::plain_cookie(one.hosts, args.cluster->str()));
      const bool is_his = session->key == his;
      if (!is_his || !one.is_usable) continue;
      wishes.push_back(one.hosts);
      PickResult answer = result(Complete{one.connection.get()});
      answer.affinity = {AffinityResult::kHit, &one.hosts, true};
      return answer;
    }
    return std::nullopt;
  }

  /// Answers a pick as override_host does: a usable host that the cookie names, or else the choice
  /// of the child policy. Here the child's choice is the first usable endpoint. If the session is
  /// strict and its cookie names no usable host, the call is dropped.
  PickResult answer(const PickArgs& args) {
    asked.push_back(args.cluster->str());
    const lb::SessionArgs* const session = lb::session_of(args);
    if (session != nullptr) last = *session;
    auto& all = backends[args.cluster->str()];
    if (const auto known = known_at_sight(args)) return *known;
    const absl::string_view wish =
        session != nullptr ? lb::hosts_of(*session) : absl::string_view();
    if (session != nullptr) wishes.emplace_back(wish);
    const auto to_backend = [&](const Backend& chosen, AffinityResult how) {
      PickResult answer = result(Complete{chosen.connection.get()});
      if (session != nullptr) answer.affinity = {how, &chosen.hosts};
      return answer;
    };
    AffinityResult fell = AffinityResult::kNew;
    if (!wish.empty()) {
      fell = AffinityResult::kUnknownHost;
      for (const absl::string_view host : absl::StrSplit(wish, ',')) {
        for (const Backend& one : all) {
          const std::vector<absl::string_view> its = absl::StrSplit(one.hosts, ',');
          if (std::ranges::find(its, host) == its.end()) continue;
          if (one.is_usable) return to_backend(one, AffinityResult::kHit);
          fell = AffinityResult::kUnhealthy;
        }
      }
      if (session->strict) {
        PickResult answer = result(Drop{absl::UnavailableError("strict")});
        answer.affinity = {fell, nullptr};
        return answer;
      }
    }
    for (const Backend& one : all) {
      if (one.is_usable) return to_backend(one, fell);
    }
    return result(Fail{absl::UnavailableError("nobody is there")});
  }

  void configure(const ForwardAction& action, StatefulSessionFilter filter_config) {
    configure(all_to(action), std::move(filter_config));
  }

  void configure(const XdsConfig& config, StatefulSessionFilter filter_config) {
    configure_filters(config, {filter("session", std::move(filter_config))});
  }

  void configure_filters(const XdsConfig& config, std::vector<HttpFilter> filters) {
    publish(with_filters(config, std::move(filters)),
            answering([this](const PickArgs& args) { return answer(args); },
                      has_seats ? &seats : nullptr));
  }

  /// A call with this cookie header; empty: without one.
  lb::Pick call(const std::string& cookie, const char* path = "/s/M", std::uint64_t seed = 7) {
    TestHeaders::List list;
    if (!cookie.empty()) list.emplace_back("cookie", cookie);
    const TestHeaders headers(std::move(list));
    return router.pick({path, &headers, seed});
  }

  /// The address that the call went to.
  static std::string address_of(const lb::Pick& pick) {
    return pick.connection() != nullptr ? pick.connection()->address().str() : "";
  }

  std::int64_t counted(const char* cluster, AffinityResult what) const {
    return ref(cluster).stats()->affinity(what);
  }

  std::int64_t counted(const char* cluster, CookieSet what) const {
    return ref(cluster).stats()->cookies(what);
  }

  /// Whether the next configuration's picker has lb::Seats (a hash table of hosts by cookie). If
  /// so, and if all sessions have one cookie name, the router looks for a call's cookie before the
  /// call's route. All seats are free here, so the table has no host.
  bool has_seats = true;
  const lb::Seats seats{1};
  std::map<std::string, std::deque<Backend>> backends;
  Instant now{std::chrono::hours(1)};
  std::vector<std::string> warnings;
  std::vector<std::string> asked;   ///< The clusters of all picks.
  std::vector<std::string> wishes;  ///< The cookie's hosts, of each pick of a session.
  /// The arguments of the last pick of a session. Their `hosts` dangle after the pick.
  std::optional<lb::SessionArgs> last;
};

}  // namespace signalbox::testing
