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

// Endings of the names of secrets, in the form that plain() returns: lower case, without `_` and
// `-`.
constexpr std::array kSecretEndings = std::to_array<absl::string_view>({
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "credentials",
    "accesskey",
    "apikey",
    "apikeys",
    "encryptionkey",
    "hmackey",
    "privatekey",
    "privatekeys",
    "secretkey",
    "signingkey",
    "authorization",
});
// Whole names of secrets. `tokens` is no ending, because max_tokens is a number.
constexpr std::array kSecretNames =
    std::to_array<absl::string_view>({"inlinebytes", "inlinestring", "tokens"});
// Names of secret headers that kSecretEndings does not match.
constexpr std::array kSecretHeaders = std::to_array<absl::string_view>({"cookie", "setcookie"});
// Members that hold the name of a header or of another name-value pair, in the form that plain()
// returns.
constexpr std::array kNamesOfNames =
    std::to_array<absl::string_view>({"name", "key", "headername"});

std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') out += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return out;
}

bool is_secret(const std::string& name) {
  const std::string spelled = plain(name);
  const auto ends_so = [&](absl::string_view ending) { return absl::EndsWith(spelled, ending); };
  return absl::c_linear_search(kSecretNames, spelled) || absl::c_any_of(kSecretEndings, ends_so);
}

// Whether the object describes a secret header by its name: {"name": "authorization",
// "exact_match": "Bearer …"}.
bool names_secret_header(const Json& object) {
  return absl::c_any_of(object.items(), [](const auto& member) {
    const Json& name = member.value();
    if (!name.is_string() || !absl::c_linear_search(kNamesOfNames, plain(member.key())))
      return false;
    const auto text = name.template get<std::string>();
    return is_secret(text) || absl::c_linear_search(kSecretHeaders, plain(text));
  });
}

// Whether a member of a header's object holds the header's value: a match pattern, a rewrite or the
// value itself. A member `match` alone is that of a route with a name, and shown.
bool tells_header(const std::string& member) {
  const std::string spelled = plain(member);
  return (absl::EndsWith(spelled, "match") && spelled != "match") || spelled == "regexrewrite" ||
         spelled == "value" || spelled == "rawvalue";
}

// Replaces a secret. Booleans, null, and empty lists and objects are kept, because they show only
// whether a secret exists.
void take_out(Json& value) {
  if (!value.empty() && !value.is_boolean()) value = std::string(kRedacted);
}

}  // namespace

void redact(Json& value) {
  if (value.is_object()) {
    const bool is_secret_header = names_secret_header(value);
    for (auto& [key, member] : value.items()) {
      if (is_secret(key) || (is_secret_header && tells_header(key)))
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
