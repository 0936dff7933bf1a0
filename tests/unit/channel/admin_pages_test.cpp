// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_pages.hpp"

#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/channel/status_fixture.hpp"
#include "xds/explanation_json.hpp"

namespace signalbox::channel {
namespace {

using Catch::Matchers::Contains;

ResourceDump some_dump() {
  ResourceDump dump;
  dump.node_id = "me";
  for (const auto type : {ResourceType::kListener, ResourceType::kCluster}) {
    for (const char* name : {"a", "b"})
      dump.resources.push_back({.key = {type, name}});
  }
  return dump;
}

AdminSources sources() {
  return {.dump = [] { return some_dump(); },
          .metrics = [] { return "signalbox_x 1\n"; },
          .explain = [](const ExplainQuestion& question) -> absl::StatusOr<std::string> {
            if (question.target == "xds:///none") return absl::InvalidArgumentError("none of ours");
            if (question.target == "xds:///late") return absl::UnavailableError("too late");
            Explanation told;
            told.steps.push_back({"part", "it", "why", "CDS c"});
            told.cluster = "c";
            told.address = "10.0.0.1:80";
            told.outcome = PickOutcome::kComplete;
            return xds::to_json_text({question.target, question.method, question.seed.value_or(7)},
                                     told);
          },
          .status = [] { return some_status(); },
          .ready = [](const std::string& target) -> std::optional<bool> {
            if (target.empty() || target == "xds:///orders") return true;
            if (target == "xds:///late") return false;
            return std::nullopt;
          },
          .certificates = [] { return std::vector<CertificateUse>{{.use = "xDS server a:1"}}; }};
}

AdminRequest get(const std::string& path) {
  return {.method = "GET", .path = path};
}

// The resources of a dump as short texts: "LDS a".
std::vector<std::string> shown(const AdminResponse& response) {
  std::vector<std::string> out;
  const auto dump = nlohmann::json::parse(response.body);
  for (const auto& resource : dump["generic_xds_configs"]) {
    const std::string type = resource["type_url"];
    out.push_back((type.ends_with("Listener") ? "LDS " : "CDS ") +
                  resource["name"].get<std::string>());
  }
  return out;
}

}  // namespace

TEST_CASE("admin pages: the dump, the metrics, and a list of both", "[channel][admin]") {
  const AdminResponse dump = answer(get("/config_dump"), sources());
  CHECK(dump.status == 200);
  CHECK(dump.content_type == "application/json");
  CHECK(nlohmann::json::parse(dump.body)["node"]["id"] == "me");
  CHECK(shown(dump).size() == 4);

  const AdminResponse metrics = answer(get("/metrics"), sources());
  CHECK(metrics.status == 200);
  CHECK_THAT(metrics.content_type, Contains("version=0.0.4"));
  CHECK(metrics.body == "signalbox_x 1\n");

  const AdminResponse index = answer(get("/help"), sources());
  CHECK(index.status == 200);
  CHECK_THAT(index.body, Contains("/config_dump") && Contains("/metrics"));
  CHECK_THAT(index.body, !Contains("/style.css"));
}

TEST_CASE("admin pages: each page has its type and content", "[channel][admin]") {
  struct Row {
    std::string path;
    std::multimap<std::string, std::string> query;
    std::string type;
    std::string says;
  };

  const auto row = GENERATE(values<Row>({
      {"/", {}, "text/html; charset=utf-8", "What is wrong"},
      {"/clusters", {}, "text/html; charset=utf-8", "10.0.1.1:80"},
      {"/clusters", {{"format", "html"}}, "text/html; charset=utf-8", "10.0.1.1:80"},
      {"/clusters", {{"format", "json"}}, "application/json", "cluster_statuses"},
      {"/priorities", {}, "text/html; charset=utf-8", "<svg"},
      {"/certs", {}, "text/html; charset=utf-8", "xDS server a:1"},
      {"/certs", {{"format", "json"}}, "application/json", "certificates"},
      {"/status", {}, "application/json", "\"targets\""},
      {"/server_info", {}, "application/json", "LIVE"},
      {"/ready", {}, "text/plain; charset=utf-8", "LIVE\n"},
      {"/ready", {{"target", "xds:///orders"}}, "text/plain; charset=utf-8", "LIVE\n"},
      {"/stats", {}, "text/plain; charset=utf-8", "signalbox_x: 1\n"},
      {"/stats", {{"filter", "^signalbox"}}, "text/plain; charset=utf-8", "signalbox_x: 1\n"},
      {"/stats/prometheus", {}, "text/plain; version=0.0.4; charset=utf-8", "signalbox_x 1\n"},
      {"/style.css", {}, "text/css; charset=utf-8", "color-scheme: light dark"},
      {"/help", {}, "text/plain; charset=utf-8", "/server_info"},
  }));
  AdminRequest request = get(row.path);
  request.query = row.query;
  const AdminResponse response = answer(request, sources());
  INFO(row.path);
  CHECK(response.status == 200);
  CHECK(response.content_type == row.type);
  CHECK_THAT(response.body, Contains(row.says));
}

TEST_CASE("admin pages: a browser's own request is no page of another site", "[channel][admin]") {
  CHECK_FALSE(is_foreign(false, ""));
  CHECK_FALSE(is_foreign(false, "none"));
  CHECK_FALSE(is_foreign(false, "same-origin"));
  CHECK(is_foreign(false, "same-site"));
  CHECK(is_foreign(false, "cross-site"));
  CHECK(is_foreign(false, "None"));
  CHECK(is_foreign(true, ""));
  CHECK(is_foreign(true, "same-origin"));
}

TEST_CASE("admin pages: a dump is narrowed by type and by name", "[channel][admin]") {
  struct Row {
    std::multimap<std::string, std::string> query;
    std::vector<std::string> shown;
  };

  const auto row = GENERATE(values<Row>({
      {{{"type", "LDS"}}, {"LDS a", "LDS b"}},
      {{{"type", "cds"}}, {"CDS a", "CDS b"}},
      {{{"type", "EDS"}}, {}},
      {{{"name", "b"}}, {"LDS b", "CDS b"}},
      {{{"name", "a"}, {"type", "CDS"}}, {"CDS a"}},
      {{{"name", ""}}, {}},
  }));
  AdminRequest request = get("/config_dump");
  request.query = row.query;
  CHECK(shown(answer(request, sources())) == row.shown);
}

TEST_CASE("admin pages: what is refused, and how", "[channel][admin]") {
  struct Row {
    AdminRequest request;
    int status;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {{.method = "POST", .path = "/config_dump"}, 405, "expected GET, got POST"},
      {{.method = "POST", .path = "/explain"}, 405, "read-only"},
      {{.method = "HEAD", .path = "/"}, 405, "read-only"},
      {{.method = "DELETE", .path = "/nowhere"}, 405, "read-only"},
      {{.method = "GET", .path = "/quitquitquit"}, 404, "there is no '/quitquitquit'"},
      {{.method = "GET", .path = "/config_dump/"}, 404, "/metrics"},
      {{.method = "GET", .path = "/config_dump", .query = {{"type", "XDS"}}},
       400,
       "expected LDS, RDS, CDS or EDS, got 'XDS'"},
      {{.method = "GET", .path = "/config_dump", .query = {{"mask", "a"}}}, 400, "'mask'"},
      {{.method = "GET", .path = "/config_dump", .query = {{"name", "a"}, {"name", "b"}}},
       400,
       "one type and one name"},
      {{.method = "GET", .path = "/metrics", .query = {{"name", "a"}}}, 400, "no query"},
      {{.method = "GET", .path = "/", .is_foreign = true}, 403, "Origin"},
      {{.method = "GET", .path = "/ready", .is_foreign = true}, 403, "other sites"},
      {{.method = "GET", .path = "/clusters", .query = {{"format", "xml"}}},
       400,
       "expected html or json, got 'xml'"},
      {{.method = "GET", .path = "/clusters", .query = {{"formal", "json"}}}, 400, "'formal'"},
      {{.method = "GET", .path = "/certs", .query = {{"format", "json"}, {"format", "json"}}},
       400,
       "at most one format"},
      {{.method = "GET", .path = "/priorities", .query = {{"a", "b"}}}, 400, "no query"},
      {{.method = "GET", .path = "/stats", .query = {{"filter", "("}}}, 400, "regular expression"},
      {{.method = "GET", .path = "/ready", .query = {{"target", "xds:///none"}}},
       404,
       "'xds:///none' is not in use here"},
      {{.method = "GET", .path = "/ready", .query = {{"target", "xds:///late"}}},
       503,
       "cannot send calls"},
      {{.method = "POST", .path = "/ready"}, 405, "read-only"},
      {{.method = "GET", .path = "/", .over_network = true}, 403, "Host"},
      {{.method = "GET", .path = "/", .host = "evil.example", .over_network = true},
       403,
       "got 'evil.example'"},
  }));
  const AdminResponse response = answer(row.request, sources());
  CHECK(response.status == row.status);
  CHECK_THAT(response.body, Contains(row.says));
}

