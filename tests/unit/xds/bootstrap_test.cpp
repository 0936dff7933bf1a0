// SPDX-License-Identifier: Apache-2.0
#include "xds/bootstrap.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>
#include <unistd.h>

#include "tests/support/no_rights.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

constexpr const char* kServer =
    R"({"server_uri": "cp:18000", "channel_creds": [{"type": "insecure"}]})";

constexpr const char* kFull = R"json({
  "xds_servers": [
    {"server_uri": "one:18000",
     "channel_creds": [{"type": "google_default"}, {"type": "insecure", "config": {"a": 1}}],
     "server_features": ["xds_v3", 7, "fail_on_data_errors"], "later": true},
    {"server_uri": "two:18000", "channel_creds": [{"type": "insecure"}]}],
  "authorities": {
    "plain": {},
    "own.example": {
      "xds_servers": [{"server_uri": "own:1", "channel_creds": [{"type": "insecure"}]}],
      "client_listener_resource_name_template": "xdstp://own.example/listener/%s"}},
  "node": {"id": "n1", "cluster": "c", "locality": {"region": "r", "zone": "z", "sub_zone": "s"},
           "metadata": {"k": [1, "x"]}, "build_version": "ignored"},
  "client_default_listener_resource_name_template": "xdstp://plain/%s",
  "certificate_providers": {
    "files": {"plugin_name": "file_watcher",
              "config": {"certificate_file": "c", "private_key_file": "k",
                         "ca_certificate_file": "ca", "refresh_interval": "90s"}},
    "vault": {"plugin_name": "vault", "config": {"certificate_file": 7}}}
})json";

Bootstrap parse(absl::string_view text) {
  auto bootstrap = parse_bootstrap(text, "test");
  INFO(bootstrap.status().message());
  REQUIRE(bootstrap.ok());
  return *bootstrap;
}

std::string error_of(const absl::StatusOr<Bootstrap>& bootstrap) {
  REQUIRE_FALSE(bootstrap.ok());
  return std::string(bootstrap.status().message());
}

std::string with_server(const std::string& server) {
  return R"({"xds_servers": [)" + server + "]}";
}

std::string with_more(const std::string& more) {
  return std::string(R"({"xds_servers": [)") + kServer + "], " + more + "}";
}

std::string with_tls(const std::string& config) {
  return with_server(R"({"server_uri": "a", "channel_creds": [{"type": "tls", "config": )" +
                     config + "}]}");
}

