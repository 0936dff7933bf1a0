// SPDX-License-Identifier: Apache-2.0
//
// signalbox: reads the command line and runs one subcommand. Exit status: 0 all went well, 1 it
// ran and failed, 2 it could not be run as asked. demo and load have further ones.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include <CLI/CLI.hpp>
#include <signal.h>

#include "channel/admin/admin_address.hpp"
#include "channel/admin/explain_page.hpp"
#include "channel/extension_name.hpp"
#include "tools/commands.hpp"
#include "tools/load/processes.hpp"
#include "tools/load/side.hpp"
#include "tools/load/stage.hpp"
#include "tools/settings.hpp"

namespace {

using namespace signalbox::tools;  // NOLINT(google-build-using-namespace): main uses all of it.

// The options of all subcommands, and the exit status of the one that ran.
struct CommandLine {
  BackendOptions backend;
  ServeOptions serve;
  CheckOptions check;
  VersionOptions version;
  DemoOptions demo;
  DumpOptions dump;
  LoadOptions load;
  LoadMergeOptions load_merge;
  ReadyOptions ready;
  TopOptions top;
  ExplainOptions explain;
  ReplayOptions replay;
  PlanOptions plan;
  pid_t parent = 0;                   // The option --parent of load-side and launch.
  std::uint64_t files = 0;            // The option --files of launch.
  std::vector<std::string> launched;  // The command that launch runs, with its arguments.
  int status = kExitOk;
};

constexpr const char* kExitStatusText =
    "Exit status: 0 all went well, 1 it ran and failed, 2 it could not be run as\nasked.";

constexpr const char* kCommonOptionsText =
    "\nOptions of all commands (--config FILE, --log-format), and names of options in\n"
    "the environment: signalbox --help.";

// CLI11 would read a number that begins with 0 as an octal one.
void write_decimal(std::string& text) {
  absl::StripAsciiWhitespace(&text);
  absl::string_view digits = text;
  absl::ConsumePrefix(&digits, "+");
  while (digits.size() > 1 && digits[0] == '0' && absl::ascii_isdigit(digits[1]))
    digits.remove_prefix(1);
  text = std::string(digits);
}

// Replaces CLI::Range, because the errors of CLI::Range show numbers with six decimals, and report
// a text that is no number as a number out of range.
CLI::Validator number_between(double low, double high) {
  const std::string expected = absl::StrFormat("expected a number from %g to %g, got ", low, high);
  const auto check = [=](std::string& text) -> std::string {
    double number = 0;
    const bool is_good = absl::SimpleAtod(text, &number) && number >= low && number <= high;
    if (!is_good) return absl::StrCat(expected, "'", text, "'");
    write_decimal(text);
    return "";
  };
  return {check, ""};
}

// CLI11 would read -1 as the greatest unsigned number.
CLI::Validator whole_number() {
  const auto check = [](std::string& text) -> std::string {
    std::uint64_t number = 0;
    if (!absl::SimpleAtoi(text, &number))
      return absl::StrCat("expected a whole number of 0 or more, got '", text, "'");
    write_decimal(text);
    return "";
  };
  return {check, ""};
}

CLI::Validator one_of(absl::string_view one, absl::string_view other) {
  const auto check = [=](std::string& text) -> std::string {
    if (text == one || text == other) return "";
    return absl::StrCat("expected ", one, " or ", other, ", got '", text, "'");
  };
  return {check, ""};
}

CLI::Validator http_method() {
  const auto check = [](std::string& text) -> std::string {
    const auto known = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    if (std::ranges::find(known, text) != known.end()) return "";
    return absl::StrCat("expected one of ", absl::StrJoin(known, ", "), ", got '", text, "'");
  };
  return {check, ""};
}

// An empty text would mean that the option was not given.
CLI::Validator not_empty(const char* what) {
  const auto check = [what](std::string& text) -> std::string {
    return text.empty() ? absl::StrCat("expected ", what, ", got ''") : "";
  };
  return {check, ""};
}

CLI::Validator file_name() {
  return not_empty("the name of a file");
}

// The host is required, because a port alone could mean all interfaces. An IPv6 address needs
// brackets, or its last part would count as the port.
CLI::Validator host_and_port() {
  const auto check = [](std::string& text) -> std::string {
    const auto colon = text.rfind(':');
    const std::string host = text.substr(0, colon);
    const bool is_v6 = absl::StrContains(host, ":");
    const bool is_host = !host.empty() && (!is_v6 || (host.front() == '[' && host.back() == ']'));
    std::uint32_t port = 0;
    const bool is_good = colon != std::string::npos && is_host &&
                         absl::SimpleAtoi(text.substr(colon + 1), &port) && port <= 65535;
    return is_good ? "" : absl::StrCat("expected host:port, got '", text, "'");
  };
  return {check, ""};
}

// Reads NAME=NUMBER, a limit of xDS resources.
bool read_limit(const std::string& text, signalbox::xds::Limits& limits) {
  const auto equals = text.find('=');
  std::size_t number = 0;
  if (equals == std::string::npos || !absl::SimpleAtoi(text.substr(equals + 1), &number))
    return false;
  for (const auto& limit : signalbox::xds::kNamedLimits) {
    if (limit.name == text.substr(0, equals)) {
      limits.*limit.member = number;
      return true;
    }
  }
  return false;
}

CLI::Validator limit_and_number() {
  const auto check = [](std::string& text) -> std::string {
    signalbox::xds::Limits ignored;
    return read_limit(text, ignored)
               ? ""
               : absl::StrCat("expected the name of a limit, = and a number, got '", text, "'");
  };
  return {check, ""};
}

CLI::Validator admin_address() {
  const auto check = [](std::string& text) -> std::string {
    return std::string(signalbox::channel::parse_admin_address(text).status().message());
  };
  return {check, ""};
}

CLI::Validator xds_target() {
  const auto check = [](std::string& text) -> std::string {
    const bool is_good = absl::StartsWith(text, "xds://") && text.find('/', 6) + 1 < text.size() &&
                         text.find('/', 6) != std::string::npos;
    return is_good ? "" : absl::StrCat("expected xds:///NAME, got '", text, "'");
  };
  return {check, ""};
}

CLI::Validator method_path() {
  const auto check = [](std::string& text) -> std::string {
    return absl::StartsWith(text, "/")
               ? ""
               : absl::StrCat("expected /package.Service/Method, got '", text, "'");
  };
  return {check, ""};
}

// The error leaves the value out, because it may be a secret.
CLI::Validator header_text() {
  const auto check = [](std::string& text) -> std::string {
    return std::string(signalbox::channel::parse_header(text).status().message());
  };
  return {check, ""};
}

CLI::Option* add_header(CLI::App& command, std::vector<std::string>& headers, const char* help) {
  return command.add_option("--header", headers, help)
      ->type_name("NAME:VALUE")
      ->check(header_text())
      ->expected(1)
      ->take_all();
}

CLI::Option* add_cookie(CLI::App& command, std::vector<std::string>& cookies) {
  return command.add_option("--cookie", cookies, "A cookie of the call; may be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
}

CLI::Validator lb_policy_name() {
  const auto check = [](std::string& text) -> std::string {
    return signalbox::channel::what_is_wrong_with_lb_policy_name(text);
  };
  return {check, ""};
}

CLI::Validator http_filter_type() {
  const auto check = [](std::string& text) -> std::string {
    return signalbox::channel::what_is_wrong_with_http_filter_type(text);
  };
  return {check, ""};
}

// The names of all limits with their defaults, a line each.
std::string limits_text() {
  std::string text = "Limits:\n";
  for (const auto& limit : signalbox::xds::kNamedLimits)
    absl::StrAppend(&text, "  ", limit.name, "=", signalbox::xds::Limits{}.*limit.member, "\n");
  return text;
}

CLI::App* add_command(CLI::App& app, const char* name, const char* what, const std::string& more) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(
      absl::StrCat(more, more.empty() ? "" : "\n", kExitStatusText, kCommonOptionsText));
  return command;
}

// Adds the options that choose the script and its times.
void add_demo_script(CLI::App& command, DemoOptions& options) {
  command.add_option("--drill", options.drill, "Another script: control-plane or tiered")
      ->type_name("NAME")
      ->check(one_of(kControlPlaneDrill, kTieredDrill));
  command
      .add_option(
          "--seconds", options.seconds, "How long the script runs: 4 to 3600; a drill\nat least")
      ->type_name("NUMBER")
      ->transform(number_between(4, 3600))
      ->capture_default_str();
  const auto add_absence = [&](const char* name, double& seconds, const char* what) {
    command.add_option(name, seconds, what)
        ->type_name("NUMBER")
        ->transform(number_between(0, 120))
        ->capture_default_str()
        ->needs("--drill");
  };
  add_absence(
      "--kill-seconds", options.kill_seconds, "How long the control plane is dead: 0 to 120");
  add_absence("--stop-seconds", options.stop_seconds, "How long it is stopped: 0 to 120");
}

void add_demo_metrics(CLI::App& command, DemoOptions& options) {
  command
      .add_option("--metrics",
                  options.metrics,
                  "Serve /metrics on this host:port; port 0 takes\na free one")
      ->type_name("ADDRESS")
      ->check(host_and_port())
      ->capture_default_str();
  command
      .add_option(
          "--metrics-detail",
          options.metrics_detail,
          "Tell calls apart by cluster, or by endpoint\ntoo: at most 200; none: do not count them")
      ->type_name("DETAIL")
      ->check(CLI::IsMember({"cluster", "endpoint", "none"}))
      ->capture_default_str();
  command
      .add_option("--metrics-buckets",
                  options.metrics_buckets,
                  "Buckets of latencies: short (14) or grpc (41, as\nin gRFC A66)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"short", "grpc"}))
      ->capture_default_str();
}

void add_demo_pages(CLI::App& command, DemoOptions& options) {
  command
      .add_option(
          "--admin",
          options.admin,
          "Let `signalbox dump` look in, on unix:PATH or on a\nhost:port of the loopback; by "
          "default there is\nno admin page")
      ->type_name("ADDRESS")
      ->check(admin_address());
  command
      .add_option("--grpc-admin",
                  options.grpc_admin,
                  "Serve CSDS, channelz and health by gRPC, on\nunix:PATH or on a host:port of the "
                  "loopback;\nby default they are not served")
      ->type_name("ADDRESS")
      ->check(admin_address());
}

void add_demo(CLI::App& app, CommandLine& line) {
  DemoOptions& options = line.demo;
  CLI::App* command = add_command(
      app,
      "demo",
      "An aggregate cluster fails over under load",
      "Starts a control plane and backends in processes of their own, "
      "calls them\nthrough the drop-in channel, and kills clusters by "
      "script. Ctrl-C stops all of\nit. With --drill control-plane the clusters live: the control "
      "plane is killed,\nstopped and replaced, and no call may fail. With --drill tiered calls "
      "spread by\nhealth: the first cluster's backends are killed one by one, and each cluster\n"
      "must have the share that is computed.\n"
      "\nExamples:\n"
      "  signalbox demo\n"
      "  signalbox demo --seconds 60 --json result.json\n"
      "  signalbox demo --html demo.html\n"
      "  signalbox demo --drill control-plane\n"
      "  signalbox demo --drill tiered --json result.json\n");
  add_demo_script(*command, options);
  command->add_option("--json", options.json, "Write the result to this file as data")
      ->type_name("FILE");
  command
      ->add_option(
          "--html", options.html, "Write the run to this file as a page, that of\n`signalbox load`")
      ->type_name("FILE");
  add_demo_metrics(*command, options);
  add_demo_pages(*command, options);
  command
      ->add_option("--record",
                   options.record,
                   "Record what comes from outside in this file, for\n`signalbox replay`")
      ->type_name("FILE")
      ->check(file_name());
  command->add_option("--rps", options.rps, "Calls a second: 10 to 20000")
      ->type_name("NUMBER")
      ->transform(number_between(10, 20000))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of all random choices")
      ->type_name("NUMBER")
      ->transform(whole_number())
      ->capture_default_str();
  command
      ->add_option(
          "--resources",
          options.resources,
          "Resources of another topology; by default that of\nconf/demo, which is built in")
      ->type_name("FILE");
  command->callback([command, &line] {
    for (const char* name : {"--kill-seconds", "--stop-seconds"}) {
      if (line.demo.drill == kTieredDrill && command->count(name) > 0)
        throw CLI::ValidationError(name, "is of --drill control-plane, got --drill tiered");
    }
    line.status = run_demo(line.demo);
  });
}

void add_serve(CLI::App& app, CommandLine& line) {
  ServeOptions& options = line.serve;
  CLI::App* command = add_command(app,
                                  "serve",
                                  "A control plane (ADS) that serves a file",
                                  "The file is read again when it changes, and on SIGHUP; while it "
                                  "is wrong, what\nwas good before is served. Writes one line of "
                                  "JSON with the address when it is\nready. SIGTERM, Ctrl-C and "
                                  "the end of its terminal stop it.\n"
                                  "\nExample:\n"
                                  "  signalbox serve --resources resources.yaml\n");
  command->add_option("--resources", options.resources, "YAML or JSON: xDS resources")
      ->type_name("FILE")
      ->required();
  command->add_option("--listen", options.listen, "host:port; port 0 takes a free one")
      ->type_name("ADDRESS")
      ->check(host_and_port())
      ->capture_default_str();
  command->add_option("--parent", options.parent)->group("");
  command->callback([&line] { line.status = run_serve(line.serve); });
}

void add_backend_certificates(CLI::App& command, BackendOptions& options) {
  CLI::Option* const certificate =
      command.add_option("--certificate", options.certificate, "Speak TLS with this, in PEM")
          ->type_name("FILE")
          ->check(file_name());
  CLI::Option* const key =
      command.add_option("--private-key", options.private_key, "The certificate's key, in PEM")
          ->type_name("FILE")
          ->check(file_name());
  certificate->needs(key);
  key->needs(certificate);
  command
      .add_option("--client-ca",
                  options.client_ca,
                  "Clients must have a certificate of this CA, in\nPEM; by default they need none")
      ->type_name("FILE")
      ->check(file_name())
      ->needs(certificate);
}

void add_backend(CLI::App& app, CommandLine& line) {
  BackendOptions& options = line.backend;
  CLI::App* command = add_command(
      app,
      "backend",
      "A server to route calls to, for trials and tests",
      "Answers signalbox.demo.v1.Orders/Place with its name, its cluster, its process\nid and "
      "the caller's address. Writes one line of JSON with the address when it is\nready. SIGTERM "
      "and Ctrl-C stop it: calls in progress have a second to end.\nIt ends with the process "
      "that started it, too.\n"
      "\nExample:\n"
      "  signalbox backend --listen 127.0.0.1:50051 --cluster orders --name a\n");
  command->add_option("--listen", options.listen, "host:port; port 0 takes a free one")
      ->type_name("ADDRESS")
      ->check(host_and_port())
      ->capture_default_str();
  command->add_option("--name", options.name, "What it calls itself in its answers")
      ->type_name("NAME")
      ->required();
  command->add_option("--cluster", options.cluster, "The cluster that its answers name")
      ->type_name("NAME")
      ->required();
  add_backend_certificates(*command, options);
  command
      ->add_option("--at-once",
                   options.at_once,
                   "Works on at most NUMBER calls at a time: 1 to\n10000; other calls wait")
      ->type_name("NUMBER")
      ->transform(number_between(1, 10'000))
      ->capture_default_str();
  command
      ->add_option(
          "--failing-attempts",
          options.failing_attempts,
          "The first NUMBER attempts of each call fail\nUNAVAILABLE: for trials of retries")
      ->type_name("NUMBER")
      ->transform(number_between(0, 1000))
      ->capture_default_str();
  command->add_option("--parent", options.parent)->group("");
  command->callback([&line] { line.status = run_backend(line.backend); });
}

// Refuses a name that is given twice, as a runtime does.
std::function<void(std::string)> each_once(const char* option) {
  return [option, seen = std::set<std::string>()](const std::string& name) mutable {
    if (!seen.insert(name).second)
      throw CLI::ValidationError(option, "must be named once, got '" + name + "' twice");
  };
}

void add_check(CLI::App& app, CommandLine& line) {
  CheckOptions& options = line.check;
  CLI::App* command = add_command(
      app,
      "check",
      "Checks bootstraps and resources as a client would",
      "Fields that signalbox does not know are errors in a file, "
      "not from a server.\nA file that is right may have warnings: names that lead to no "
      "resource,\nlocalities that get no calls, domains that no target asks for, fields that "
      "are\nnot read though Envoy would act on them. Warnings leave the exit status 0.\n"
      "Clusters may name the certificate providers of a bootstrap that is checked\n"
      "with them.\nEnvironment variables that change how "
      "resources are read are obeyed, as by a\nruntime: docs/configure.md "
      "has a table of them.\n\n"
      "Examples:\n"
      "  signalbox check bootstrap.json resources.yaml\n"
      "  signalbox check --json resources.yaml\n"
      "  signalbox check --limit max_routes=20000 routes.yaml\n\n" +
          limits_text());
  command->add_option("FILE", options.files, "Bootstraps or resource files")
      ->type_name("")
      ->required();
  command->add_flag("--json", options.json, "Print JSON");
  command
      ->add_option_function<std::vector<std::string>>(
          "--limit",
          [&options](const std::vector<std::string>& all) {
            for (const std::string& text : all)
              read_limit(text, options.limits);
          },
          "Another limit than the one below, as in\nRuntimeOptions::limits")
      ->type_name("NAME=NUMBER")
      ->check(limit_and_number())
      ->expected(1)
      ->take_all();
  command
      ->add_option("--lb-policy",
                   options.lb_policies,
                   "A custom LB policy that clusters may name: the\nlast segment of its "
                   "TypedStruct's type URL. Its\nconfiguration is not checked")
      ->type_name("NAME")
      ->check(lb_policy_name())
      ->expected(1)
      ->take_all()
      ->each(each_once("--lb-policy"));
  command
      ->add_option(
          "--http-filter",
          options.http_filters,
          "A custom HTTP filter, as listeners and overrides\nmay name it by the type of its "
          "configuration;\nthat is not checked")
      ->type_name("TYPE")
      ->check(http_filter_type())
      ->expected(1)
      ->take_all()
      ->each(each_once("--http-filter"));
  command->callback([&line] { line.status = run_check(line.check); });
}

void add_dump(CLI::App& app, CommandLine& line) {
  DumpOptions& options = line.dump;
  CLI::App* command =
      add_command(app,
                  "dump",
                  "What the xDS client of a running process knows",
                  "The process has its admin pages on: Runtime::serve_admin, or\n"
                  "signalbox demo --admin. A table of every resource in use: its "
                  "state as in CSDS,\nversion and age of what is in use, the server "
                  "it came from, the last error.\n"
                  "\nExamples:\n"
                  "  signalbox dump --admin unix:/run/orders/admin.sock\n"
                  "  signalbox dump --admin localhost:9901 --type EDS --json\n");
  command->add_option("--admin", options.admin, "unix:PATH or host:port of the process")
      ->type_name("ADDRESS")
      ->check(admin_address())
      ->required();
  command->add_option("--type", options.type, "Only LDS, RDS, CDS or EDS")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"LDS", "RDS", "CDS", "EDS"}, CLI::ignore_case));
  command
      ->add_option("--name",
                   options.name,
                   "Only resources of this name; if there is none,\nthe exit status is 1")
      ->type_name("NAME");
  command
      ->add_option(
          "--timeout", options.timeout_seconds, "Seconds to wait for the answer: 0.1 to\n3600")
      ->type_name("SECONDS")
      ->transform(number_between(0.1, 3600))
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print JSON, with the resources themselves");
  command->callback([&line] { line.status = run_dump(line.dump); });
}

void add_ready(CLI::App& app, CommandLine& line) {
  ReadyOptions& options = line.ready;
  CLI::App* command = add_command(
      app,
      "ready",
      "Whether a running process can serve calls",
      "Asks /ready of the process' admin pages: Runtime::serve_admin, or signalbox demo\n"
      "--admin. For health checks of containers and start scripts.\n"
      "Exit status 1: the process is not ready, with the reason, or does not answer.\n"
      "Exit status 2: nothing listens there, or the question is wrong.\n"
      "\nExamples:\n"
      "  signalbox ready --admin unix:/run/orders/admin.sock\n"
      "  until signalbox ready --admin localhost:9901; do sleep 1; done\n");
  command->add_option("--admin", options.admin, "unix:PATH or host:port of the process")
      ->type_name("ADDRESS")
      ->check(admin_address())
      ->required();
  command
      ->add_option(
          "--target", options.target, "Only this target must be ready; by default all\ntargets")
      ->type_name("xds:///NAME")
      ->check(xds_target());
  command
      ->add_option(
          "--timeout", options.timeout_seconds, "Seconds to wait for the answer: 0.1 to\n3600")
      ->type_name("SECONDS")
      ->transform(number_between(0.1, 3600))
      ->capture_default_str();
  command->callback([&line] { line.status = run_ready(line.ready); });
}

void add_top(CLI::App& app, CommandLine& line) {
  TopOptions& options = line.top;
  CLI::App* command = add_command(
      app,
      "top",
      "The clusters of a running process, live",
      "The process has its admin pages on, as for dump. A table of its clusters: the\n"
      "priority that carries the calls, calls a second, errors, calls in flight, p50\n"
      "and p99 of attempts, endpoints that are READY of all, failovers; below it the last\n"
      "failovers. `q` or Ctrl-C ends it. Where stdout is no terminal, or TERM is dumb,\n"
      "each interval writes a line of name=value pairs for each cluster and failover.\n"
      "\nExamples:\n"
      "  signalbox top --admin unix:/run/orders/admin.sock\n"
      "  signalbox top --admin localhost:9901 --interval 10 --count 6 > minute.log\n");
  command->add_option("--admin", options.admin, "unix:PATH or host:port of the process")
      ->type_name("ADDRESS")
      ->check(admin_address())
      ->required();
  command
      ->add_option("--interval", options.interval_seconds, "Seconds between two looks: 0.1 to 3600")
      ->type_name("SECONDS")
      ->transform(number_between(0.1, 3600))
      ->capture_default_str();
  command
      ->add_option("--count", options.count, "Ends after so many intervals; 0: when it is\nstopped")
      ->type_name("NUMBER")
      ->transform(whole_number())
      ->capture_default_str();
  command
      ->add_option(
          "--timeout", options.timeout_seconds, "Seconds to wait for an answer: 0.1 to\n3600")
      ->type_name("SECONDS")
      ->transform(number_between(0.1, 3600))
      ->capture_default_str();
  command->callback([&line] { line.status = run_top(line.top); });
}

// Adds the options that choose the source of the answer: a process, or files.
void add_explained_world(CLI::App& command, ExplainOptions& options) {
  CLI::Option* const admin =
      command.add_option("--admin", options.admin, "unix:PATH or host:port of the process")
          ->type_name("ADDRESS")
          ->check(admin_address());
  command.add_option("--resources", options.resources, "YAML or JSON: xDS resources")
      ->type_name("FILE")
      ->excludes(admin);
  command
      .add_option("--bootstrap",
                  options.bootstrap,
                  "Of the resources: its node, names of listeners and\ncertificate providers. Its "
                  "servers are not asked")
      ->type_name("FILE")
      ->check(file_name())
      ->excludes(admin);
  command
      .add_option("--lb-policy",
                  options.lb_policies,
                  "A custom LB policy that clusters may name;\nround_robin stands in its place")
      ->type_name("NAME")
      ->check(lb_policy_name())
      ->expected(1)
      ->take_all()
      ->excludes(admin)
      ->each(each_once("--lb-policy"));
  command
      .add_option("--http-filter",
                  options.http_filters,
                  "A custom HTTP filter, by the type of its\nconfiguration; calls pass it as if it "
                  "did nothing")
      ->type_name("TYPE")
      ->check(http_filter_type())
      ->expected(1)
      ->take_all()
      ->excludes(admin)
      ->each(each_once("--http-filter"));
}

void add_explained_call(CLI::App& command, ExplainOptions& options) {
  command
      .add_option("--target",
                  options.target,
                  "What channels are made for: one that the process\n"
                  "uses, or a listener of the file")
      ->type_name("xds:///NAME")
      ->check(xds_target())
      ->required();
  command.add_option("--method", options.method, "The call's path")
      ->type_name("/PACKAGE.SERVICE/METHOD")
      ->check(method_path())
      ->required();
  add_header(command, options.headers, "A header of the call; may be repeated");
  add_cookie(command, options.cookies);
  command
      .add_option("--seed",
                  options.seed,
                  "Seed of the call's random choices; by default\na new one, which is printed")
      ->type_name("NUMBER")
      ->transform(whole_number());
}

void add_explain(CLI::App& app, CommandLine& line) {
  ExplainOptions& options = line.explain;
  CLI::App* command = add_command(
      app,
      "explain",
      "Where a call would go, and why",
      "Every decision of one pick: the route, the filters, a cookie's hosts, drops and\n"
      "limits, the ejected endpoints, the priority and its timers, the locality, the\nendpoint; "
      "each "
      "with its reason and the resource that says so. Nothing is sent,\ncounted or connected for "
      "it. Values of headers and cookies are not shown.\n"
      "Of a process (--admin) it is the pick as of now; the process must serve its\n"
      "admin pages, as for dump. A file (--resources) needs no process: every endpoint\n"
      "counts as connected, and the name of a LOGICAL_DNS cluster is looked up. The\n"
      "same seed gives the same answer. The exit status is 1 when the call would fail.\n"
      "\nExamples:\n"
      "  signalbox explain --admin unix:/run/orders/admin.sock \\\n"
      "    --target xds:///orders --method /shop.Orders/Place --header x-user:7\n"
      "  signalbox explain --resources resources.yaml --target xds:///orders \\\n"
      "    --method /shop.Orders/Place --seed 42 --json\n");
  add_explained_world(*command, options);
  add_explained_call(*command, options);
  command
      ->add_option(
          "--timeout", options.timeout_seconds, "Seconds to wait for the answer: 0.1 to\n3600")
      ->type_name("SECONDS")
      ->transform(number_between(0.1, 3600))
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print JSON");
  command->callback([&line] {
    if (line.explain.admin.empty() && line.explain.resources.empty())
      throw CLI::RequiredError("--admin or --resources");
    line.status = run_explain(line.explain);
  });
}

void add_planned_calls(CLI::App& command, PlanOptions& options) {
  command.add_option("--resources", options.resources, "YAML or JSON: xDS resources")
      ->type_name("FILE")
      ->required();
  CLI::Option* const cluster =
      command
          .add_option("--cluster",
                      options.request.cluster,
                      "The cluster of the calls; by default the one\nthat no aggregate leads to")
          ->type_name("NAME");
  command
      .add_option("--target",
                  options.request.target,
                  "The target of the calls: xds:///NAME with routes\nthat lead to one cluster")
      ->type_name("TARGET")
      ->excludes(cluster);
}

void add_assumptions(CLI::App& command, PlanOptions& options) {
  const auto many = [](CLI::Option* option) { option->expected(1)->take_all(); };
  many(command
           .add_option("--down",
                       options.request.assumptions.down,
                       "Cannot be reached: a zone, region/zone,\nregion/zone/sub_zone, or an "
                       "endpoint's host:port.\nMay be said more than once, as the next two")
           ->type_name("WHAT"));
  many(command
           .add_option("--health",
                       options.health,
                       "CLUSTER/PRIORITY=PERCENT: so many of its endpoints\nare healthy, whatever "
                       "EDS says")
           ->type_name("HEALTH"));
  many(command
           .add_option("--degraded",
                       options.degraded,
                       "CLUSTER/PRIORITY=PERCENT: so many are degraded;\nwithout --health the "
                       "others are healthy")
           ->type_name("HEALTH"));
}

void add_plan(CLI::App& app, CommandLine& line) {
  PlanOptions& options = line.plan;
  CLI::App* command = add_command(
      app,
      "plan",
      "Where calls would go if a zone died",
      "The share of every cluster, priority, locality and endpoint in percent of the\n"
      "calls to a cluster: now, and then, if what is said here were so; in both modes\n"
      "of aggregate clusters, and what flipping the mode would change. Nothing is\n"
      "connected to.\n"
      "\nExamples:\n"
      "  signalbox plan --resources resources.yaml --down zone-a\n"
      "  signalbox plan --resources resources.yaml --health orders/0=50 --json\n"
      "  signalbox plan --resources resources.yaml --down 10.0.0.1:80 --html plan.html\n");
  add_planned_calls(*command, options);
  add_assumptions(*command, options);
  command->add_option("--mode", options.mode, "Shown: priority, tiered or both")
      ->type_name("MODE")
      ->check(CLI::IsMember({"priority", "tiered", "both"}))
      ->capture_default_str();
  command
      ->add_option("--panic-threshold",
                   options.request.assumptions.panic_threshold,
                   "Of tiered mode, as in RuntimeOptions: 0 to 100;\n0: no priority ever panics; "
                   "an aggregate's own\n(healthy_panic_threshold) comes first")
      ->type_name("PERCENT")
      ->transform(number_between(0, 100))
      ->capture_default_str();
  command
      ->add_option(
          "--lb-policy", options.request.lb_policies, "A custom LB policy that clusters may name")
      ->type_name("NAME")
      ->check(lb_policy_name())
      ->expected(1)
      ->take_all()
      ->each(each_once("--lb-policy"));
  command
      ->add_option("--bootstrap",
                   options.request.bootstrap_path,
                   "Gives the names of listeners, the certificate\nproviders that clusters may "
                   "name, and the caller's\nzone, which its node has")
      ->type_name("FILE");
  command
      ->add_option(
          "--zone",
          options.zone,
          "The zone of the caller, as region/zone, for\nzone-aware routing, in place of the "
          "bootstrap's")
      ->type_name("ZONE");
  CLI::Option* const json =
      command->add_flag("--json", options.json, "Print JSON in place of the table");
  command->add_option("--html", options.html, "Write a page with bars to this file, too")
      ->type_name("FILE")
      ->check(file_name())
      ->excludes(json);
  command->callback([&line] { line.status = run_plan(line.plan); });
}

// CLI11 says "true" for an option that was given without its optional value.
bool is_bare(const std::string& text) {
  return text.empty() || text == "true";
}

// Returns the option --http.
CLI::Option* add_load_target(CLI::App& command, LoadOptions& options) {
  CLI::Option* const target =
      command.add_option("--target", options.target, "What the channel is made for")
          ->type_name("xds:///NAME")
          ->check(xds_target());
  CLI::Option* const call =
      command
          .add_option("--call",
                      options.call,
                      "The method: package.Service/Method, unary or\nserver-streaming")
          ->type_name("METHOD");
  CLI::Option* const http =
      command
          .add_option("--http",
                      options.http,
                      "In place of --target and --call: HTTP/1.1 requests\nto the endpoints of "
                      "xds:///NAME")
          ->type_name("http://NAME/PATH")
          ->excludes(target)
          ->excludes(call);
  command
      .add_option("--request",
                  options.request,
                  "The method of --http: GET, HEAD, POST, PUT, PATCH,\nDELETE or OPTIONS; by "
                  "default POST with --data-file,\nelse GET")
      ->type_name("METHOD")
      ->check(http_method())
      ->needs(http);
  return http;
}

void add_load_request(CLI::App& command, LoadOptions& options, CLI::Option* http) {
  CLI::Option* const protoset =
      command
          .add_option("--protoset",
                      options.protoset,
                      "Types of the method: protoc --include_imports\n--descriptor_set_out=FILE")
          ->type_name("FILE")
          ->check(file_name())
          ->excludes(http);
  CLI::Option* const reflection =
      command
          .add_flag("--reflection",
                    options.reflection,
                    "The same types from the target itself, by gRPC server\nreflection")
          ->excludes(protoset)
          ->excludes(http);
  command.add_option("--data", options.data, "The request as JSON; by default an empty one")
      ->type_name("JSON");
  command
      .add_option("--data-file",
                  options.data_file,
                  "The request's bytes, in place of the types; the body\nof --http")
      ->type_name("FILE")
      ->check(file_name())
      ->excludes(protoset)
      ->excludes(reflection);
  command
      .add_flag(
          "--streaming", options.is_streaming, "Without the types: the method is server-streaming")
      ->excludes(protoset)
      ->excludes(reflection)
      ->excludes(http);
}

void add_load_call(CLI::App& command, LoadOptions& options) {
  CLI::Option* const http = add_load_target(command, options);
  add_load_request(command, options, http);
  add_header(command, options.headers, "A header of every call; may be repeated");
  command
      .add_option_function<std::string>(
          "--session",
          [&options](const std::string& text) {
            options.sessions = is_bare(text) ? 1 : std::stoull(text);
          },
          "Calls keep cookies: so many sessions (1 without a\nnumber) with a jar each, in turns")
      ->type_name("[NUMBER]")
      ->expected(0, 1)
      ->check(CLI::Validator(
          [](std::string& text) -> std::string {
            std::uint64_t number = 1;
            if (!is_bare(text) && !absl::SimpleAtoi(text, &number)) number = 0;
            if (number >= 1 && number <= 1'000'000) return "";
            return absl::StrCat("expected a whole number from 1 to 1000000, got '", text, "'");
          },
          ""));
  command.add_option("--timeout", options.timeout, "Deadline of a call, from its sending")
      ->type_name("DURATION")
      ->capture_default_str();
}

void add_load_schedule(CLI::App& command, LoadOptions& options) {
  command
      .add_option("--rate",
                  options.rate,
                  "Calls a second: 200; a ramp, 100..2000/30s; steps,\n100/10s,500/10s,100")
      ->type_name("RATE")
      ->capture_default_str();
  command.add_option("--arrivals", options.arrivals, "Moments of calls: poisson or even")
      ->type_name("NAME")
      ->check(one_of("poisson", "even"))
      ->capture_default_str();
  command.add_option("--duration", options.duration, "Length of the measured part")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--warmup", options.warmup, "Calls before it, at the first rate, not counted")
      ->type_name("DURATION")
      ->capture_default_str();
  command
      .add_option("--start-at",
                  options.start_at,
                  "When calls begin, for several machines to start\ntogether: "
                  "2026-11-26T13:00:00Z; by default at once")
      ->type_name("TIME");
  command.add_option("--seed", options.seed, "Seed of the moments of calls")
      ->type_name("NUMBER")
      ->transform(whole_number())
      ->capture_default_str();
  command
      .add_option("--max-in-flight",
                  options.max_in_flight,
                  "A call that is due while so many are in flight is\ndropped: 1 to 1000000")
      ->type_name("NUMBER")
      ->transform(number_between(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--processes",
                  options.processes,
                  "Each side runs as so many processes, which share the\ncalls of the one "
                  "schedule: 1 to 64")
      ->type_name("NUMBER")
      ->transform(number_between(1, kMostProcesses))
      ->capture_default_str();
  command
      .add_option("--max-lateness",
                  options.max_lateness,
                  "The measurement is not valid when p99 of the\nlateness of sending is longer")
      ->type_name("DURATION")
      ->capture_default_str();
}

void add_load_world(CLI::App& command, LoadOptions& options) {
  CLI::Option* const resources =
      command
          .add_option("--resources",
                      options.resources,
                      "xDS resources that a control plane of this command\nserves; a script may "
                      "act on their endpoints")
          ->type_name("FILE")
          ->check(file_name());
  command
      .add_option("--bootstrap",
                  options.bootstrap,
                  "By default GRPC_XDS_BOOTSTRAP or\nGRPC_XDS_BOOTSTRAP_CONFIG names it")
      ->type_name("FILE")
      ->check(file_name())
      ->excludes(resources);
  command
      .add_option("--start-timeout",
                  options.start_timeout,
                  "Within this time the target must be ready, and\nhave answered --reflection")
      ->type_name("DURATION")
      ->capture_default_str();
  command
      .add_option("--compare",
                  options.compare,
                  "grpc: the same calls at the same moments through\ngRPC's own xds:/// channel, "
                  "from a process of its own")
      ->type_name("NAME")
      ->check(CLI::IsMember({"grpc"}));
}

void add_report_files(CLI::App& command, ReportFiles& files) {
  command.add_option("--html", files.html, "Write the report to this file as a page")
      ->type_name("FILE")
      ->check(file_name());
  command.add_option("--json", files.json, "Write the report to this file as data")
      ->type_name("FILE")
      ->check(file_name());
  command.add_option("--junit", files.junit, "Write the thresholds to this file for CI, as XML")
      ->type_name("FILE")
      ->check(file_name());
  command
      .add_option("--hdr", files.hdr, "Write the latencies to this file, a log of\nHdrHistogram")
      ->type_name("FILE")
      ->check(file_name());
}

void add_load_merge(CLI::App& load, CommandLine& line) {
  LoadMergeOptions& options = line.load_merge;
  CLI::App* command = add_command(
      load,
      "merge",
      "The reports of several machines as one",
      "Adds reports of load up, as if one machine had sent all calls. Percentiles,\nrecoveries and "
      "thresholds are computed again. Runs that overlap in time lie by\ntheir clocks.\n"
      "Exit status, beside those below: as that of load.\n"
      "\nExample:\n"
      "  signalbox load merge a.json b.json --html all.html\n");
  command->add_option("REPORT", options.reports, "JSON files of load")
      ->required()
      ->check(file_name());
  add_report_files(*command, options.files);
  command->callback([&line] { line.status = run_load_merge(line.load_merge); });
}

void add_load(CLI::App& app, CommandLine& line) {
  LoadOptions& options = line.load;
  CLI::App* command = add_command(
      app,
      "load",
      "What callers see while things fail",
      "Calls a method, or sends HTTP requests, on schedule, whether or not earlier\ncalls "
      "were answered (an open loop), does the acts of a script meanwhile, and says\nwhat callers "
      "saw: of each fault the lost calls, the time until the next priority\nanswered and until "
      "p99 was back. Latencies count from when a call was due.\ndocs/load.md has the script's and "
      "the thresholds' grammar, the rules and the JSON.\n"
      "Exit status, beside those below: 3 the measurement is not valid, because the\ngenerator "
      "was too slow or a process of it died; 1 a --fail-if happened.\n"
      "\nExamples:\n"
      "  signalbox load --target xds:///orders --call orders.v1.Orders/Place \\\n"
      "    --protoset orders.pb --data '{\"id\": 7}' --rate 100..2000/30s --duration 60s\n"
      "  signalbox load --target xds:///orders --call orders.v1.Orders/Place \\\n"
      "    --resources resources.yaml --script drill.yaml --duration 60s --compare grpc \\\n"
      "    --fail-if 'lost>0' --fail-if 'recovery[kill primary]>1s' --html report.html\n"
      "  signalbox load --http http://shop/orders/7 --resources resources.yaml --rate 500\n");
  add_load_call(*command, options);
  add_load_schedule(*command, options);
  add_load_world(*command, options);
  command->add_option("--script", options.script, "YAML or JSON: processes, and acts with times")
      ->type_name("FILE")
      ->check(file_name());
  command
      ->add_option("--fail-if",
                   options.fail_if,
                   "What must not happen: 'lost>0', 'p99>50ms'; may be\nrepeated")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  add_report_files(*command, options.files);
  command
      ->add_option("--metrics",
                   options.metrics,
                   "Serve /metrics on this host:port while it runs; a\nport alone is one of "
                   "127.0.0.1, and 0 takes a free one")
      ->type_name("ADDRESS");
  command->add_flag("--quiet", options.quiet, "No line a second, and none for each act");
  command->add_flag("--dry-run", options.dry_run, "Print the timeline, and do nothing");
  add_load_merge(*command, line);
  // merge needs neither --target nor --call. So CLI11 must not require them, and load checks here.
  command->callback([command, &line] {
    if (!command->get_subcommands().empty()) return;
    const bool is_http = !line.load.http.empty();
    if (!is_http && line.load.target.empty()) throw CLI::RequiredError("--target");
    if (!is_http && line.load.call.empty()) throw CLI::RequiredError("--call");
    if (!line.load.data.empty() && line.load.protoset.empty() && !line.load.reflection)
      throw CLI::RequiresError("--data", "--protoset or --reflection");
    line.status = run_load(line.load);
  });
}

// Hidden from users: load starts it, for the calls of one side.
void add_load_side(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "load-side", "One side of a load", "");
  command->group("");
  command->add_option("--parent", line.parent, "Ends with this process")->required();
  command->callback([&line] { line.status = run_load_side(line.parent); });
}

// Hidden from users: load starts each command of a script by this command.
void add_launch(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "launch", "A command that ends with its parent", "");
  command->group("");
  command->add_option("--parent", line.parent, "Ends with this process")->required();
  command->add_option("--files", line.files, "Its limit of open files")->required();
  command->add_option("COMMAND", line.launched, "The command and its arguments")->required();
  command->callback(
      [&line] { line.status = launch_command(line.parent, line.files, line.launched); });
}

