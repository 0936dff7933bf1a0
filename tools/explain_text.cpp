// SPDX-License-Identifier: Apache-2.0
#include "tools/explain_text.hpp"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

std::string printable(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  std::string shown;
  for (const char c : found->get<std::string>()) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_iscntrl(byte)) {
      absl::StrAppendFormat(&shown, "\\x%02x", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string step_text(std::size_t number, const Json& step) {
  std::string text = absl::StrFormat(
      "%2d. %s: %s\n", number, printable(step, "part"), printable(step, "decision"));
  const std::string reason = printable(step, "reason");
  const std::string source = printable(step, "source");
  if (reason.empty() && source.empty()) return text;
  absl::StrAppend(&text, "      ", reason, reason.empty() || source.empty() ? "" : "  ");
  if (!source.empty()) absl::StrAppend(&text, "[", source, "]");
  return text + "\n";
}

std::string end_text(const Json& explanation) {
  const std::string outcome = printable(explanation, "outcome");
  const std::string cluster = printable(explanation, "cluster");
  const std::string leaf = printable(explanation, "leaf");
  const std::string below = leaf.empty() ? "" : absl::StrCat("leaf ", leaf, " of ");
  const std::string where =
      cluster.empty() ? "" : absl::StrCat(", in ", below, "cluster ", cluster);
  if (outcome == "complete")
    return absl::StrCat("The call goes to ", printable(explanation, "address"), where, ".");
  if (outcome == "queue") return absl::StrCat("The call waits", where, ".");
  const Json status = explanation.value("status", Json::object());
  return absl::StrCat(
      outcome == "drop" ? "The call fails: " : "The call fails, unless it is wait_for_ready: ",
      printable(status, "code"),
      ": ",
      printable(status, "message"));
}

}  // namespace

std::string explain_text(const Json& explanation) {
  std::string text = absl::StrCat(
      printable(explanation, "target"), "  ", printable(explanation, "method"), "  --seed ");
  const auto seed = explanation.find("seed");
  absl::StrAppend(&text, seed == explanation.end() ? "" : seed->dump(), "\n\n");
  const auto steps = explanation.find("steps");
  if (steps != explanation.end() && steps->is_array()) {
    for (std::size_t i = 0; i < steps->size(); ++i)
      absl::StrAppend(&text, step_text(i + 1, (*steps)[i]));
  }
  const auto delay = explanation.find("delay_seconds");
  text += "\n";
  if (delay != explanation.end() && delay->is_number() && *delay > 0)
    absl::StrAppend(&text, "The call waits for ", delay->get<double>(), " s; then:\n");
  return absl::StrCat(text, end_text(explanation), "\n");
}

}  // namespace signalbox::tools