// A folder that is removed with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "signalbox-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }

  ~Folder() { std::filesystem::remove_all(path_); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.string(); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

BootstrapEnvironment environment(std::map<std::string, std::string> variables) {
  return {[variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }};
}

TEST_CASE("bootstrap: reads gRPC's format whole", "[xds][A27][A30][A47]") {
  const Bootstrap bootstrap = parse(kFull);
  REQUIRE(bootstrap.servers.size() == 2);
  CHECK(bootstrap.servers[0].server_uri == "one:18000");
  CHECK(bootstrap.servers[0].channel_creds == ChannelCredentials(InsecureCredentials{}));
  CHECK(bootstrap.servers[0].server_features ==
        std::vector<std::string>{"xds_v3", "fail_on_data_errors"});
  CHECK(bootstrap.servers[0].has_feature("fail_on_data_errors"));
  CHECK_FALSE(bootstrap.servers[1].has_feature("fail_on_data_errors"));
  CHECK(bootstrap.servers[1].server_uri == "two:18000");

  REQUIRE(bootstrap.authorities.size() == 2);
  const AuthorityConfig& own = bootstrap.authorities.at("own.example");
  REQUIRE(own.servers.size() == 1);
  CHECK(own.servers[0].server_uri == "own:1");
  CHECK(own.client_listener_resource_name_template == "xdstp://own.example/listener/%s");

  CHECK(bootstrap.node.id == "n1");
  CHECK(bootstrap.node.cluster == "c");
  CHECK(bootstrap.node.locality == NodeLocality{"r", "z", "s"});
  CHECK(bootstrap.node.metadata_json == R"({"k":[1,"x"]})");
  CHECK(bootstrap.client_default_listener_resource_name_template == "xdstp://plain/%s");
  CHECK(bootstrap.resources_file == std::nullopt);
}

TEST_CASE("bootstrap: an authority without servers or template has defaults", "[xds][A47]") {
  const Bootstrap bootstrap = parse(kFull);
  const AuthorityConfig& plain = bootstrap.authorities.at("plain");
  CHECK(plain.servers == bootstrap.servers);
  CHECK(plain.client_listener_resource_name_template ==
        "xdstp://plain/envoy.config.listener.v3.Listener/%s");
}

TEST_CASE("bootstrap: one server is enough", "[xds][A27]") {
  const Bootstrap bootstrap = parse(with_server(kServer));
  CHECK(bootstrap.node == NodeConfig{});
  CHECK(bootstrap.authorities.empty());
  CHECK(bootstrap.client_default_listener_resource_name_template == "%s");
}

TEST_CASE("bootstrap: a resource file makes servers optional", "[xds]") {
  for (const char* text : {R"({"signalbox.resources": "a.yaml"})",
                           R"({"signalbox.resources": "a.yaml", "xds_servers": []})"}) {
    const Bootstrap bootstrap = parse(text);
    CHECK(bootstrap.servers.empty());
    CHECK(bootstrap.resources_file == "a.yaml");
  }
}

TEST_CASE("bootstrap: the first credentials of a usable type are taken", "[xds][A27][A65]") {
  struct Row {
    const char* when;
    const char* creds;
    ChannelCredentials taken;
  };

  const CertificateFiles roots{.ca_certificate_file = "ca"};
  const auto row = GENERATE_COPY(values<Row>({
      {"insecure", R"({"type": "insecure"})", InsecureCredentials{}},
      {"tls by itself: the system's roots, ten minutes", R"({"type": "tls"})", TlsCredentials{}},
      {"tls with roots",
       R"({"type": "tls", "config": {"ca_certificate_file": "ca", "later": 1}})",
       TlsCredentials{roots}},
      {"mTLS",
       R"({"type": "tls", "config": {"certificate_file": "c", "private_key_file": "k",
                                     "refresh_interval": "1.5s"}})",
       TlsCredentials{{"", "c", "k", std::chrono::milliseconds(1500)}}},
      {"for ever is a day",
       R"({"type": "tls", "config": {"refresh_interval": "315576000000s"}})",
       TlsCredentials{{"", "", "", std::chrono::hours(24)}}},
      {"behind unknown ones",
       R"({"type": "google_default"}, {"type": "jwt", "config": 3}, {"type": "tls"})",
       TlsCredentials{}},
      {"what stands behind it is not looked at",
       R"({"type": "insecure"}, {"type": "tls", "config": {"certificate_file": 1}})",
       InsecureCredentials{}},
  }));
  DYNAMIC_SECTION(row.when) {
    const std::string server =
        std::string(R"({"server_uri": "a", "channel_creds": [)") + row.creds + "]}";
    CHECK(parse(with_server(server)).servers.at(0).channel_creds == row.taken);
  }
}

TEST_CASE("bootstrap: servers are equal where their credentials are", "[xds][A47][A65]") {
  const auto server = [](const char* config) { return parse(with_tls(config)).servers.at(0); };
  const ServerConfig plain = server("{}");
  CHECK(plain == server(R"({"refresh_interval": "600s"})"));
  CHECK_FALSE(plain == server(R"({"refresh_interval": "1s"})"));
  CHECK_FALSE(plain == server(R"({"ca_certificate_file": "ca"})"));
}

TEST_CASE("bootstrap: certificate providers are those of the plugin file_watcher", "[xds][A29]") {
  const Bootstrap bootstrap = parse(kFull);
  REQUIRE(bootstrap.certificate_providers.size() == 1);
  CHECK(bootstrap.certificate_providers.at("files") ==
        CertificateFiles{"ca", "c", "k", std::chrono::seconds(90)});
}