TEST_CASE("admin pages: over the loopback its Host passes; a unix socket needs none",
          "[channel][admin]") {
  AdminRequest request = get("/");
  CHECK(answer(request, sources()).status == 200);
  request.over_network = true;
  request.host = "localhost:9901";
  CHECK(answer(request, sources()).status == 200);
}

TEST_CASE("admin pages: without a dump the reason is told", "[channel][admin]") {
  AdminSources broken = sources();
  broken.dump = [] { return absl::UnavailableError("restarting"); };
  const AdminResponse response = answer(get("/config_dump"), broken);
  CHECK(response.status == 503);
  CHECK(response.body == "restarting\n");
}

TEST_CASE("admin pages: a call is explained", "[channel][admin][explain]") {
  AdminRequest request = get("/explain");
  request.query = {{"target", "xds:///orders"},
                   {"method", "/s.S/M"},
                   {"header", "X-User:  me"},
                   {"header", "authorization: Bearer secret"},
                   {"cookie", "s=secret"},
                   {"seed", "42"}};
  const AdminResponse response = answer(request, sources());
  CHECK(response.status == 200);
  CHECK(response.content_type == "application/json");
  CHECK_THAT(response.body, !Contains("secret"));
  const auto json = nlohmann::json::parse(response.body);
  CHECK(json["target"] == "xds:///orders");
  CHECK(json["method"] == "/s.S/M");
  CHECK(json["seed"] == 42);
  CHECK(json["outcome"] == "complete");
  CHECK(json["cluster"] == "c");
  CHECK(json["address"] == "10.0.0.1:80");
  CHECK(json["delay_seconds"] == 0);
  CHECK(json["status"]["code"] == "OK");
  CHECK(json["steps"] ==
        nlohmann::json::array(
            {{{"part", "part"}, {"decision", "it"}, {"reason", "why"}, {"source", "CDS c"}}}));
}

