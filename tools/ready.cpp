// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "tools/admin_client.hpp"
#include "tools/commands.hpp"

namespace signalbox::tools {
namespace {

constexpr int kNotReady = 503;

int fail(absl::string_view why, int status) {
  say("ready", why);
  return status;
}

// UNAVAILABLE: the process gives no answer in time, or none that can be read, so it is not ready.
// The other errors, such as that of an address where nothing listens, mean that the question could
// not be asked.
int fail(const absl::Status& status) {
  return fail(status.message(), absl::IsUnavailable(status) ? kExitFailed : kExitUsage);
}

}  // namespace

int run_ready(const ReadyOptions& options) {
  const auto address = channel::parse_admin_address(options.admin);
  if (!address.ok()) return fail(address.status());
  const auto patience = std::chrono::round<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.timeout_seconds));
  const std::string query =
      options.target.empty() ? "" : absl::StrCat("?target=", query_value(options.target));
  const auto answer = admin_ask(*address, absl::StrCat("/ready", query), patience);
  if (!answer.ok()) return fail(answer.status());
  const auto text = absl::StripTrailingAsciiWhitespace(answer->body);
  if (answer->code == 200) {
    std::cout << text << "\n";
    return kExitOk;
  }
  return fail(absl::StrCat(channel::to_string(*address), ": ", text),
              answer->code == kNotReady ? kExitFailed : kExitUsage);
}

}  // namespace signalbox::tools