TEST_CASE("bootstrap: says what is wrong, where, and what was found", "[xds][A27][A47]") {
  struct Row {
    std::string when;
    std::string text;
    std::string told;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"it is no JSON", "{\n  nothing", "test: parse error at line 2"},
      {"it is empty", "", "test: parse error at line 1"},
      {"it is not UTF-8", "{\"a\": \"\xff", "test: parse error at line 1, column 8"},
      {"it ends within a character",
       "{\"a\": \xc3\xa9}",
       "test: parse error at line 1, column 7: syntax error while parsing value"},
      {"it is no object", "[1]", "test: expected a JSON object, found array"},
      {"it is too deep", std::string(199, '[') + std::string(199, ']'), "deeper than 128 levels"},
      {"there are no servers",
       "{}",
       "test: needs xds_servers or signalbox.resources: found neither"},
      {"the resource file's key is misspelt",
       R"({"signalbox.resource": "r.yaml", "node": {}})",
       "test: needs xds_servers or signalbox.resources: found neither; unknown key "
       "\"signalbox.resource\""},
      {"the servers are none",
       R"({"xds_servers": "cp:1"})",
       "xds_servers: expected a list of objects, found string \"cp:1\""},
      {"the list is empty", R"({"xds_servers": []})", "xds_servers: expected at least one element"},
      {"a server is a string",
       with_server(R"("cp:18000")"),
       "xds_servers[0]: expected an object, found string \"cp:18000\""},
      {"the URI is missing",
       with_server(R"({"channel_creds": [{"type": "insecure"}]})"),
       "xds_servers[0].server_uri: expected a string, found nothing"},
      {"the URI is a number",
       with_server(R"({"server_uri": 3, "channel_creds": [{"type": "insecure"}]})"),
       "xds_servers[0].server_uri: expected a non-empty string, found number 3"},
      {"what was found is long, and é would be cut in two",
       with_server(R"({"server_uri": "a", "channel_creds": ")" + std::string(58, 'c') + "éé\"}"),
       "found string \"" + std::string(58, 'c') + "…"},
      {"the URI is empty",
       with_server(R"({"server_uri": "", "channel_creds": [{"type": "insecure"}]})"),
       "xds_servers[0].server_uri: expected a non-empty string, found string \"\""},
      {"credentials are missing",
       with_server(R"({"server_uri": "a"})"),
       "xds_servers[0].channel_creds: expected a list of objects, found nothing"},
      {"credentials are an object",
       with_server(R"({"server_uri": "a", "channel_creds": {"key": "secret"}})"),
       "xds_servers[0].channel_creds: expected a list of objects, found an object"},
      {"credentials are empty",
       with_server(R"({"server_uri": "a", "channel_creds": []})"),
       "xds_servers[0].channel_creds: expected at least one element"},
      {"a type is missing",
       with_server(R"({"server_uri": "a", "channel_creds": [{"type": "insecure"}, {}]})"),
       "xds_servers[0].channel_creds[1].type: expected a string, found nothing"},
      {"no type is usable",
       with_server(R"({"server_uri": "a", "channel_creds": [{"type": "alts"}, {"type": "jwt"}]})"),
       "xds_servers[0].channel_creds: expected a usable type (\"insecure\", \"tls\"), found "
       "\"alts\", \"jwt\""},
      {"tls has a certificate without key [A65]",
       with_tls(R"({"certificate_file": "c"})"),
       "xds_servers[0].channel_creds[0].config.private_key_file: expected it together with "
       "certificate_file, found only that"},
      {"tls has a key without certificate [A65]",
       with_tls(R"({"private_key_file": "k"})"),
       "xds_servers[0].channel_creds[0].config.certificate_file: expected it together with "
       "private_key_file, found only that"},
      {"a file of tls is a number [A65]",
       with_tls(R"({"ca_certificate_file": 1})"),
       "xds_servers[0].channel_creds[0].config.ca_certificate_file: expected a string, found "
       "number 1"},
      {"the config of tls is a list [A65]",
       with_tls("[]"),
       "xds_servers[0].channel_creds[0].config: expected an object, found a list"},
      {"the interval of tls has no unit [A65]",
       with_tls(R"({"refresh_interval": "600"})"),
       "refresh_interval: expected a duration above zero (\"600s\"), found \"600\""},
      {"the interval of tls is a number [A65]",
       with_tls(R"({"refresh_interval": 600})"),
       "refresh_interval: expected a string, found number 600"},
      {"the interval of tls is zero [A65]",
       with_tls(R"({"refresh_interval": "0s"})"),
       "refresh_interval: expected a duration above zero (\"600s\"), found \"0s\""},
      {"the interval of tls is negative [A65]",
       with_tls(R"({"refresh_interval": "-0.5s"})"),
       "refresh_interval: expected a duration above zero (\"600s\"), found \"-0.5s\""},
      {"a certificate provider has no plugin [A29]",
       with_more(R"("certificate_providers": {"p": {}})"),
       "certificate_providers.\"p\".plugin_name: expected a string, found nothing"},
      {"a file_watcher has no file [A29]",
       with_more(R"("certificate_providers": {"p": {"plugin_name": "file_watcher"}})"),
       "certificate_providers.\"p\".config: expected a ca_certificate_file or a certificate_file, "
       "found neither"},
      {"a file_watcher has half a pair [A29]",
       with_more(R"("certificate_providers": {"p": {"plugin_name": "file_watcher",
                    "config": {"certificate_file": "c"}}})"),
       "certificate_providers.\"p\".config.private_key_file: expected it together with "
       "certificate_file, found only that"},
      {"features are no list",
       with_server(R"({"server_uri": "a", "channel_creds": [{"type": "insecure"}],
                       "server_features": "xds_v3"})"),
       "xds_servers[0].server_features: expected a list of strings, found string \"xds_v3\""},
      {"the node is a list", with_more(R"("node": [])"), "node: expected an object, found a list"},
      {"the node's id is null",
       with_more(R"("node": {"id": null})"),
       "node.id: expected a string, found null"},
      {"a zone is a boolean",
       with_more(R"("node": {"locality": {"zone": true}})"),
       "node.locality.zone: expected a string, found boolean true"},
      {"metadata is a string",
       with_more(R"("node": {"metadata": "x"})"),
       "node.metadata: expected an object, found string \"x\""},
      {"authorities are a list",
       with_more(R"("authorities": [])"),
       "authorities: expected an object, found a list"},
      {"an authority is a number",
       with_more(R"("authorities": {"a.b": 1})"),
       "authorities.\"a.b\": expected an object, found number 1"},
      {"an authority's server is wrong",
       with_more(R"("authorities": {"a": {"xds_servers": [{"channel_creds": [
                    {"type": "insecure"}]}]}})"),
       "authorities.\"a\".xds_servers[0].server_uri: expected a string, found nothing"},
      {"an authority's template is of another",
       with_more(R"("authorities": {"a": {"client_listener_resource_name_template":
                    "xdstp://b/%s"}})"),
       "authorities.\"a\".client_listener_resource_name_template: expected it to start with "
       "\"xdstp://a/\", found \"xdstp://b/%s\""},
      {"the default template is a list",
       with_more(R"("client_default_listener_resource_name_template": ["%s"])"),
       "client_default_listener_resource_name_template: expected a string, found a list"},
      {"the resource file has no name",
       with_more(R"("signalbox.resources": "")"),
       "signalbox.resources: expected a non-empty string, found string \"\""},
      {"there are servers and a resource file",
       with_more(R"("signalbox.resources": "a.yaml")"),
       "signalbox.resources: expected it or xds_servers, found both"},
  }));
  DYNAMIC_SECTION(row.when) {
    const auto bootstrap = parse_bootstrap(row.text, "test");
    const std::string error = error_of(bootstrap);
    INFO(error);
    CHECK(bootstrap.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StartsWith(error, "test: "));
    CHECK(absl::StrContains(error, row.told));
    CHECK(is_utf8(error));
  }
}

