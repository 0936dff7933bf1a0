// SPDX-License-Identifier: Apache-2.0
//
// The pages that show a RuntimeStatus, the page of certificates, and the lines of /stats.
#include "channel/admin/status_pages.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "channel/admin/certs_page.hpp"
#include "channel/admin/html.hpp"
#include "channel/admin/priorities_page.hpp"
#include "channel/admin/stats_page.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/channel/status_fixture.hpp"

namespace signalbox::channel {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Whether every opened element is closed, in order. <meta> and <link> have no end tag.
bool is_nested(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return false;
    std::string tag = html.substr(at + 1, end - at - 1);
    if (tag.starts_with("!") || tag.ends_with("/")) continue;
    tag = tag.substr(0, tag.find_first_of(" \n"));
    if (tag == "meta" || tag == "link") continue;
    if (!tag.starts_with("/")) {
      open.push_back(tag);
    } else if (open.empty() || open.back() != tag.substr(1)) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

// A status in which most texts have a script, which a page must escape.
RuntimeStatus hostile_status() {
  const std::string evil = "<script>alert('1')</script>\"&\x01";
  RuntimeStatus status = some_status();
  status.version = status.node_id = evil;
  for (TargetStatus& target : status.targets) {
    target.name = evil;
    target.failure = absl::UnavailableError(evil);
    for (ClusterStatus& cluster : target.clusters) {
      cluster.name = ClusterName(evil);
      cluster.service_name = evil;
      cluster.failure = absl::UnavailableError(evil);
      for (ClusterName& leaf : cluster.leaves)
        leaf = ClusterName(evil);
      for (PriorityStatus& priority : cluster.priorities) {
        priority.name = evil;
        priority.reason = absl::UnavailableError(evil);
        for (LocalityStatus& locality : priority.localities) {
          locality.name = {evil, evil, evil};
          for (EndpointStatus& endpoint : locality.endpoints) {
            endpoint.hostname = evil;
            endpoint.addresses[0].address = Address(evil);
            endpoint.addresses[0].reason = absl::UnavailableError(evil);
          }
        }
      }
    }
  }
  for (PriorityChange& change : status.changes)
    change.target = change.from_name = change.to_name = change.details = evil;
  return status;
}

std::vector<CertificateUse> hostile_certificates() {
  const std::string evil = "<script>alert('1')</script>";
  CertificateUse use{.use = evil};
  use.roots = {.path = evil, .status = absl::NotFoundError(evil)};
  use.chain.path = evil;
  use.chain.certificates.push_back({.subject = evil, .dns = {evil}, .other = {evil}});
  return {use};
}

}  // namespace

TEST_CASE("html: texts are escaped, control characters replaced", "[channel][admin][html]") {
  CHECK(escape("a<b>&\"c\" 'd'") == "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39;");
  CHECK(escape(std::string("a\0b\x1b[1m\x7f\n", 9)) ==
        "a\xef\xbf\xbd"
        "b\xef\xbf\xbd[1m\xef\xbf\xbd\n");
  CHECK(escape("größe") == "größe");
}

TEST_CASE("html: durations in words", "[channel][admin][html]") {
  struct Row {
    Duration duration;
    const char* text;
  };

  const auto row = GENERATE(values<Row>({
      {seconds(-3), "0 ms"},
      {milliseconds(0), "0 ms"},
      {milliseconds(999), "999 ms"},
      {milliseconds(1999), "1 s"},
      {seconds(59), "59 s"},
      {seconds(60), "1 min"},
      {seconds(3599), "59 min"},
      {seconds(3600), "1 h"},
      {seconds(47 * 3600), "47 h"},
      {seconds(49 * 3600), "2 d"},
  }));
  CHECK(in_words(row.duration) == row.text);
}

TEST_CASE("pages: no text of the outside world becomes markup", "[channel][admin][html]") {
  const RuntimeStatus status = hostile_status();
  for (const std::string& html : {home_page(status),
                                  clusters_page(status),
                                  priorities_page(status),
                                  certs_page(hostile_certificates(), status)}) {
    INFO(html);
    CHECK_THAT(html, !Contains("<script") && Contains("&lt;script&gt;") && !Contains("\x01"));
    CHECK(is_nested(html));
  }
}

TEST_CASE("pages: need no script, no style of their own, and nothing from elsewhere",
          "[channel][admin][html]") {
  const RuntimeStatus status = some_status();
  for (const std::string& html : {home_page(status),
                                  clusters_page(status),
                                  priorities_page(status),
                                  certs_page({}, status)}) {
    CHECK_THAT(html,
               Contains("<!doctype html>") && Contains("<html lang=\"en\">") &&
                   Contains("width=device-width") && Contains("href=\"/style.css\""));
    CHECK_THAT(html,
               !Contains("style=") && !Contains("<style") && !Contains("src=") &&
                   !Contains("http://") && !Contains("https://") && !Contains("onclick"));
    CHECK(times(html, "aria-current=\"page\"") == 1);
    CHECK(is_nested(html));
  }
  CHECK_THAT(std::string(style_sheet()), Contains("prefers-color-scheme: dark"));
}

TEST_CASE("home page: says first what is wrong", "[channel][admin][html]") {
  const std::string html = home_page(some_status());
  CHECK_THAT(html,
             Contains("<strong>all</strong> of xds:///orders is on priority 1; priority 0 is "
                      "TRANSIENT_FAILURE"));
  CHECK_THAT(html, Contains("<strong>all/near</strong> of xds:///orders: 2 of 2 endpoints cannot"));
  CHECK_THAT(html, Contains("<code>10.0.0.1:80</code>") && Contains("connection refused"));
  CHECK_THAT(html, Contains("<strong>broken</strong>") && Contains("no such cluster"));
  CHECK(html.find("What is wrong") < html.find("calls in flight"));
  CHECK_THAT(html, Contains("Version 1.2.3") && Contains(">10 min</time>"));
  CHECK_THAT(html, Contains("data-label=\"ready\">1 of 2<"));
  CHECK_THAT(html, Contains("data-label=\"calls in flight\">12<"));
  CHECK_THAT(html, Contains("priority none → 1 (far), timed out after 10 s without one"));
}

TEST_CASE("home page: of a runtime that has nothing, and of one that waits",
          "[channel][admin][html]") {
  RuntimeStatus status;
  status.ready = true;
  std::string html = home_page(status);
  CHECK_THAT(html, Contains("Nothing: every target can send calls.") && Contains("No target"));
  CHECK_THAT(html, Contains("a node without an id"));
  status.ready = false;
  status.targets.push_back({.name = "xds:///orders"});
  html = home_page(status);
  CHECK_THAT(html, Contains("cannot send calls: it has no configuration yet"));
  CHECK_THAT(html, Contains("not ready") && Contains("No clusters."));
  status.targets[0].failure = absl::NotFoundError("no listener");
  CHECK_THAT(home_page(status), Contains("no listener"));
}

TEST_CASE("home page: a long list of problems is cut", "[channel][admin][html]") {
  RuntimeStatus status;
  for (int i = 0; i < 30; ++i)
    status.targets.push_back({.name = "xds:///" + std::to_string(i)});
  CHECK_THAT(home_page(status), Contains("and 10 more"));
}

TEST_CASE("clusters page: has every endpoint with its state, since when and why",
          "[channel][admin][html]") {
  const std::string html = clusters_page(some_status());
  CHECK_THAT(html, Contains("[2001:db8::1]:443") && Contains(">ejected</span>"));
  CHECK_THAT(html, Contains("too many failures") && Contains("data-label=\"ejections\">2<"));
  CHECK_THAT(html, Contains("far.example") && Contains("gets 80 % of the calls"));
  CHECK_THAT(html, Contains("not connected") && Contains("not needed"));
  CHECK_THAT(html, Contains("the next priority is tried in 5 s"));
  CHECK_THAT(html, Contains("priority 0: near") && Contains("at most 1024 calls at a time"));
  CHECK_THAT(html, Contains("r/z"));
}

TEST_CASE("clusters page: ten thousand endpoints are a page, not a book",
          "[channel][admin][html]") {
  RuntimeStatus status = some_status();
  LocalityStatus& locality = status.targets[0].clusters[2].priorities[0].localities[0];
  locality.endpoints.resize(10'000, locality.endpoints[0]);
  const std::string html = clusters_page(status);
  CHECK(html.size() < 400'000);
  CHECK(times(html, "data-label=\"ejections\"") == kMostEndpoints);
  CHECK_THAT(html, Contains("<strong>9503</strong> more endpoints"));
}

TEST_CASE("timeline: rows are without gaps, from one begin until now", "[channel][admin][svg]") {
  const RuntimeStatus status = some_status();
  const auto rows = timelines(status);
  REQUIRE(rows.size() == 2);
  const WallTime begin = at_second(50);  // A tenth of 500 s before the first change.
  CHECK(rows[0].cluster == ClusterName("all"));
  CHECK(rows[0].segments == std::vector<TimelineSegment>{
                                {begin, at_second(100), std::nullopt, "", true},
                                {at_second(100), at_second(300), 0, "near"},
                                {at_second(300), at_second(310), std::nullopt, ""},
                                {at_second(310), at_second(600), 1, "far"},
                            });
  // A cluster without a change has had its active priority from the beginning.
  CHECK(rows[1].cluster == ClusterName("far"));
  CHECK(rows[1].aggregate == ClusterName("all"));
  CHECK(rows[1].segments == std::vector<TimelineSegment>{{begin, at_second(600), 0, "child0"}});
}

TEST_CASE("timeline: never begins before the runtime, and survives changes out of order",
          "[channel][admin][svg]") {
  RuntimeStatus status = some_status();
  status.started = at_second(99);
  CHECK(timelines(status)[0].segments[0].begin == at_second(99));
  std::swap(status.changes[1].at, status.changes[2].at);
  for (const Timeline& row : timelines(status)) {
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
      CHECK(row.segments[i].begin <= row.segments[i].end);
      if (i > 0) CHECK(row.segments[i].begin == row.segments[i - 1].end);
    }
  }
  // A cluster that is gone keeps its row for as long as its changes are listed.
  status.targets.clear();
  CHECK(timelines(status).size() == 1);
  status.changes.clear();
  CHECK(timelines(status).empty());
}

TEST_CASE("priorities page: draws the rows, and lists changes and open windows",
          "[channel][admin][svg]") {
  const std::string html = priorities_page(some_status());
  CHECK(times(html, "role=\"img\"") == 3);  // Two rows, and the axis.
  CHECK_THAT(html,
             Contains("calls of all went to: not used yet, then 0 near, then none, then 1 far"));
  CHECK_THAT(html, Contains("x=\"9.091%\" width=\"36.364%\""));  // 200 s of 550 s.
  CHECK_THAT(html, Contains(">9 min ago</text>") && Contains(">now</text>"));
  CHECK_THAT(html, Contains("all/near: priority 0 connects; the next priority is tried in 5 s"));
  CHECK_THAT(html, Contains("open for 10 s more"));
  CHECK(html.find(">3</th>") < html.find(">1</th>"));  // The newest change first.
  CHECK_THAT(priorities_page(RuntimeStatus{}), Contains("No cluster has carried calls."));
}

TEST_CASE("stats: a line for each series, filtered by a regular expression",
          "[channel][admin][stats]") {
  const std::string metrics =
      "# HELP signalbox_a Help with spaces\n# TYPE signalbox_a counter\n"
      "signalbox_a{cluster=\"c d\"} 1\nsignalbox_b 2.5\n\nodd\n";

  struct Row {
    std::string filter;
    std::string text;
  };

  const auto row = GENERATE(values<Row>({
      {"", "signalbox_a{cluster=\"c d\"}: 1\nsignalbox_b: 2.5\n"},
      {"_b$", "signalbox_b: 2.5\n"},
      {"c d", "signalbox_a{cluster=\"c d\"}: 1\n"},
      {"nothing", ""},
  }));
  CHECK(stats_text(metrics, row.filter).value() == row.text);
}

TEST_CASE("stats: a filter that is none, or too long, is refused", "[channel][admin][stats]") {
  CHECK_THAT(std::string(stats_text("a 1\n", "(").status().message()),
             Contains("filter: expected a regular expression"));
  CHECK_THAT(std::string(stats_text("a 1\n", std::string(2000, 'a')).status().message()),
             Contains("expected at most 1024 bytes, got 2000"));
  CHECK_FALSE(stats_text("a 1\n", "((a{1,500}){1,500}){1,500}").ok());
}

TEST_CASE("certs page: the subjects, until when, and what cannot be read",
          "[channel][admin][certs]") {
  const test::TemporaryFolder folder;
  const test::Authority authority("Shop CA");
  const test::Issued good = authority.issue("orders", "DNS:orders.example,IP:10.0.0.1");
  const test::Issued old = authority.issue("old", "DNS:old.example", test::kExpired);
  xds::Bootstrap bootstrap;
  xds::ServerConfig server;
  server.server_uri = "plane:18000";
  server.channel_creds =
      xds::TlsCredentials{{.ca_certificate_file = folder.write("ca.pem", authority.certificate()),
                           .certificate_file = folder.write("c.pem", good.certificate),
                           .private_key_file = folder.write("key.pem", good.key)}};
  bootstrap.servers = {server, server};
  bootstrap.certificate_providers["files"] = {
      .ca_certificate_file = folder.write("bad.pem", "no certificate"),
      .certificate_file = folder.write("old.pem", old.certificate)};
  const auto uses = certificate_files(bootstrap);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].use == "xDS server plane:18000");
  REQUIRE(uses[0].chain.certificates.size() == 1);
  const actors::CertificateFacts& facts = uses[0].chain.certificates[0];
  CHECK_THAT(facts.subject, Contains("orders"));
  CHECK(facts.dns == std::vector<std::string>{"orders.example"});
  CHECK(facts.other == std::vector<std::string>{"10.0.0.1"});
  CHECK(facts.expires > facts.valid_from);
  CHECK_FALSE(uses[1].roots.status.ok());

