// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/known_addresses.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds::known_addresses_test {
namespace {

using Hosts = std::vector<int>;

constexpr int kHosts = 40;

Hosts all_hosts() {
  Hosts hosts(kHosts);
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

std::string endpoint_of(int host) {
  return absl::StrCat(
      "lb_endpoints { endpoint { address { socket_address { address: \"192.168.100.",
      host,
      "\" port_value: 8080 } } } } ");
}

std::string locality_of(const Hosts& hosts, int priority) {
  std::string text = absl::StrCat("endpoints { locality { zone: \"z\" } priority: ",
                                  priority,
                                  " load_balancing_weight { value: 1 } ");
  for (const int host : hosts)
    text += endpoint_of(host);
  return text + "} ";
}

struct Assignment {
  std::string cluster;
  std::string endpoints;
};

std::string response(const std::vector<Assignment>& assignments) {
  std::string text = absl::StrCat(
      "version_info: \"7\" nonce: \"n3\" type_url: \"", kClusterLoadAssignmentTypeUrl, "\" ");
  for (const Assignment& assignment : assignments) {
    absl::StrAppend(&text,
                    "resources { [",
                    kClusterLoadAssignmentTypeUrl,
                    "] { cluster_name: \"",
                    assignment.cluster,
                    "\" ",
                    assignment.endpoints,
                    "} } ");
  }
  return serialise<envoy::service::discovery::v3::DiscoveryResponse>(text);
}

/// The decoder of one ADS session.
struct Session {
  std::vector<ReceivedResource> decode_all(const std::vector<Assignment>& assignments) {
    auto result = decode_response(response(assignments), options, &known);
    REQUIRE(result.ok());
    return result->received.resources;
  }

  ReceivedResource decode(const std::string& endpoints) {
    return decode_all({{"orders", endpoints}}).at(0);
  }

  ParseOptions options;
  KnownResources known;
};

// The endpoints' addresses, and where each one's text is.
std::map<std::string, const std::string*> texts_of(const ReceivedResource& received) {
  std::map<std::string, const std::string*> texts;
  for (const Priority& priority : value_of<Endpoints>(received).priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      for (const Endpoint& endpoint : locality->endpoints) {
        const std::string& text = endpoint.addresses.at(0).str();
        texts.emplace(text, &text);
      }
    }
  }
  return texts;
}

// How many of the second list's addresses are also in the first, but have another text in memory.
std::size_t copied(const ReceivedResource& first, const ReceivedResource& second) {
  const auto before = texts_of(first);
  const auto after = texts_of(second);
  return static_cast<std::size_t>(std::ranges::count_if(after, [&before](const auto& entry) {
    const auto found = before.find(entry.first);
    return found != before.end() && found->second != entry.second;
  }));
}

struct Update {
  std::string name;
  Hosts hosts;
  std::size_t most_copied = 0;
};

std::vector<Update> updates() {
  std::vector<Update> updates;
  const auto add = [&updates](const std::string& name, std::size_t most_copied, auto change) {
    Hosts hosts = all_hosts();
    change(hosts);
    updates.push_back({name, hosts, most_copied});
  };
  add("none has changed", 0, [](Hosts&) {});
  add("one is another", 0, [](Hosts& hosts) { hosts.at(20) = 100; });
  add("one more at the begin", 0, [](Hosts& hosts) { hosts.insert(hosts.begin(), 100); });
  add("one less", 0, [](Hosts& hosts) { hosts.erase(hosts.begin() + 20); });
  add("every third is another", 8, [](Hosts& hosts) {
    for (std::size_t at = 0; at < hosts.size(); at += 3)
      hosts.at(at) += 100;
  });
  add("20 are others", 0, [](Hosts& hosts) {
    for (std::size_t at = 10; at < 30; ++at)
      hosts.at(at) += 100;
  });
  add("20 less", 8, [](Hosts& hosts) { hosts.erase(hosts.begin() + 10, hosts.begin() + 30); });
  add("the other way round", 8, [](Hosts& hosts) { std::ranges::reverse(hosts); });
  return updates;
}

}  // namespace

TEST_CASE("known_addresses: an address that stays keeps its text in memory",
          "[xds][parse][scale]") {
  for (const Update& update : updates()) {
    DYNAMIC_SECTION(update.name) {
      Session session;
      const ReceivedResource first = session.decode(locality_of(all_hosts(), 0));

      const ReceivedResource second = session.decode(
          locality_of(update.hosts, 0) + "policy { overprovisioning_factor { value: 150 } } ");

      CHECK(copied(first, second) <= update.most_copied);
      CHECK(texts_of(second).size() == update.hosts.size());
      for (const int host : update.hosts)
        CHECK(texts_of(second).contains(absl::StrCat("192.168.100.", host, ":8080")));
    }
  }
}

TEST_CASE("known_addresses: an address may move to another priority", "[xds][parse][scale]") {
  Session session;
  const ReceivedResource first =
      session.decode(locality_of({1, 2, 3}, 0) + locality_of({4, 5, 6}, 1));

  const ReceivedResource second =
      session.decode(locality_of({1, 2, 3, 4}, 0) + locality_of({5, 6}, 1));

  CHECK(copied(first, second) == 0);
}

TEST_CASE("known_addresses: those of several clusters are found by the cluster's name",
          "[xds][parse][scale]") {
  Session session;
  const Assignment orders{"orders", locality_of({1, 2, 3}, 0)};
  const Assignment carts{"carts", locality_of({4, 5, 6}, 0)};
  const auto first = session.decode_all({orders, carts});
  REQUIRE(first.size() == 2);

  // Other bytes, so that no whole resource is used again.
  const auto changed = [](Assignment assignment) {
    assignment.endpoints += "policy { overprovisioning_factor { value: 150 } } ";
    return assignment;
  };
  const auto second = session.decode_all({changed(carts), changed(orders)});
  REQUIRE(second.size() == 2);

  CHECK(copied(first.at(0), second.at(1)) == 0);
  CHECK(copied(first.at(1), second.at(0)) == 0);
  CHECK(texts_of(second.at(0)).size() == 3);
}

TEST_CASE("known_addresses: an address that occurs twice is refused though it is known",
          "[xds][parse][scale][A27]") {
  Session session;
  session.decode(locality_of({1, 2, 3}, 0));

  const std::string error = error_of(session.decode(locality_of({1, 2, 3, 1}, 0)));

  CHECK(error.find("must be unique in the cluster, found 192.168.100.1:8080 again") !=
        std::string::npos);
}

TEST_CASE("known_addresses: a refused update leaves nothing to use again", "[xds][parse][scale]") {
  Session session;
  const ReceivedResource first = session.decode(locality_of({1, 2, 3}, 0));
  REQUIRE_FALSE(session.decode(locality_of({1, 1}, 0)).resource.ok());

  const ReceivedResource third = session.decode(locality_of({1, 2, 3}, 0));

  CHECK(copied(first, third) == 3);
  CHECK(value_of<Endpoints>(third) == value_of<Endpoints>(first));
}

}  // namespace signalbox::xds::known_addresses_test
