// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/override_host_picker.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/session/session.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/step_log.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;
using signalbox::testing::TestHeaders;

namespace {

constexpr Instant kNow{1h};
const HealthStatusSet kUsual{HealthStatus::kUnknown, HealthStatus::kHealthy};
const HealthStatusSet kAlsoDraining{
    HealthStatus::kUnknown, HealthStatus::kHealthy, HealthStatus::kDraining};

class Asks final : public AskTarget {
 public:
  void tell(const PickAsk& /*ask*/) const override {}
};

class Counter final : public CallTracker {
 public:
  void ended(const CallEnd& /*end*/) const noexcept override {}
};

Endpoint endpoint(const std::vector<std::string>& addresses,
                  HealthStatus health = HealthStatus::kHealthy) {
  Endpoint made;
  for (const std::string& address : addresses)
    made.addresses.emplace_back(address);
  made.health = health;
  return made;
}

/// Addresses that are named after their state or health ("ready2": a second one of that state). p
/// (CONNECTING) and q (READY) are one endpoint with two addresses. The child sends its calls to z.
class Hosts {
 public:
  explicit Hosts(HealthStatusSet allowed = kUsual) : allowed_(allowed) {
    Locality locality;
    locality.name.zone = "east";
    for (const char* name : {"ready", "ready2", "idle", "idle2", "connecting", "failed"})
      locality.endpoints.push_back(endpoint({name}));
    for (const char* name : {"unheld", "unheld2", "ejected", "ejected-idle", "z"})
      locality.endpoints.push_back(endpoint({name}));
    locality.endpoints.push_back(endpoint({"p", "q"}));
    locality.endpoints.push_back(endpoint({"unknown"}, HealthStatus::kUnknown));
    locality.endpoints.push_back(endpoint({"draining"}, HealthStatus::kDraining));
    Endpoints endpoints;
    endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
    table = std::make_shared<const HostTable>(
        std::make_shared<const Endpoints>(std::move(endpoints)), allowed_, nullptr);
    states.resize(table->size());
    for (const char* name : {"ready", "ready2", "q", "unknown", "draining", "z"})
      tell(name, kReady);
    for (const char* name : {"idle", "idle2", "ejected-idle"})
      tell(name, kIdle);
    tell("connecting", kConnecting);
    tell("p", kConnecting);
    tell("failed", kFailure);
    tell("ejected", kReady);
    for (const char* name : {"ejected", "ejected-idle"}) {
      states[*table->find(name)]->healthy = false;
      states[*table->find(name)]->status = absl::UnavailableError("it was ejected");
    }
    rebuild();
  }

  void tell(const std::string& name, ConnectivityState state) {
    const auto place = table->find(name);
    if (!place) return;
    SubchannelStateChanged told{Address(name), state, true, absl::OkStatus(), nullptr};
    if (state == kReady) told.connection = std::make_shared<const Connection>(Address(name));
    if (state == kReady) told.tracker = tracker;
    if (state == kFailure) told.status = absl::UnavailableError("refused");
    states[*place] = told;
  }

  void rebuild() {
    picker = make_override_host_picker(child, make_host_slots(table, states, caller), asks);
  }

  PickResult pick(const std::string& cookie, bool strict = false) const {
    const SessionArgs session{.hosts = cookie, .strict = strict, .now = kNow};
    PickArgs args;
    args.session = &session;
    return picker->pick(args);
  }

  /// The hosts that a session has used, as their marks say.
  std::string used() const {
    std::string names;
    for (std::size_t at = 0; at < table->size(); ++at) {
      const Host& host = (*table)[at];
      if (!host.mark->used_after(Instant::min())) continue;
      CHECK(host.mark->last_used() == kNow);
      names += (names.empty() ? "" : " ") + host.address.str();
    }
    return names;
  }

  HostTablePtr table;
  HostStates states;
  CallTrackerPtr tracker = std::make_shared<const Counter>();
  ConnectionPtr z = std::make_shared<const Connection>(Address("z"));
  LocalityName caller;
  PickerPtr child = make_connection_picker(z);
  std::shared_ptr<const Asks> asks = std::make_shared<const Asks>();
  PickerPtr picker;

