// SPDX-License-Identifier: Apache-2.0
//
// What many resources have in common: durations, fractions, config sources, names, patterns.
//
//   xds/parse/<resource> ─▶ [well_known] ─▶ value, or an error at the field
//
// Each takes the field that it reads, so that the error names it, and returns a value that may be
// used only if no error was added.
//
// Source: gRFC A75 (Duration, "as with all Duration fields"), A27 (ConfigSource), A28 (fractions),
// A63 (string matchers).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wrappers.pb.h>

#include "messages/ids.hpp"
#include "messages/text_matcher.hpp"
#include "messages/xds_events.hpp"
#include "signalbox/envoy/config/core/v3/config_source.pb.h"
#include "signalbox/envoy/type/matcher/v3/regex.pb.h"
#include "signalbox/envoy/type/matcher/v3/string.pb.h"
#include "signalbox/envoy/type/v3/percent.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Whether `bytes` are a serialised `message`, and then that message. Nothing is logged: protobuf
/// is silent meanwhile (decision 31).
[[nodiscard]] bool decode(absl::string_view bytes, ::google::protobuf::Message& message);

/// As above, for what stands inside a resource: a failure is an error at `field`, and so is a
/// message beyond max_decoded_memory.
[[nodiscard]] bool decode(absl::string_view bytes,
                          ::google::protobuf::Message& message,
                          const Field& field);

/// Whether the decoded message may take more memory than this: only then is there anything to
/// weigh().
bool may_outweigh(absl::string_view bytes, std::size_t most);

/// "must be <what>, found <size> bytes that are not", and the string that is not UTF-8 if that is
/// the reason. `bytes` are of no message of the type.
std::string why_undecodable(absl::string_view what,
                            absl::string_view bytes,
                            const ::google::protobuf::Descriptor& type);

/// A resource whose bytes are not `what`, refused. `partial` is what decode() left, and `name` the
/// name in it: the resource's, if it could be read.
ReceivedResource undecodable(absl::string_view type,
                             absl::string_view what,
                             absl::string_view bytes,
                             const ::google::protobuf::Message& partial,
                             const std::string& name);

/// Seconds in [0, 315576000000] and nanos in [0, 999999999] (A75-19, A75-20). Longer than a
/// century is a century: our nanoseconds end at three, and instants must not overflow.
Duration parse_duration(const ::google::protobuf::Duration& proto, const Field& field);

/// Parts of a million, at most all of them.
std::uint32_t parse_fraction(const envoy::type::v3::FractionalPercent& proto, const Field& field);

/// The resource must come from where this one came from: ADS or self (A27).
void require_ads(const envoy::config::core::v3::ConfigSource& source, const Field& field);

/// An enum value for an error message: its name, or its number where it has no name (enums are
/// open, so that newer servers may send what we do not know).
template <typename Enum>
std::string enum_text(Enum value, const std::string& name) {
  return name.empty() ? std::to_string(static_cast<int>(value)) : name;
}

/// Not longer than max_name_length.
void require_name_length(absl::string_view name, const Field& field);

/// Not empty, and not longer than max_name_length.
void require_name(absl::string_view name, const Field& field);

/// At most 100.
std::uint32_t parse_percent(const ::google::protobuf::UInt32Value& proto, const Field& field);

/// The budget of the field's response; `alone` where there is none.
RegexBudget& budget_of(const Field& field, RegexBudget& alone);

/// A pattern that RE2 compiles within our limits, and within its response's budget.
TextMatcher parse_regex(const envoy::type::matcher::v3::RegexMatcher& proto,
                        const Field& field,
                        RegexBudget& budget);
TextMatcher parse_regex(const envoy::type::matcher::v3::RegexMatcher& proto, const Field& field);

/// A63: ignore_case has no effect on a regex.
TextMatcher parse_text_matcher(const envoy::type::matcher::v3::StringMatcher& proto,
                               const Field& field);

}  // namespace signalbox::xds
