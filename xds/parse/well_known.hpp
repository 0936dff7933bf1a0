// SPDX-License-Identifier: Apache-2.0
//
// Parsers of values that many resources share: durations, fractions, config sources, names,
// patterns.
//
//   xds/parse/<resource> ─▶ [well_known] ─▶ value, or an error at the field
//
// Each parser takes the Field of its value, so that errors name the field. The caller must use the
// returned value only if no error was added.
//
// Source: gRFC A75 (Duration, "as with all Duration fields"), A27 (ConfigSource), A28 (fractions),
// A63 (string matchers).

#pragma once

#include <chrono>
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

/// Decodes `bytes` into `message`; false if they are malformed. protobuf's logging is switched off
/// meanwhile (decision 31).
[[nodiscard]] bool decode(absl::string_view bytes, ::google::protobuf::Message& message);

/// Decodes a message inside a resource. False, with an error at `field`: the bytes are malformed,
/// or the message would take more than max_decoded_memory.
[[nodiscard]] bool decode(absl::string_view bytes,
                          ::google::protobuf::Message& message,
                          const Field& field);

/// Whether the decoded message could take more than `most` bytes. A cheap test before weigh().
bool may_outweigh(absl::string_view bytes, std::size_t most);

/// "must be <what>, found <size> bytes that are not", with the string that is not UTF-8 if there is
/// one. Precondition: decoding `bytes` as a message of the type has failed.
std::string why_undecodable(absl::string_view what,
                            absl::string_view bytes,
                            const ::google::protobuf::Descriptor& type);

/// Refuses a resource, because its bytes are not `what`. `partial` is a message of the expected
/// type; only its type is used. `name` is the resource's name, or empty if it could not be read.
ReceivedResource undecodable(absl::string_view type,
                             absl::string_view what,
                             absl::string_view bytes,
                             const ::google::protobuf::Message& partial,
                             const std::string& name);

/// Seconds in [0, 315576000000] and nanos in [0, 999999999] (A75-19, A75-20). Durations above a
/// century are lowered to it.
Duration parse_duration(const ::google::protobuf::Duration& proto, const Field& field);

/// A fraction in parts per million, at most a million.
std::uint32_t parse_fraction(const envoy::type::v3::FractionalPercent& proto, const Field& field);

/// Adds an error if the config source is neither ads nor self (A27). self: the resource's sender.
void require_ads(const envoy::config::core::v3::ConfigSource& source, const Field& field);

/// An enum value for an error message: its name, or its number if it has no name. Enums are open,
/// so newer servers may send unknown values.
template <typename Enum>
std::string enum_text(Enum value, const std::string& name) {
  return name.empty() ? std::to_string(static_cast<int>(value)) : name;
}

/// Adds an error if the name is longer than max_name_length.
void require_name_length(absl::string_view name, const Field& field);

/// Adds an error if the name is empty or longer than max_name_length.
void require_name(absl::string_view name, const Field& field);

/// A percentage of at most 100.
std::uint32_t parse_percent(const ::google::protobuf::UInt32Value& proto, const Field& field);

/// Returns the budget of the response; returns `alone` if ParseOptions::regexes is null.
RegexBudget& budget_of(const Field& field, RegexBudget& alone);

/// A pattern that RE2 compiles within the limits, and within the budget of its response.
TextMatcher parse_regex(const envoy::type::matcher::v3::RegexMatcher& proto,
                        const Field& field,
                        RegexBudget& budget);
TextMatcher parse_regex(const envoy::type::matcher::v3::RegexMatcher& proto, const Field& field);

/// A string matcher: exact, prefix, suffix, contains or safe_regex. ignore_case has no effect on a
/// regex (A63).
TextMatcher parse_text_matcher(const envoy::type::matcher::v3::StringMatcher& proto,
                               const Field& field);

}  // namespace signalbox::xds