 private:
  HealthStatusSet allowed_;
};

/// The result in words: "complete a (hit) a,b"; with an ask: "queue (queued) connect a".
std::string to_words(const PickResult& result) {
  std::string words = to_text(result) + " (" + to_text(result.affinity.result) + ")";
  if (result.affinity.hosts != nullptr) words += " " + *result.affinity.hosts;
  if (result.ask)
    words += (result.ask->kind == PickAsk::Kind::kCreate ? " create " : " connect ") +
             result.ask->address.str();
  CHECK(result.ask.has_value() == (result.ask_target != nullptr));
  return words;
}

/// The promise that the hosts must make if a pick has this answer.
HostPromise promised_by(const std::string& answer) {
  const auto says = [&](const char* word) { return answer.find(word) != std::string::npos; };
  if (says("(hit")) return HostPromise::kReady;
  if (says("(queued) connect")) return HostPromise::kIdle;
  if (says("(queued)")) return HostPromise::kConnecting;
  if (says("(created)")) return HostPromise::kUnheld;
  return says("(unhealthy)") ? HostPromise::kUnfit : HostPromise::kUnknown;
}

}  // namespace

TEST_CASE("override_host picker: whom a cookie leads to",
          "[lb][override_host][A75-41][A75-42][A75-43][A75-44][A75-45][A75-46][A75-47][A75-48]"
          "[A55-34][A55-35][D10]") {
  struct Row {
    const char* what;
    std::string cookie;
    std::string answer;
    std::string used;
    HealthStatusSet allowed = kUsual;
  };

  const auto row = GENERATE(values<Row>({
      // A75-41: the addresses in their order; unknown ones, and those of a wrong health, are
      // skipped.
      {"the first", "ready,ready2", "complete ready (hit) ready", "ready"},
      {"in its order", "ready2,ready", "complete ready2 (hit) ready2", "ready2"},
      {"an unknown one is skipped", "nobody,ready", "complete ready (hit) ready", "ready"},
      {"empty ones too", ",,ready,", "complete ready (hit) ready", "ready"},
      {"a wrong health is skipped",
       "unknown,ready",
       "complete ready (hit) ready",
       "ready",
       {HealthStatus::kHealthy}},
      {"and is no host alone",
       "unknown",
       "complete z (unhealthy) z",
       "z",
       {HealthStatus::kHealthy}},
      {"a right one", "unknown", "complete unknown (hit) unknown", "unknown"},
      {"no health at all: never", "ready", "complete z (unhealthy) z", "z", {}},
      {"DRAINING, kept",
       "draining",
       "complete draining (hit draining) draining",
       "draining",
       kAlsoDraining},
      {"DRAINING, not kept", "draining", "complete z (unknown host) z", "z"},
      {"ejected ones have no calls", "ejected,ready", "complete ready (hit) ready", "ready"},
      {"nor are they waited for", "ejected-idle", "complete z (unhealthy) z", "z"},
      // A75-42: READY at once, whatever came before it.
      {"READY before IDLE", "idle,ready", "complete ready (hit) ready", "ready"},
      {"READY before CONNECTING", "connecting,ready", "complete ready (hit) ready", "ready"},
      {"READY before unheld", "unheld,ready", "complete ready (hit) ready", "ready"},
      {"another address of the endpoint", "p,q", "complete q (hit) q,p", "q"},
      // A75-43, A75-45: the first IDLE host is connected.
      {"the first IDLE one", "idle2,idle", "queue (queued) connect idle2", ""},
      {"IDLE before CONNECTING", "connecting,idle", "queue (queued) connect idle", ""},
      {"IDLE before unheld", "unheld,idle", "queue (queued) connect idle", ""},
      // A75-46: the pick waits for a CONNECTING host.
      {"CONNECTING", "connecting", "queue (queued)", ""},
      {"CONNECTING before unheld", "unheld,connecting", "queue (queued)", ""},
      // A75-44, A75-47: the first host without a subchannel gets one.
      {"the first that nobody holds", "unheld2,unheld", "queue (created) create unheld2", ""},
      {"a failed one is ignored", "failed,unheld", "queue (created) create unheld", ""},
      // A75-48: otherwise the pick is the child's.
      {"TRANSIENT_FAILURE alone", "failed", "complete z (unhealthy) z", "z"},
      {"none of the cluster's", "nobody,10.0.0.1:80", "complete z (unknown host) z", "z"},
      {"no cookie yet", "", "complete z (new) z", "z"},
  }));
  DYNAMIC_SECTION(row.what) {
    const Hosts hosts(row.allowed);
    CHECK(to_words(hosts.pick(row.cookie)) == row.answer);
    // The promise that `tiered` asks for before it draws a tier agrees with the pick (ENV-27).
    CHECK(seats_of(hosts.picker->session_hint())->hosts()->promise(row.cookie) ==
          promised_by(row.answer));
    CHECK(hosts.used() == row.used);
  }
}

