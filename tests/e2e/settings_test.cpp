// SPDX-License-Identifier: Apache-2.0
//
// Options of the `signalbox` command from the environment and from a file, the form of its lines on
// stderr, and `signalbox ready`.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/process.hpp"
#include "tests/support/talking_socket.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test::settings_test {
namespace {

using Texts = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Runs the command with these variables ("NAME=value") and arguments.
Finished run(const Texts& environment, const Texts& arguments) {
  Texts all{"/usr/bin/env"};
  all.insert(all.end(), environment.begin(), environment.end());
  all.emplace_back(SIGNALBOX_PROGRAM);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all);
}

// Runs `signalbox dump`, and returns the part of its error that names the admin socket which it
// tried to reach. No process listens there.
std::string asked(const Texts& environment, Texts arguments) {
  arguments.insert(arguments.begin(), "dump");
  const Finished finished = run(environment, arguments);
  CHECK(finished.status == 2);
  return finished.errors.substr(0, finished.errors.find(": there is no such socket"));
}

std::string http(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("settings: the command line counts first, then the environment, then the file",
          "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("c.yaml", "dump: {admin: 'unix:file.sock', timeout: 3}\n");
  const std::string in_environment = "SIGNALBOX_DUMP_ADMIN=unix:env.sock";
  const Texts on_line{"--admin", "unix:line.sock"};
  CHECK(asked({}, {"--config", file}) == "signalbox dump: unix:file.sock");
  CHECK(asked({"SIGNALBOX_CONFIG=" + file}, {}) == "signalbox dump: unix:file.sock");
  CHECK(asked({in_environment}, {"--config", file}) == "signalbox dump: unix:env.sock");
  CHECK(asked({in_environment}, {}) == "signalbox dump: unix:env.sock");
  CHECK(asked({in_environment}, {"--config", file, "--admin", "unix:line.sock"}) ==
        "signalbox dump: unix:line.sock");
  CHECK(asked({in_environment}, on_line) == "signalbox dump: unix:line.sock");
  // An empty variable counts as unset.
  CHECK(asked({"SIGNALBOX_DUMP_ADMIN="}, {"--config", file}) == "signalbox dump: unix:file.sock");
}

TEST_CASE("settings: the file has flags, numbers and lists, in YAML or JSON", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string cluster = folder.write("r.yaml", R"(
resources:
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    eds_cluster_config: {eds_config: {ads: {}}}
    load_balancing_policy:
      policies:
        - typed_extension_config:
            name: quorum
            typed_config:
              "@type": type.googleapis.com/xds.type.v3.TypedStruct
              type_url: type.googleapis.com/Quorum
              value: {}
)");
  const std::string file = GENERATE(values<std::string>(
      {"c.yaml|check: {json: true, lb-policy: [Majority, Quorum], limit: max_routes=7}\n",
       R"(c.json|{"check": {"json": true, "lb-policy": ["Majority", "Quorum"]}})"}));
  const auto bar = file.find('|');
  const std::string path = folder.write(file.substr(0, bar), file.substr(bar + 1));
  const Finished finished = run({}, {"check", cluster, "--config", path});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK(nlohmann::json::accept(finished.output));
  // Without the file, `check` does not know the policy, and prints text instead of JSON.
  const Finished without = run({}, {"check", cluster});
  CHECK_FALSE(nlohmann::json::accept(without.output));
  // A flag of the command can be turned off in the file.
  const std::string off = folder.write("off.yaml", "check: {json: false}\n");
  CHECK_FALSE(nlohmann::json::accept(run({}, {"check", cluster, "--config", off}).output));
  CHECK(nlohmann::json::accept(
      run({"SIGNALBOX_CHECK_JSON=true"}, {"check", cluster, "--config", off}).output));
}

TEST_CASE("settings: what is wrong in the file or the environment is said with its place",
          "[e2e][tools]") {
  struct Row {
    const char* file;
    const char* variable;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {"serv: {}", "", "there is no command 'serv'; there are: "},
      {"launch: {files: 9}", "", "there is no command 'launch'"},
      {"listen: here", "", "there is no command 'listen'"},
      {"dump: {listen: here}", "", "dump: there is no option '--listen'"},
      {"dump: {help: true}", "", "dump: there is no option '--help'"},
      {"dump: {config: other.yaml}", "", "dump: there is no option '--config'"},
      {"serve: {parent: 1}", "", "serve: there is no option '--parent'"},
      {"dump: here", "", "dump: expected an object with the command's options"},
      {"load: {merg: {}}", "", "load: there is no option '--merg'"},
      {"load: {merge: here}", "", "load merge: expected an object with the command's options"},
      {"load: {merge: {rate: 5}}", "", "load merge: there is no option '--rate'"},
      {"dump: {admin: {a: b}}", "", "dump: admin: expected a text, a number, true or false, or a"},
      {"dump: {admin: null}", "", "dump: admin: expected a text"},
      {"[dump]", "", "expected an object with a key for each command"},
      {"dump: {admin: [unix:a, unix:b]}", "", "--admin"},
      {"dump: [", "", "c.yaml: "},
      {"dump: {timeout: soon}", "", "expected a number from 0.1 to 3600, got 'soon' (from "},
      {"{}",
       "SIGNALBOX_DUMP_TIMEOUT=soon",
       "got 'soon' (from SIGNALBOX_DUMP_TIMEOUT in the environment)"},
      {"log-format: xml", "", "--log-format: expected text or json, got 'xml' (from "},
      {"{}", "SIGNALBOX_LOG_FORMAT=xml", "(from SIGNALBOX_LOG_FORMAT in the environment)"},
  }));
  const TemporaryFolder folder;
  Texts environment;
  if (*row.variable != '\0') environment.emplace_back(row.variable);
  const Texts arguments{
      "dump", "--admin", "unix:none.sock", "--config", folder.write("c.yaml", row.file)};
  Texts without_admin = arguments;
  without_admin.erase(without_admin.begin() + 1, without_admin.begin() + 3);
  const bool names_admin = contains(row.file, "admin:");
  const Finished finished = run(environment, names_admin ? without_admin : arguments);
  INFO(row.file << "\n" << finished.errors);
  CHECK(finished.status == 2);
  CHECK(contains(finished.errors, row.says));
  CHECK(finished.output.empty());
}

