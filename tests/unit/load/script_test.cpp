// SPDX-License-Identifier: Apache-2.0
#include "tools/load/script.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

constexpr const char* kDrill = R"(
processes:
  primary: {command: [./orders, --port, 7001]}
  other: {pidfile: /run/other.pid}
acts:
  - {at: 20s, stop: [primary, other], for: 2s}
  - {at: 10s, kill: primary, for: 1500ms}
  - {at: 30s, drain: 127.0.0.1:7001, for: 5s}
  - {at: 1m, exec: [kubectl, delete, pod, x]}
  - {at: 50s, mark: version 2}
  - {at: 55s, kill: primary}
  - {at: 56s, stop: control-plane}
  - {at: 57s, delay: 127.0.0.1:7001, by: 100ms, for: 1s}
  - {at: 59s, bandwidth: 127.0.0.1:7001, to: 1000}
)";

}  // namespace

TEST_CASE("script: acts are sorted, undone and named", "[load][script]") {
  const auto script = parse_script(kDrill, "drill.yaml", true);
  REQUIRE(script.status().ToString() == "OK");
  std::vector<std::string> names;
  for (const Act& act : script->acts)
    names.push_back(act.name);
  CHECK(names == std::vector<std::string>{"kill primary",
                                          "restart primary",
                                          "stop primary+other",
                                          "cont primary+other",
                                          "drain 127.0.0.1:7001",
                                          "undrain 127.0.0.1:7001",
                                          "mark version 2",
                                          "kill primary#2",
                                          "stop control-plane",
                                          "delay 127.0.0.1:7001",
                                          "clear 127.0.0.1:7001",
                                          "bandwidth 127.0.0.1:7001",
                                          "exec kubectl delete pod x"});
  CHECK(script->processes.at("primary").command ==
        std::vector<std::string>{"./orders", "--port", "7001"});
  CHECK(script->processes.at("other").pidfile == "/run/other.pid");
  CHECK(script->acts[0].is_fault());
  CHECK_FALSE(script->acts[1].is_fault());
  CHECK_FALSE(script->acts[6].is_fault());
  CHECK(script->acts[9].what == "delay of 127.0.0.1:7001 by 100ms");
  CHECK(script->acts[9].amount == 1e8);
  CHECK(script->acts[11].amount == 1000);
  CHECK(timeline(*script).substr(0, 68) ==
        "   10.000s  SIGKILL to primary\n   11.500s  start of primary\n   20.00");
}

TEST_CASE("script: a bad script is refused with its place", "[load][script]") {
  struct Row {
    const char* text;
    const char* why;
  };

  const Row row = GENERATE(
      Row{"acts: [{at: 1s, explode: x}]", "acts[0]: 'explode' is no verb; there are: kill, term"},
      Row{"processes: {p: {command: [x]}}\nacts:\n  - {at: 1s, mark: a}\n  - {at: 1s, kill: q}",
          "drill.yaml: line 4: acts[1]: kill: 'q' is no process of this script; there are: p"},
      Row{"acts: [{at: 1s, kill: nginx}]", "reaches only processes that it starts"},
      Row{"processes: {p: {pidfile: f}}\nacts: [{at: 1s, restart: p}]", "cannot be started again"},
      Row{"processes: {p: {pidfile: f}}\nacts: [{at: 1s, kill: p, for: 1s}]",
          "restart: 'p' has a pidfile and no command"},
      Row{"acts: [{at: soon, mark: a}]", "at: expected a duration such as 10s"},
      Row{"acts: [{at: -1s, mark: a}]", "at: expected a duration"},
      Row{"acts: [{mark: a}]", "expected an object with at and a verb"},
      Row{"acts: [{at: 1s}]", "has no verb"},
      Row{"acts: [{at: 1s, mark: a, exec: b}]", "has two verbs"},
      Row{"acts: [{at: 1s, mark: {}}]", "mark: expected a text or a list of texts"},
      Row{"acts: [{at: 1s, mark: a, for: 1s}]", "for: mark cannot be undone"},
      Row{"acts: [{at: 1s, drain: 'h:1'}]", "drain: needs --resources"},
      Row{"acts: [{at: 1s, delay: 'h:1'}]", "delay needs by"},
      Row{"acts: [{at: 1s, mark: a, by: 1s}]", "delay needs by, such as 100ms, and no other"},
      Row{"acts: [{at: 1s, bandwidth: 'h:1', to: fast}]", "to: expected bytes a second"},
      Row{"acts: [{at: 1s, reset: 'h:1'}]", "reset: needs --resources"},
      Row{"acts: [{at: 1s, stop: control-plane}]", "'control-plane' is no process of this script"},
      Row{"processes: {p: {command: []}}\nacts: []", "processes: p: command: expected a list"},
      Row{"processes: {p: {command: [x], pidfile: f}}\nacts: []", "either command or pidfile"},
      Row{"processes: {p: {}}\nacts: []", "either command or pidfile"},
      Row{"processes: {p: {name: nginx}}\nacts: []", "processes: p: name: expected command"},
      Row{"processes: {control-plane: {command: [x]}}\nacts: []", "the name is taken"},
      Row{"steps: []", "'steps' is unknown; expected processes and acts"},
      Row{"processes: {}", "acts: expected a list"},
      Row{"[]", "expected an object with acts"},
      Row{"acts: [", "drill.yaml"});
  CAPTURE(row.text);
  const auto script = parse_script(row.text, "drill.yaml", false);
  CHECK(script.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(script.status().message()), Catch::Contains(row.why));
}

}  // namespace signalbox::tools