namespace {

/// A session with a cookie that has not been read yet.
struct Unread {
  explicit Unread(const std::string& value) : headers({{"cookie", "s=" + value}}) {
    session.terms = &terms;
    session.begin(config, find_cookie(headers, config.name()));
  }

  /// Asks for a seat before the pick, as the router does. `elsewhere`: the seat belongs to another
  /// picker.
  PickResult pick(const PickerPtr& picker, const PickerPtr& elsewhere = nullptr) {
    const auto found = find_cookie(headers, config.name());
    const Picker& known = elsewhere != nullptr ? *elsewhere : *picker;
    const Seat* const seat =
        found.value ? seats_of(known.session_hint())->at(CookieKey(*found.value)) : nullptr;
    const SessionArgs asked = session.wish(kNow, seat);
    PickArgs args;
    args.session = &asked;
    return picker->pick(args);
  }

  const SessionTerms terms;
  const CompiledCookie config{SessionCookie{"s", "", 0s}, false};
  const TestHeaders headers;
  Session session;
};

}  // namespace

TEST_CASE("override_host picker: a cookie known at sight leads where reading it would lead",
          "[lb][override_host][A55-18][A55-36][A60][A75-42]") {
  struct Row {
    const char* what;
    std::string cookie;
    std::string answer;
    bool is_read = false;
  };

  Locality locality;
  locality.endpoints = {endpoint({"10.0.0.1:80"}),
                        endpoint({"10.0.0.2:80", "[2001:db8::2]:80"}),
                        endpoint({"10.0.0.3:80"}, HealthStatus::kDraining),
                        endpoint({"10.0.0.4:80"}),
                        endpoint({"10.0.0.5:80"}),
                        endpoint({"10.0.0.6:80", "[2001:db8:1:2:3:4:5:6]:80"})};
  Endpoints endpoints;
  endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
  const auto table =
      std::make_shared<const HostTable>(std::make_shared<const Endpoints>(std::move(endpoints)),
                                        kAlsoDraining,
                                        nullptr,
                                        ClusterName("orders"));
  HostStates states;
  for (std::size_t at = 0; at < table->size(); ++at) {
    const Address& address = (*table)[at].address;
    states.push_back(SubchannelStateChanged{
        address, kReady, true, absl::OkStatus(), std::make_shared<const Connection>(address)});
  }
  states[*table->find("10.0.0.4:80")]->healthy = false;
  states[*table->find("10.0.0.5:80")]->state = kIdle;
  const PickerPtr picker = make_override_host_picker(
      make_queue_picker(), make_host_slots(table, states), std::make_shared<const Asks>());

  const std::string both = "10.0.0.2:80,[2001:db8::2]:80";
  const std::string turned = "[2001:db8::2]:80,10.0.0.2:80";
  const std::string longer = "10.0.0.6:80,[2001:db8:1:2:3:4:5:6]:80";
  const auto row = GENERATE_COPY(values<Row>({
      {"one address",
       plain_cookie("10.0.0.1:80", "orders"),
       "complete 10.0.0.1:80 (hit) 10.0.0.1:80"},
      {"two", plain_cookie(both, "orders"), "complete 10.0.0.2:80 (hit) " + both},
      {"the other first",
       plain_cookie(turned, "orders"),
       "complete [2001:db8::2]:80 (hit) " + turned},
      {"DRAINING",
       plain_cookie("10.0.0.3:80", "orders"),
       "complete 10.0.0.3:80 (hit draining) 10.0.0.3:80"},
      {"one of the two",
       plain_cookie("10.0.0.2:80", "orders"),
       "complete 10.0.0.2:80 (hit) " + both,
       true},
      {"another cluster",
       plain_cookie("10.0.0.1:80", "stock"),
       "complete 10.0.0.1:80 (hit) 10.0.0.1:80",
       true},
      {"no cluster",
       absl::Base64Escape("10.0.0.1:80"),
       "complete 10.0.0.1:80 (hit) 10.0.0.1:80",
       true},
      {"ejected", plain_cookie("10.0.0.4:80", "orders"), "queue (unhealthy)", true},
      {"IDLE", plain_cookie("10.0.0.5:80", "orders"), "queue (queued) connect 10.0.0.5:80", true},
      {"nobody's", plain_cookie("10.0.0.9:80", "orders"), "queue (unknown host)", true},
      {"bad", "MTAuMC4wLjE6ODA7b3JkZXJz!", "queue (new)", true},
      {"none", "", "queue (new)", true},
      {"a long one", plain_cookie(longer, "orders"), "complete 10.0.0.6:80 (hit) " + longer},
  }));
  DYNAMIC_SECTION(row.what) {
    // A seat of another picker counts as none: the picker looks for its own seat.
    const PickerPtr elsewhere = make_override_host_picker(
        make_queue_picker(), make_host_slots(table, states), std::make_shared<const Asks>());
    const bool is_elsewhere = GENERATE(false, true);
    Unread call(row.cookie);
    const PickResult result = call.pick(picker, is_elsewhere ? elsewhere : nullptr);
    CHECK(to_words(result) == row.answer);
    CHECK(result.affinity.as_cookie != row.is_read);
    const bool may_hit = std::holds_alternative<Complete>(result.outcome);
    if (may_hit) {
      CHECK(call.session.has_cookie() == row.is_read);
      const Address& address = std::get<Complete>(result.outcome).connection->address();
      CHECK((*table)[*table->find(address.str())].mark->last_used() == kNow);
      REQUIRE(std::get<Complete>(result.outcome).endpoint != nullptr);
      CHECK(std::get<Complete>(result.outcome).endpoint->endpoint->addresses.front() ==
            (*table)[*table->find(address.str())].endpoint->addresses.front());
    }
  }
}