  RuntimeStatus status;
  status.made = std::chrono::system_clock::now();
  const std::string html = certs_page(uses, status);
  CHECK_THAT(html, Contains("orders.example, 10.0.0.1") && Contains("badge fair"));
  CHECK_THAT(html, Contains(">expired</span>") && Contains("the file has no certificate"));
  CHECK_THAT(html, !Contains("key.pem"));
  const std::string json = certs_json(uses, status.made);
  CHECK_THAT(json, Contains("\"dns\": \"orders.example\"") && Contains("\"ip_address\""));
  CHECK_THAT(json, Contains("\"days_until_expiration\": \"0\""));
  CHECK_THAT(json, !Contains("PRIVATE") && !Contains("key.pem"));
  CHECK_THAT(certs_page({}, status), Contains("names no certificate files"));
}

TEST_CASE("certs page: one server with two certificates has both", "[channel][admin][certs]") {
  const test::TemporaryFolder folder;
  const test::Authority authority("Shop CA");
  xds::ServerConfig server;
  server.server_uri = "plane:18000";
  server.channel_creds = xds::TlsCredentials{
      {.certificate_file = folder.write("one.pem", authority.issue("one", "").certificate)}};
  xds::Bootstrap bootstrap;
  bootstrap.servers = {server};
  server.channel_creds = xds::TlsCredentials{
      {.certificate_file = folder.write("two.pem", authority.issue("two", "").certificate)}};
  bootstrap.authorities["shop"].servers = {server};
  bootstrap.authorities["same"].servers = {server};
  const auto uses = certificate_files(bootstrap);
  REQUIRE(uses.size() == 2);
  for (const CertificateUse& use : uses)
    CHECK(use.use == "xDS server plane:18000");
  CHECK(uses[0].chain.path == folder.path("one.pem"));
  CHECK(uses[1].chain.path == folder.path("two.pem"));
}

}  // namespace signalbox::channel
