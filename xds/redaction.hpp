// SPDX-License-Identifier: Apache-2.0
//
// redaction — takes out of JSON what may be a secret, before people see it.
//
//   resource ─▶ JSON ─▶ [redact] ─▶ dump
//
// By name, at any depth: also what an extension's Struct holds, of which no schema is known, is
// looked at. Spelling does not matter: private_key, privateKey and Private-Key are one name.
//
// Source: the fields that the xDS API marks as sensitive (udpa.annotations.sensitive).

#pragma once

#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

namespace signalbox::xds {

inline constexpr absl::string_view kRedacted = "[redacted]";

/// Replaces, with kRedacted, the value of every member that is called as a secret is, and what a
/// header that carries credentials is matched with.
void redact(nlohmann::ordered_json& value);

}  // namespace signalbox::xds