TEST_CASE("override_host picker: a cookie that is nearly another is not taken for it",
          "[lb][override_host][A55-17]") {
  // Cookies of 24 bytes (three words of eight) and of 28 bytes (three and a half).
  const ClusterName cluster(GENERATE(as<std::string>(), "orders", "invoices"));
  Locality locality;
  locality.endpoints = {endpoint({"10.0.0.1:80"})};
  Endpoints endpoints;
  endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
  const auto table = std::make_shared<const HostTable>(
      std::make_shared<const Endpoints>(std::move(endpoints)), kUsual, nullptr, cluster);
  const auto connection = std::make_shared<const Connection>(Address("10.0.0.1:80"));
  const PickerPtr picker = make_override_host_picker(
      make_queue_picker(),
      make_host_slots(table,
                      {SubchannelStateChanged{
                          Address("10.0.0.1:80"), kReady, true, absl::OkStatus(), connection}}),
      nullptr);
  const std::string cookie = plain_cookie("10.0.0.1:80", cluster.str());
  REQUIRE(cookie.size() == (cluster.str() == "orders" ? 24 : 28));
  REQUIRE(Unread(cookie).pick(picker).affinity.as_cookie);
  // There are few seats, so some of these cookies lead to the seat of the right cookie.
  for (std::size_t place = 0; place < cookie.size(); ++place) {
    for (const char letter : absl::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=")) {
      if (cookie[place] == letter) continue;
      std::string other = cookie;
      other[place] = letter;
      INFO(other);
      CHECK_FALSE(Unread(other).pick(picker).affinity.as_cookie);
    }
  }
  CHECK_FALSE(Unread(cookie.substr(0, cookie.size() - 1)).pick(picker).affinity.as_cookie);
  CHECK_FALSE(Unread(cookie + "=").pick(picker).affinity.as_cookie);
}

TEST_CASE("override_host picker: a call of no session is the child's, and leaves no mark",
          "[lb][override_host][A75-27][A75-28][D7]") {
  const Hosts hosts;
  CHECK(to_words(hosts.picker->pick({})) == "complete z (none)");
  CHECK(hosts.used().empty());
}

TEST_CASE("override_host picker: a mark is made by calls that are sent, not by those that wait",
          "[lb][override_host][A75-26][A75-27]") {
  Hosts hosts;
  CHECK(hosts.used().empty());  // A mark without a use counts as last used infinitely long ago.
  hosts.child = make_queue_picker();
  hosts.rebuild();
  CHECK(to_words(hosts.pick("nobody")) == "queue (unknown host)");
  CHECK(hosts.used().empty());
}

