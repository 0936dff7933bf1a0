// SPDX-License-Identifier: Apache-2.0
#include "tools/dump_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "messages/resource.hpp"
#include "xds/type_url.hpp"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;
using Row = std::array<std::string, 7>;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return absl::Utf8SafeCHexEscape(found->get<std::string>());
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

// The age: in seconds below a minute, in minutes below an hour, in hours below two days, else in
// days. "-": the text is no time.
std::string age(const std::string& time_text, absl::Time now) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, time_text, &time, nullptr)) return "-";
  const std::int64_t seconds = std::max<std::int64_t>(absl::ToInt64Seconds(now - time), 0);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, "m");
  if (seconds < 48 * 3600) return absl::StrCat(seconds / 3600, "h");
  return absl::StrCat(seconds / (24 * 3600), "d");
}

std::string short_type(const std::string& type_url) {
  const auto type = xds::resource_type_of(type_url);
  return std::string(type ? to_string(*type) : xds::api_name(type_url));
}

std::string error_text(const Json& resource, absl::Time now) {
  const auto error = resource.find("error_state");
  if (error == resource.end()) return "-";
  const std::string version = text_of(*error, "version_info");
  return absl::StrCat(version.empty() ? "" : absl::StrCat("version ", version, ", "),
                      age(text_of(*error, "last_update_attempt"), now),
                      " ago: ",
                      text_of(*error, "details"));
}

Row row_of(const Json& resource, absl::Time now) {
  return {short_type(text_of(resource, "type_url")),
          text_of(resource, "name"),
          text_of(resource, "client_status"),
          or_dash(text_of(resource, "version_info")),
          age(text_of(resource, "last_updated"), now),
          or_dash(text_of(resource, "xds_server")),
          error_text(resource, now)};
}

std::string server_line(const Json& server) {
  const auto connected = server.find("connected");
  const bool is_connected = connected != server.end() && *connected == true;
  const std::string error = text_of(server, "error");
  return absl::StrCat("server ",
                      text_of(server, "server_uri"),
                      is_connected ? "  connected" : "  not connected",
                      error.empty() ? "" : ": ",
                      error,
                      "\n");
}

std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      absl::StrAppend(&line, row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

}  // namespace

std::string dump_table(const Json& dump, absl::Time now) {
  std::string out;
  if (const auto node = dump.find("node"); node != dump.end())
    absl::StrAppend(&out, "node ", text_of(*node, "id"), "\n");
  for (const Json& server : dump.value("xds_servers", Json::array()))
    out += server_line(server);
  std::vector<Row> rows{{"TYPE", "NAME", "STATE", "VERSION", "AGE", "SERVER", "ERROR"}};
  for (const Json& resource : dump.value("generic_xds_configs", Json::array()))
    rows.push_back(row_of(resource, now));
  return out + "\n" + aligned(rows);
}

}  // namespace signalbox::tools