void add_replayed_call(CLI::App& command, ReplayOptions& options) {
  CLI::Option* const explain =
      command
          .add_option("--explain", options.explain, "Explain the call with this path at that time")
          ->type_name("/PACKAGE.SERVICE/METHOD")
          ->check(method_path());
  command.add_option("--target", options.target, "The call's target; by default the only one")
      ->type_name("xds:///NAME")
      ->check(xds_target())
      ->needs(explain);
  add_header(command, options.headers, "A header of the call; may be repeated")->needs(explain);
  add_cookie(command, options.cookies)->needs(explain);
  command.add_option("--seed", options.seed, "Seed of the call's random choices; by default 0")
      ->type_name("NUMBER")
      ->transform(whole_number())
      ->needs(explain);
}

void add_replay(CLI::App& app, CommandLine& line) {
  ReplayOptions& options = line.replay;
  CLI::App* command =
      add_command(app,
                  "replay",
                  "A recorded outage, run again",
                  "Runs the actors over a recording (RuntimeOptions::record, or demo --record) in\n"
                  "virtual time: nothing is connected to, and two runs are equal. Prints what\n"
                  "changed when: targets, priorities in use, endpoints, lost control planes.\n"
                  "FILE.old, the part of the recording before FILE, is replayed first if it is\n"
                  "there.\n"
                  "Exit status 1: the recording is damaged, or --diff found a difference.\n"
                  "\nExamples:\n"
                  "  signalbox replay orders.rec\n"
                  "  signalbox replay orders.rec --until 12.5s --explain /orders.v1.Orders/Place\n"
                  "  signalbox replay orders.rec --json > before.json\n"
                  "  signalbox replay orders.rec --diff before.json\n");
  command->add_option("FILE", options.file, "A recording")->required();
  command
      ->add_option("--until",
                   options.until,
                   "Stop there, and print the state: 12.5s since the\nbeginning, or "
                   "2026-11-28T12:00:00Z; at most an\nhour after the recording's end")
      ->type_name("TIME")
      ->check(not_empty("a time"));
  add_replayed_call(*command, options);
  CLI::Option* const json = command->add_flag("--json", options.json, "Print JSON");
  command
      ->add_option("--diff",
                   options.diff,
                   "Print the first difference to this output of\n`replay --json`, by another "
                   "signalbox")
      ->type_name("FILE")
      ->check(file_name())
      ->excludes(json);
  command->add_flag(
      "--allow-cut", options.allow_cut, "Replay a file that was cut off, up to there");
  command->callback([&line] { line.status = run_replay(line.replay); });
}