TEST_CASE("bootstrap: all errors are told at once, each with its source", "[xds][A27]") {
  CHECK(error_of(parse_bootstrap(R"({"xds_servers": [{}], "node": 1})", "test")) ==
        "test: xds_servers[0].server_uri: expected a string, found nothing; "
        "test: xds_servers[0].channel_creds: expected a list of objects, found nothing; "
        "test: node: expected an object, found number 1");
}

TEST_CASE("bootstrap: an error quotes a long value only in part", "[xds]") {
  const std::string error =
      error_of(parse_bootstrap(R"({"xds_servers": ")" + std::string(10'000, 'x') + "\"}", "test"));
  CHECK(error.size() < 200);
}

TEST_CASE("bootstrap: the path's variable wins over the inline one", "[xds][A27]") {
  const Folder folder;
  const std::string path = folder.write("bootstrap.json", with_server(kServer));
  const auto from_path = load_bootstrap(
      environment({{"GRPC_XDS_BOOTSTRAP", path}, {"GRPC_XDS_BOOTSTRAP_CONFIG", kFull}}));
  REQUIRE(from_path.ok());
  CHECK(from_path->servers.size() == 1);

  const auto inline_text = load_bootstrap(
      environment({{"GRPC_XDS_BOOTSTRAP", ""}, {"GRPC_XDS_BOOTSTRAP_CONFIG", kFull}}));
  REQUIRE(inline_text.ok());
  CHECK(inline_text->servers.size() == 2);
}

