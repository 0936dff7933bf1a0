// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/stateful_session.hpp"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "signalbox/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb.h"
#include "signalbox/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb.h"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::extensions::filters::http::stateful_session::v3::StatefulSession;
using envoy::extensions::filters::http::stateful_session::v3::StatefulSessionPerRoute;
using envoy::extensions::http::stateful_session::cookie::v3::CookieBasedSessionState;
using envoy::type::http::v3::Cookie;

// RFC 2616's token: printable ASCII without separators.
bool is_token_character(char c) {
  constexpr absl::string_view kSeparators = "()<>@,;:\\\"/[]?={} \t";
  return absl::ascii_isgraph(static_cast<unsigned char>(c)) &&
         kSeparators.find(c) == absl::string_view::npos;
}

// RFC 6265's path-value: ASCII without control characters and ';'. User agents differ in how they
// treat characters beyond ASCII.
bool is_path_character(char c) {
  return absl::ascii_isprint(static_cast<unsigned char>(c)) && c != ';';
}

SessionCookie parse_cookie(const Cookie& proto, const Field& field) {
  const Field name = field.at("name");
  require_name(proto.name(), name);
  if (!std::ranges::all_of(proto.name(), is_token_character))
    name.add(absl::StrCat("must be a token as of RFC 6265, found ", in_quotes(proto.name())));
  const Field path = field.at("path");
  require_name_length(proto.path(), path);
  if (!std::ranges::all_of(proto.path(), is_path_character)) {
    path.add(
        absl::StrCat("must be of printable ASCII without ';', found ", in_quotes(proto.path())));
  }
  SessionCookie cookie{proto.name(), proto.path(), {}};
  if (proto.has_ttl()) cookie.ttl = parse_duration(proto.ttl(), field.at("ttl"));
  return cookie;
}

std::optional<SessionCookie> parse_session_state(const StatefulSession& proto, const Field& field) {
  if (!proto.has_session_state()) return std::nullopt;
  const Field config = field.at("session_state.typed_config");
  if (!proto.session_state().has_typed_config()) {
    config.add("must be set, found none");
    return std::nullopt;
  }
  const auto extension = read_extension(proto.session_state().typed_config(), config);
  if (!extension.has_value()) return std::nullopt;
  if (extension->type != api_name(type_url_of<CookieBasedSessionState>())) {
    config.at("type_url")
        .add(absl::StrCat("must be ",
                          type_url_of<CookieBasedSessionState>(),
                          ", found ",
                          in_quotes(extension->type)));
    return std::nullopt;
  }
  const Field value = config.at("value");
  CookieBasedSessionState state;
  if (!decode(*extension, state, value)) return std::nullopt;
  const Field cookie = value.at("cookie");
  if (!state.has_cookie()) {
    cookie.add("must be set, found none");
    return std::nullopt;
  }
  return parse_cookie(state.cookie(), cookie);
}

StatefulSessionFilter to_filter(const StatefulSession& proto, const Field& field) {
  return {parse_session_state(proto, field), proto.strict()};
}

}  // namespace

std::optional<HttpFilterConfig> parse_stateful_session(const Extension& extension,
                                                       const Field& field) {
  StatefulSession proto;
  if (!decode(extension, proto, field)) return std::nullopt;
  return to_filter(proto, field);
}

std::optional<HttpFilterConfig> parse_stateful_session_override(const Extension& extension,
                                                                const Field& field) {
  StatefulSessionPerRoute proto;
  if (!decode(extension, proto, field)) return std::nullopt;
  // `disabled` is in the same oneof, so a disabled override has no session_state.
  return to_filter(proto.stateful_session(), field.at("stateful_session"));
}

}  // namespace signalbox::xds