TEST_CASE("override_host picker: a child's choice that the table does not know is not named",
          "[lb][override_host][A75-48]") {
  Hosts hosts;
  hosts.child = make_connection_picker(std::make_shared<const Connection>(Address("elsewhere")));
  hosts.rebuild();
  CHECK(to_words(hosts.pick("")) == "complete elsewhere (new)");
}

TEST_CASE("override_host picker: those above see whom a cookie chose",
          "[lb][override_host][A55-36]") {
  const Hosts hosts;
  const PickResult result = hosts.pick("ready");
  const auto& complete = std::get<Complete>(result.outcome);
  REQUIRE(complete.endpoint != nullptr);
  CHECK(complete.endpoint->locality->name.zone == "east");
  CHECK(complete.endpoint->endpoint->addresses.front() == Address("ready"));
  CHECK(complete.endpoint->tracker == hosts.tracker);
}

TEST_CASE("override_host picker: one of all calls that wait carries the ask",
          "[lb][override_host][A75-45][A75-47]") {
  Hosts hosts;
  for (const auto& [cookie, first, later] : std::vector<std::array<std::string, 3>>{
           {"idle", "queue (queued) connect idle", "queue (queued)"},
           {"unheld", "queue (created) create unheld", "queue (created)"}}) {
    CHECK(to_words(hosts.pick(cookie)) == first);
    CHECK(to_words(hosts.pick(cookie)) == later);
    const PickerPtr before = hosts.picker;
    hosts.child = make_queue_picker();  // New slots: their picker asks again. Another picker
    hosts.rebuild();                    // over the same slots would not.
    CHECK(to_words(hosts.pick(cookie)) == first);
  }
}

TEST_CASE("override_host picker: a strict session fails rather than go elsewhere",
          "[lb][override_host][A55-43]") {
  struct Row {
    std::string cookie;
    std::string why;
    AffinityResult result = AffinityResult::kUnhealthy;
  };

  const Hosts hosts({HealthStatus::kHealthy});
  const auto row = GENERATE(values<Row>({
      {"nobody",
       "the host of its cookie cannot be used: no endpoint of the cluster has this address",
       AffinityResult::kUnknownHost},
      {"failed", "its host failed cannot be used: refused"},
      {"ejected", "its host ejected cannot be used: it was ejected"},
      {"unknown",
       "its host unknown cannot be used: its health is UNKNOWN, which override_host_status does "
       "not name"},
  }));
  const std::string expected = "drop UNAVAILABLE: the session is strict, and " + row.why;
  const PickResult refused = hosts.pick(row.cookie, true);
  CHECK(to_text(refused) == expected);
  CHECK(refused.affinity.result == row.result);
  CHECK(hosts.used().empty());
  CHECK(to_text(hosts.pick("nobody," + row.cookie + ",failed", true)) ==
        (row.cookie == "nobody" ? "drop UNAVAILABLE: the session is strict, and its host failed "
                                  "cannot be used: refused"
                                : expected));  // The first known host gives the reason.
  CHECK(to_text(hosts.pick("ready", true)) == "complete ready");
  CHECK(to_text(hosts.pick("connecting", true)) == "queue");
}

TEST_CASE("override_host picker: an explanation says how each host is, and what follows",
          "[lb][override_host][explain]") {
  struct Row {
    const char* host;
    const char* verdict;
    const char* follows;
  };

  const char* const moves =
      "the session moves; no host of its cookie can be used, and it is not strict";
  const auto row = GENERATE_COPY(values<Row>({
      {"ready",
       "taken; it is READY, its health is HEALTHY",
       "the session stays; its host takes the call"},
      {"idle",
       "waited for, if no other is READY; it is IDLE, its health is HEALTHY",
       "the call waits; its host is not connected; a pick lets it connect"},
      {"unheld",
       "no policy holds it; its health is HEALTHY",
       "the call waits; no policy holds its host; a pick has it connected"},
      {"failed", "not taken; it is TRANSIENT_FAILURE, its health is HEALTHY; refused", moves},
      {"ejected",
       "not taken; it is set aside; it is READY, its health is HEALTHY; it was ejected",
       moves},
      {"unknown",
       "not taken; its health is UNKNOWN, which override_host_status does not name",
       moves},
  }));
  DYNAMIC_SECTION(row.host) {
    const Hosts hosts({HealthStatus::kHealthy});
    const SessionArgs session{.hosts = row.host, .now = kNow};
    PickArgs args;
    args.session = &session;
    const auto lines = testing::steps_of(hosts.picker, args);
    REQUIRE(lines.size() >= 2);
    CHECK(lines[0] ==
          absl::StrCat("override_host: cookie's host ", row.host, ": ", row.verdict, "; CDS"));
    CHECK(lines[1] == absl::StrCat("override_host: ", row.follows, "; CDS"));
  }
}