TEST_CASE("bootstrap: loading errors name where the text came from", "[xds][A27]") {
  const Folder folder;
  const std::string bad = folder.write("bad.json", "{}");
  const std::string empty = folder.write("empty.json", "");
  const std::string absent = folder.path() + "/absent.json";

  struct Row {
    const char* when;
    BootstrapSource source;
    std::string told;
  };

  const Row rows[] = {
      {"nothing is set",
       environment({}),
       "neither GRPC_XDS_BOOTSTRAP nor GRPC_XDS_BOOTSTRAP_CONFIG"},
      {"the file is absent, and inline text is no way out",
       environment({{"GRPC_XDS_BOOTSTRAP", absent}, {"GRPC_XDS_BOOTSTRAP_CONFIG", kFull}}),
       "GRPC_XDS_BOOTSTRAP (" + absent + "): the file cannot be read"},
      {"the file is bad",
       environment({{"GRPC_XDS_BOOTSTRAP", bad}}),
       "GRPC_XDS_BOOTSTRAP (" + bad + "): needs xds_servers"},
      {"the inline text is bad",
       environment({{"GRPC_XDS_BOOTSTRAP_CONFIG", "{}"}}),
       "GRPC_XDS_BOOTSTRAP_CONFIG: needs xds_servers"},
      {"the path is a folder", BootstrapFile{folder.path()}, ": the file cannot be read"},
      {"the file is empty", BootstrapFile{empty}, empty + ": parse error at line 1"},
      {"the given text is bad", BootstrapText{"{}"}, "inline bootstrap: needs xds_servers"},
  };
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.when) {
      const std::string error = error_of(load_bootstrap(row.source));
      INFO(error);
      CHECK(absl::StrContains(error, row.told));
    }
  }
}

TEST_CASE("bootstrap: a file that must not be read is PERMISSION_DENIED", "[xds][A27]") {
  const Folder folder;
  const std::string path = folder.write("secret.json", kFull);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const test::NoRights rights;
  const auto forbidden = load_bootstrap(BootstrapFile{path});
  CHECK(forbidden.status().code() == absl::StatusCode::kPermissionDenied);
  CHECK(error_of(forbidden) == path + ": the file cannot be read");
  const auto absent = load_bootstrap(BootstrapFile{"/no/such/bootstrap.json"});
  CHECK(absent.status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("bootstrap: a resource file is found beside the bootstrap", "[xds]") {
  const Folder folder;
  const auto beside = load_bootstrap(
      BootstrapFile{folder.write("relative.json", R"({"signalbox.resources": "a.yaml"})")});
  REQUIRE(beside.ok());
  CHECK(beside->resources_file == folder.path() + "/a.yaml");

  const auto absolute = load_bootstrap(
      BootstrapFile{folder.write("absolute.json", R"({"signalbox.resources": "/etc/a.yaml"})")});
  REQUIRE(absolute.ok());
  CHECK(absolute->resources_file == "/etc/a.yaml");

  const auto given = load_bootstrap(BootstrapText{R"({"signalbox.resources": "a.yaml"})"});
  REQUIRE(given.ok());
  CHECK(given->resources_file == "a.yaml");
}

}  // namespace
}  // namespace signalbox::xds
