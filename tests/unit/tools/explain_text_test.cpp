// SPDX-License-Identifier: Apache-2.0
#include "tools/explain_text.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

Json explanation() {
  return {{"target", "xds:///orders"},
          {"method", "/s.S/M"},
          {"seed", 7},
          {"outcome", "complete"},
          {"cluster", "orders"},
          {"address", "10.0.0.1:80"},
          {"delay_seconds", 0},
          {"status", {{"code", "OK"}, {"message", ""}}},
          {"steps",
           {{{"part", "route"}, {"decision", "it"}, {"reason", "why"}, {"source", "RDS r"}},
            {{"part", "a"}, {"decision", "b"}, {"reason", "c"}, {"source", ""}},
            {{"part", "a"}, {"decision", "b"}, {"reason", ""}, {"source", "CDS c"}},
            {{"part", "a"}, {"decision", "\"b\"\n"}, {"reason", ""}, {"source", ""}}}}};
}

std::string last_lines(const Json& json) {
  const std::string text = explain_text(json);
  return text.substr(text.find("\n\n", text.find("\n\n") + 1) + 2);
}

}  // namespace

TEST_CASE("explain_text: numbered steps with reason and source, and the end", "[tools][explain]") {
  CHECK(explain_text(explanation()) ==
        "xds:///orders  /s.S/M  --seed 7\n"
        "\n"
        " 1. route: it\n"
        "      why  [RDS r]\n"
        " 2. a: b\n"
        "      c\n"
        " 3. a: b\n"
        "      [CDS c]\n"
        " 4. a: \"b\"\\x0a\n"
        "\n"
        "The call goes to 10.0.0.1:80, in cluster orders.\n");
}

TEST_CASE("explain_text: the leaf of an aggregate that takes the call is named",
          "[tools][explain]") {
  Json json = explanation();
  json["leaf"] = "west";
  CHECK(last_lines(json) == "The call goes to 10.0.0.1:80, in leaf west of cluster orders.\n");
  json["leaf"] = "";
  CHECK(last_lines(json) == "The call goes to 10.0.0.1:80, in cluster orders.\n");
}

TEST_CASE("explain_text: how calls end", "[tools][explain]") {
  Json json = explanation();
  json["status"] = {{"code", "UNAVAILABLE"}, {"message", "gone"}};
  json["outcome"] = "queue";
  CHECK(last_lines(json) == "The call waits, in cluster orders.\n");
  json["outcome"] = "fail";
  CHECK(last_lines(json) == "The call fails, unless it is wait_for_ready: UNAVAILABLE: gone\n");
  json["outcome"] = "drop";
  CHECK(last_lines(json) == "The call fails: UNAVAILABLE: gone\n");
  json["delay_seconds"] = 1.5;
  CHECK(last_lines(json) == "The call waits for 1.5 s; then:\nThe call fails: UNAVAILABLE: gone\n");
}

TEST_CASE("explain_text: what is missing is empty", "[tools][explain]") {
  CHECK(explain_text(Json::object()) ==
        "  "
        "  --seed \n\n\nThe call fails, unless it is "
        "wait_for_ready: : \n");
}

}  // namespace signalbox::tools