void add_version(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "version", "Says what this is built from", "");
  command->add_flag("--json", line.version.json, "Print JSON");
  command->callback([&line] { line.status = run_version(line.version); });
}

// The first option that the chosen command does not have; empty if all are known.
std::string unknown_option(const CLI::App& app) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word[0] == '-') return word;
  }
  return "";
}

// Maps CLI11's statuses to our exit statuses.
int report(const CLI::App& app,
           const CLI::ParseError& error,
           const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  std::string command = "signalbox";
  const std::string first_argument = arguments.empty() ? "" : arguments.front();
  std::string what = error.what();
  what += place_of(app, arguments, what);
  for (const CLI::App* chosen : app.get_subcommands())
    command += " " + chosen->get_name();
  if (const std::string option = unknown_option(app); !option.empty()) {
    what = "there is no option '" + option + "'";  // CLI11 would report another problem first.
  } else if (app.get_subcommands().empty() && !first_argument.empty() && first_argument[0] != '-') {
    what = "there is no command '" + first_argument + "'";
  }
  std::cerr << command << ": " << what << "\nTry '" << command << " --help'.\n";
  return kExitUsage;
}

int run(int argc, char** argv) {
  // Our own errors say in fewer words what gRPC would log.
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  CLI::App app{"signalbox: a routing runtime that a busy server embeds.", "signalbox"};
  CommandLine line;
  app.footer(
      "An option may also come from the environment, such as SIGNALBOX_SERVE_LISTEN for\n"
      "--listen of serve, or from the file of --config, as serve: {listen: ...}. The\n"
      "command line counts first, then the environment, then the file. SIGNALBOX_CONFIG\n"
      "and SIGNALBOX_LOG_FORMAT are the options above. An option that may be repeated\n"
      "has one value in the environment, and a list in the file.\n\n" +
      std::string(kExitStatusText) + "\nTry 'signalbox COMMAND --help'.");
  app.fallthrough();  // The options of all commands may stand behind the command.
  app.add_option_function<std::string>(
         "--log-format",
         [](const std::string& name) {
           set_log_format(name == "json" ? LogFormat::kJson : LogFormat::kText);
         },
         "How lines on stderr are written: text or json")
      ->type_name("FORMAT")
      ->check(one_of("text", "json"));
  app.set_version_flag("--version", version_text, "The same as the command version");
  app.require_subcommand(1);
  add_demo(app, line);
  add_serve(app, line);
  add_backend(app, line);
  add_check(app, line);
  add_dump(app, line);
  add_ready(app, line);
  add_top(app, line);
  add_load(app, line);
  add_plan(app, line);
  add_explain(app, line);
  add_replay(app, line);
  add_version(app, line);
  add_load_side(app, line);
  add_launch(app, line);
  add_settings(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report(app, error, {argv + std::min(argc, 1), argv + argc});
  }
  // A command fails if its output was lost.
  if (!std::cout.flush() && line.status == kExitOk) {
    std::cerr << "signalbox: cannot write to stdout\n";
    return kExitFailed;
  }
  return line.status;
}

}  // namespace

int main(int argc, char** argv) {
  // A write beyond the limit of a file's size is an error then, which the command can report.
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "signalbox: %s\n", error.what());
    return kExitFailed;
  }
}