TEST_CASE("admin pages: headers and cookies of a question are headers of the call",
          "[channel][admin][explain]") {
  const auto question = parse_explain_query({{"target", "xds:///orders"},
                                             {"method", "/s.S/M"},
                                             {"header", "X-User:  me"},
                                             {"cookie", "a=1"},
                                             {"cookie", "b=2"}});
  REQUIRE(question.ok());
  CHECK_FALSE(question->seed);
  const QuestionHeaders headers(*question);
  std::vector<std::string> values;
  const auto collect = [&](absl::string_view value) { values.emplace_back(value); };
  headers.each("x-user", collect);
  headers.each("cookie", collect);
  headers.each("other", collect);
  CHECK(values == std::vector<std::string>{"me", "a=1", "b=2"});
}

TEST_CASE("admin pages: a question that is none says what one is", "[channel][admin][explain]") {
  using Query = std::multimap<std::string, std::string>;

  struct Row {
    Query query;
    int status;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {{}, 400, "target is missing; there are: target, method, header, cookie, seed"},
      {{{"target", "xds:///a"}}, 400, "method is missing"},
      {{{"target", "xds:///a"}, {"target", "b"}, {"method", "/m"}},
       400,
       "target: expected it once"},
      {{{"target", "xds:///a"}, {"method", "m"}}, 400, "expected /package.Service/Method, got 'm'"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"seed", "-1"}}, 400, "a whole number"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"header", "secret"}}, 400, "name:value"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"header", "a b:secret"}}, 400, "name:value"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"header", "a:se\ncret"}}, 400, "printable"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"cookie", "se\ncret"}}, 400, "printable"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"cookie", "secret"}}, 400, "name=value"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"cookie", "=secret"}}, 400, "name=value"},
      {{{"target", "xds:///a"}, {"method", "/m"}, {"path", "/m"}}, 400, "'path': expected one of"},
      {{{"target", "xds:///none"}, {"method", "/m"}}, 400, "none of ours"},
      {{{"target", "xds:///late"}, {"method", "/m"}}, 503, "too late"},
  }));
  AdminRequest request = get("/explain");
  request.query = row.query;
  const AdminResponse response = answer(request, sources());
  CHECK(response.status == row.status);
  CHECK_THAT(response.body, Contains(row.says));
  CHECK_THAT(response.body, !Contains("cret"));
}

}  // namespace signalbox::channel
