// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include <nlohmann/json.hpp>

#include "tools/admin_client.hpp"
#include "tools/commands.hpp"
#include "tools/dump_table.hpp"

namespace signalbox::tools {
namespace {

std::string page_of(const DumpOptions& options) {
  std::vector<std::string> query;
  if (!options.type.empty()) query.push_back(absl::StrCat("type=", query_value(options.type)));
  if (!options.name.empty()) query.push_back(absl::StrCat("name=", query_value(options.name)));
  return absl::StrCat("/config_dump", query.empty() ? "" : "?", absl::StrJoin(query, "&"));
}

// True if the question could not be asked: a wrong address or question, or no permission.
}  // namespace

int run_dump(const DumpOptions& options) {
  const auto address = channel::parse_admin_address(options.admin);
  if (!address.ok()) return fail_to_ask("dump", address.status());
  const auto patience = std::chrono::round<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.timeout_seconds));
  const auto body = admin_get(*address, page_of(options), patience);
  if (!body.ok()) return fail_to_ask("dump", body.status());
  const auto dump = nlohmann::json::parse(*body, nullptr, /*allow_exceptions=*/false);
  if (!dump.is_object() || !dump.contains("generic_xds_configs"))
    return fail_to_ask("dump",
                       absl::UnavailableError(absl::StrCat(
                           channel::to_string(*address), ": what listens there is no signalbox")));

  std::cout << (options.json ? *body : dump_table(dump, absl::Now()));
  if (options.name.empty() || !dump["generic_xds_configs"].empty()) return kExitOk;
  say("dump",
      absl::StrCat("no ",
                   absl::AsciiStrToUpper(options.type),
                   options.type.empty() ? "" : " ",
                   "resource '",
                   options.name,
                   "' is in use"));
  return kExitFailed;
}

}  // namespace signalbox::tools