TEST_CASE("settings: a missing file is an error, and help needs none", "[e2e][tools]") {
  const Finished named = run({}, {"dump", "--admin", "unix:s", "--config", "/no/such/file.yaml"});
  CHECK(named.status == 2);
  CHECK(contains(named.errors, "/no/such/file.yaml"));
  const Finished in_environment =
      run({"SIGNALBOX_CONFIG=/no/such/file.yaml"}, {"dump", "--admin", "unix:s"});
  CHECK(in_environment.status == 2);
  CHECK(contains(in_environment.errors, "/no/such/file.yaml"));

  const TemporaryFolder folder;
  const std::string bad = folder.write("c.yaml", "dump: [");
  const Finished help = run({}, {"dump", "--config", bad, "--help"});
  CHECK(help.status == 0);
  CHECK(contains(help.output, "--admin"));
  CHECK_FALSE(contains(help.output, "SIGNALBOX_DUMP"));
}

TEST_CASE("settings: values of other commands are not read", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("c.yaml", "serve: {listen: nowhere}\ndemo: {rps: none}\n");
  const Finished version = run({"SIGNALBOX_DEMO_SECONDS=soon"}, {"version", "--config", file});
  INFO(version.errors);
  CHECK(version.status == 0);
}

TEST_CASE("settings: a whole number is decimal, also with a 0 before it", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string resources = folder.write("r.yaml", R"(
resources:
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: orders, type: EDS, eds_cluster_config: {eds_config: {self: {}}}}
)");
  const auto threshold = [&](const Texts& environment, const Texts& more) {
    Texts words{"plan", "--resources", resources, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(environment, words);
    INFO(finished.errors);
    REQUIRE(finished.status == 0);
    return nlohmann::json::parse(finished.output).at("panic_threshold").get<int>();
  };
  CHECK(threshold({}, {"--panic-threshold", "050"}) == 50);
  CHECK(threshold({}, {"--panic-threshold", "08"}) == 8);
  CHECK(threshold({}, {"--panic-threshold", "0"}) == 0);
  CHECK(threshold({"SIGNALBOX_PLAN_PANIC_THRESHOLD=+050"}, {}) == 50);
}

TEST_CASE("settings: texts that are no UTF-8 are refused by the option's name", "[e2e][tools]") {
  const Finished explained =
      run({}, {"explain", "--resources", "\xff.yaml", "--target", "xds:///a", "--method", "/a/b"});
  CHECK(explained.status == 2);
  CHECK(contains(explained.errors, "--resources: the file's name is not UTF-8"));
  const Finished backend =
      run({}, {"backend", "--listen", "127.0.0.1:0", "--cluster", "c", "--name", "\xff"});
  CHECK(backend.status == 2);
  CHECK(contains(backend.errors, "--name: is not UTF-8"));
  const auto load = [](const char* target, const char* call, const char* data) {
    return run({}, {"load", "--target", target, "--call", call, "--reflection", "--data", data})
        .errors;
  };
  CHECK(contains(load("xds:///\xff", "s/m", "{}"), "--target: is not UTF-8"));
  CHECK(contains(load("xds:///a", "s/\xff", "{}"), "--call: is not UTF-8"));
  CHECK(contains(load("xds:///a", "s/m", "\"\xff\""), "--data: is not UTF-8"));
}

