// SPDX-License-Identifier: Apache-2.0
#include "tools/dump_table.hpp"

#include <string>

#include "absl/strings/ascii.h"
#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);  // 2023-11-14T22:13:20Z.

std::string table_of(const char* json) {
  return dump_table(nlohmann::json::parse(json), kNow);
}

std::string age_in(const std::string& time) {
  const auto dump = nlohmann::json{
      {"generic_xds_configs", {{{"type_url", "t/T"}, {"name", "n"}, {"last_updated", time}}}}};
  const std::string table = dump_table(dump, kNow);
  const std::string last = table.substr(table.rfind("\nT ") + 1);
  const auto begin = last.find("-") + 1;
  return std::string(absl::StripAsciiWhitespace(last.substr(begin, last.find("-", begin) - begin)));
}

}  // namespace

TEST_CASE("dump table: a line for each resource, under aligned names", "[tools][dump][A40]") {
  CHECK(table_of(R"({
    "node": {"id": "orders-7f"},
    "xds_servers": [{"server_uri": "127.0.0.1:1", "connected": true},
                    {"server_uri": "b:2", "connected": false, "error": "refused"}],
    "generic_xds_configs": [
      {"type_url": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "orders",
       "client_status": "ACKED", "version_info": "4", "last_updated": "2023-11-14T22:01:20.000Z",
       "xds_server": "127.0.0.1:1"},
      {"type_url": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
       "name": "spare", "client_status": "NACKED", "version_info": "4",
       "last_updated": "2023-11-14T19:00:00.000Z", "xds_server": "127.0.0.1:1",
       "error_state": {"details": "bad\nweight", "version_info": "5",
                       "last_update_attempt": "2023-11-14T22:13:12.000Z"}},
      {"type_url": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
       "name": "new", "client_status": "TIMEOUT",
       "error_state": {"details": "late", "last_update_attempt": "2023-11-14T22:13:12.000Z"}}]})") ==
        R"(node orders-7f
server 127.0.0.1:1  connected
server b:2  not connected: refused

TYPE  NAME    STATE    VERSION  AGE  SERVER       ERROR
CDS   orders  ACKED    4        12m  127.0.0.1:1  -
EDS   spare   NACKED   4        3h   127.0.0.1:1  version 5, 8s ago: bad\nweight
EDS   new     TIMEOUT  -        -    -            8s ago: late
)");
}

TEST_CASE("dump table: ages in the unit that fits", "[tools][dump]") {
  CHECK(age_in("2023-11-14T22:13:20.500Z") == "0s");
  CHECK(age_in("2023-11-14T22:12:21Z") == "59s");
  CHECK(age_in("2023-11-14T22:12:20Z") == "1m");
  CHECK(age_in("2023-11-14T21:13:20Z") == "1h");
  CHECK(age_in("2023-11-12T22:13:20Z") == "2d");
}

TEST_CASE("dump table: without resources its head is there, and odd data does no harm",
          "[tools][dump]") {
  CHECK(table_of("{}") == "\nTYPE  NAME  STATE  VERSION  AGE  SERVER  ERROR\n");
  CHECK_THAT(table_of(R"({"generic_xds_configs": [{"name": 7, "error_state": {}}]})"),
             Catch::Matchers::Contains("TYPE"));
  CHECK_THAT(table_of(R"({"xds_servers": ["a", {"connected": "yes"}]})"),
             Catch::Matchers::StartsWith("server   not connected\nserver   not connected\n"));
}

}  // namespace signalbox::tools
