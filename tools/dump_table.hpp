// SPDX-License-Identifier: Apache-2.0
//
// dump_table — a dump of an xDS client (xds/dump_json.hpp) for people.
//
//   GET /config_dump ─▶ JSON ─▶ [dump_table] ─▶ `signalbox dump`
//
//   node orders-7f
//   server 127.0.0.1:18000  connected
//
//   TYPE  NAME           STATE   VERSION  AGE  SERVER           ERROR
//   CDS   orders         ACKED   4        12m  127.0.0.1:18000  -
//   EDS   orders-spare   NACKED  4        3h   127.0.0.1:18000  version 5, 8s ago: …
//
// STATE is CSDS' client_status. VERSION and AGE describe the resource in use: beside an error, that
// is the last good resource. `-`: no value. Control characters in names and errors are escaped.

#pragma once

#include <string>

#include "absl/time/time.h"
#include <nlohmann/json.hpp>

namespace signalbox::tools {

/// The whole text of the table. `dump`: the JSON of /config_dump. AGE is the time until `now`. A
/// text of `dump` that is missing or not a string counts as empty.
std::string dump_table(const nlohmann::json& dump, absl::Time now);

}  // namespace signalbox::tools
