// SPDX-License-Identifier: Apache-2.0
//
// redaction — replaces possible secrets in JSON, before the JSON is shown.
//
//   resource ─▶ JSON ─▶ [redact] ─▶ dump
//
// A secret is recognised by the name of its member, at any depth. Names are used because the Struct
// of an extension has no known schema. Case, '_' and '-' do not matter: private_key, privateKey and
// Private-Key are one name. The value of a header is recognised by the header's name:
// {"name": "authorization", "exact_match": "Bearer …"}.
//
// Source: the fields that the xDS API marks as sensitive (udpa.annotations.sensitive), and other
// usual names of secrets.

#pragma once

#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

namespace signalbox::xds {

inline constexpr absl::string_view kRedacted = "[redacted]";

/// Replaces the value of every member with the name of a secret (private key, token, password,
/// inline data and the like) by kRedacted; booleans, null, and empty lists and objects are kept.
/// For a header that carries credentials, replaces its value and the patterns that it is matched
/// with.
void redact(nlohmann::ordered_json& value);

}  // namespace signalbox::xds