TEST_CASE("host table: an endpoint keeps its marks while it is named",
          "[lb][override_host][A55-27][A55-28][A61]") {
  const auto named = [](const std::vector<Endpoint>& endpoints) {
    Endpoints made;
    Locality locality;
    locality.endpoints = endpoints;
    made.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
    return std::make_shared<const Endpoints>(std::move(made));
  };
  const HostTable first(named({endpoint({"a", "b"}), endpoint({"c"})}), kUsual, nullptr);
  const HostTable second(named({endpoint({"b"}), endpoint({"a"})}), kUsual, &first);
  REQUIRE(first.size() == 3);
  CHECK(first[*first.find("b")].hosts == "b,a");
  // The cookie's hosts are the present addresses of the endpoint (A55-28).
  CHECK(second[*second.find("b")].hosts == "b");
  CHECK(second[*second.find("a")].mark == first[*first.find("a")].mark);
  CHECK(second[*second.find("b")].mark == first[*first.find("b")].mark);
  CHECK_FALSE(second.find("c").has_value());
  const HostTable third(named({endpoint({"c"})}), kUsual, &second);
  const HostTable twice(named({endpoint({"a", "b"}), endpoint({"b", "c"})}), kUsual, nullptr);
  CHECK(twice.size() == 3);  // A shared address belongs to the first endpoint that has it.
  CHECK(twice[*twice.find("b")].hosts == "b,a");
  CHECK(third[*third.find("c")].mark != first[*first.find("c")].mark);
  CHECK(third.marks()->at(Address("c")).mark == third[0].mark);
}

TEST_CASE("host table: a cookie names as many addresses of an endpoint as are looked at again",
          "[lb][override_host][limits][A55-17][A61]") {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < kMostCookieHosts + 3; ++i)
    addresses.push_back("10.0.0." + std::to_string(i) + ":80");
  Locality locality;
  locality.endpoints = {endpoint(addresses)};
  Endpoints endpoints;
  endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
  const HostTable table(std::make_shared<const Endpoints>(std::move(endpoints)), kUsual, nullptr);
  REQUIRE(table.size() == addresses.size());
  for (const std::string& address : addresses) {
    const std::string& hosts = table[*table.find(address)].hosts;
    CHECK(first_host(hosts) == address);
    const std::string cookie = hosts + ";orders";
    CookieHost read;
    CHECK(parse_cookie_host(cookie, read) == std::nullopt);
    CHECK(read.names_hosts(hosts));
  }
  CookieHost read;
  CHECK(parse_cookie_host(table[0].hosts + "," + addresses.back(), read) ==
        CookieFlaw::kTooManyHosts);
}

TEST_CASE("override_host: a session's call has its host's zone, by its cookie and by its seat",
          "[lb][override_host][pick]") {
  Hosts hosts;
  const auto zone_of_call = [&] { return std::get<Complete>(hosts.pick("ready").outcome).zone; };
  const auto zone_of_seat = [&] {
    const HostSlotsPtr slots = make_host_slots(hosts.table, hosts.states, hosts.caller);
    const CookieKey& key = (*hosts.table)[*hosts.table->find("ready")].cookie;
    return slots->seats().find(key, nullptr)->complete().zone;
  };
  CHECK(zone_of_call() == CallZone::kUnknown);
  for (const auto& [zone, seen] : {std::pair("east", CallZone::kOwn), {"west", CallZone::kOther}}) {
    hosts.caller = {"", zone, ""};
    hosts.rebuild();
    CHECK(zone_of_call() == seen);
    CHECK(zone_of_seat() == seen);
  }
}