TEST_CASE("settings: a part of a command has an object and names of its own", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string report = folder.write("in.json", run_program({SIGNALBOX_EXAMPLE_LOAD}).output);
  const auto path = [&folder](const char* name) { return folder.path(name); };
  // `load merge` must not read options of `load`: "many" would be an error, and load.html would be
  // written.
  const std::string file =
      folder.write("c.yaml",
                   "load: {processes: many, merge: {json: '" + path("file.json") + "', html: '" +
                       path("file.html") + "'}}\n");
  const Texts environment{"SIGNALBOX_LOAD_MAX_IN_FLIGHT=many",
                          "SIGNALBOX_LOAD_HTML=" + path("load.html"),
                          "SIGNALBOX_LOAD_MERGE_JSON=" + path("environment.json"),
                          "SIGNALBOX_LOAD_MERGE_HDR=" + path("environment.hdr")};
  const Finished merged =
      run(environment, {"load", "merge", report, "--config", file, "--hdr", path("line.hdr")});
  INFO(merged.output << merged.errors);
  CHECK(merged.errors.empty());
  const auto exists = [&](const char* name) { return std::filesystem::exists(path(name)); };
  CHECK(exists("file.html"));
  CHECK(exists("environment.json"));
  CHECK(exists("line.hdr"));
  for (const char* replaced : {"file.json", "environment.hdr", "load.html"})
    CHECK_FALSE(exists(replaced));

  // A report may be longer than a file of resources.
  const std::string longer = folder.write("long.json",
                                          run_program({SIGNALBOX_EXAMPLE_LOAD}).output +
                                              std::string((std::size_t{64} << 20U) + 1, ' '));
  CHECK(run({}, {"load", "merge", longer}).errors.empty());

  const std::string bad = folder.write("bad.yaml", "load: {merge: {html: ''}}\n");
  const Finished refused = run({}, {"load", "merge", report, "--config", bad});
  CHECK(refused.status == 2);
  CHECK(contains(refused.errors, "--html: expected the name of a file, got '' (from " + bad + ")"));
  const Finished help =
      run({}, {"load", "merge", "--config", folder.write("c.json", "{"), "--help"});
  CHECK(help.status == 0);
  CHECK(contains(help.output, "--junit"));
  CHECK_FALSE(contains(help.output, "SIGNALBOX_LOAD"));
}

TEST_CASE("log format: json is one object a line, with the time, the level and the command",
          "[e2e][tools]") {
  const Finished finished =
      run({"SIGNALBOX_LOG_FORMAT=json"}, {"check", "/no/such/\x1b[31m\n\xff.yaml"});
  CHECK(finished.status == 2);
  std::istringstream lines(finished.errors);
  std::string line;
  REQUIRE(std::getline(lines, line));
  const auto said = nlohmann::json::parse(line);
  CHECK(said["level"] == "error");
  CHECK(said["command"] == "check");
  CHECK(contains(said["text"], "/no/such/\x1b[31m\n\xEF\xBF\xBD.yaml"));
  const std::string time = said["time"];
  CHECK(time.size() == std::string("2026-11-25T19:18:55.000Z").size());
  CHECK(time.back() == 'Z');
  CHECK_FALSE(std::getline(lines, line));

  const Finished text = run({}, {"check", "--log-format", "text", "/no/such/\x1b[31m.yaml"});
  CHECK(contains(text.errors, "signalbox check: "));
  CHECK(contains(text.errors, "/no/such/\\x1b[31m.yaml"));
}

TEST_CASE("signalbox ready: the exit status is the answer", "[e2e][tools]") {
  struct Row {
    std::string answer;
    int status;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {http("200 OK", "LIVE\n"), 0, "LIVE\n"},
      {http("503 Service Unavailable", "not ready: the target cannot send calls\n"),
       1,
       ": not ready: the target cannot send calls\n"},
      {http("400 Bad Request", "target: 'xds:///x' is not in use here\n"),
       2,
       "'xds:///x' is not in use here"},
      {http("404 Not Found", "there is no '/ready'\n"), 2, "there is no '/ready'"},
      {"SSH-2.0-OpenSSH\r\n", 1, "does not speak HTTP"},
  }));
  TalkingSocket process(row.answer, "\r\n\r\n");
  const Finished finished =
      run({}, {"ready", "--admin", process.address(), "--target", "xds:///a b"});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == row.status);
  CHECK(contains(row.status == 0 ? finished.output : finished.errors, row.says));
  CHECK(contains(process.heard(), "GET /ready?target=xds%3A%2F%2F%2Fa%20b HTTP/1.0\r\n"));
}

TEST_CASE("signalbox ready: no process, and a process that does not answer", "[e2e][tools]") {
  const Finished none = run({}, {"ready", "--admin", "unix:no-such.sock"});
  CHECK(none.status == 2);
  CHECK(contains(none.errors, "there is no such socket; is the process running"));

  TalkingSocket silent("", "never said");
  const Finished late = run({}, {"ready", "--admin", silent.address(), "--timeout", "0.25"});
  CHECK(late.status == 1);
  CHECK(contains(late.errors, "no answer within 0.25 s"));
}

}  // namespace signalbox::test::settings_test
