// SPDX-License-Identifier: Apache-2.0
#include "xds/redaction.hpp"

#include <array>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace signalbox::xds {
namespace {

using Json = nlohmann::ordered_json;

// Without `_`, `-` and capitals.
constexpr std::array<absl::string_view, 7> kSecretEndings = {
    "password", "passphrase", "secret", "token", "privatekey", "apikey", "credentials"};
constexpr std::array<absl::string_view, 3> kSecretNames = {
    "authorization", "inlinebytes", "inlinestring"};
constexpr std::array<absl::string_view, 4> kSecretHeaders = {
    "authorization", "cookie", "proxy-authorization", "set-cookie"};

std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') out += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return out;
}

bool is_secret(const std::string& name) {
  const std::string word = plain(name);
  const auto ends_so = [&](absl::string_view ending) { return absl::EndsWith(word, ending); };
  return absl::c_linear_search(kSecretNames, word) || absl::c_any_of(kSecretEndings, ends_so);
}

// A header matcher: {"name": "authorization", "exact_match": "Bearer …"}.
bool names_secret_header(const Json& object) {
  const auto name = object.find("name");
  return name != object.end() && name->is_string() &&
         absl::c_linear_search(kSecretHeaders, absl::AsciiStrToLower(name->get<std::string>()));
}

bool is_match(const std::string& member) {
  return absl::EndsWith(member, "_match") && member != "present_match" && member != "invert_match";
}

// That something is there, or is not, may be seen.
void take_out(Json& value) {
  if (!value.empty() && !value.is_boolean()) value = std::string(kRedacted);
}

}  // namespace

void redact(Json& value) {
  if (value.is_object()) {
    const bool is_secret_header = names_secret_header(value);
    for (auto& [key, member] : value.items()) {
      if (is_secret(key) || (is_secret_header && is_match(key)))
        take_out(member);
      else
        redact(member);
    }
  } else if (value.is_array()) {
    for (Json& element : value)
      redact(element);
  }
}

}  // namespace signalbox::xds
