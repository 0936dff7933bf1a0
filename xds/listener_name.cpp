// SPDX-License-Identifier: Apache-2.0
//
// Converts a target to the name of a listener (gRFC A47).
//
//   xds:///name            by the bootstrap's default template
//   xds://authority/name   by the authority's template, which is always an xdstp: name
//
// The target's name is percent-encoded if the template is an xdstp: name.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "xds/bootstrap.hpp"
#include "xds/percent_encoding.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

struct Target {
  std::string authority;
  std::string name;
};

absl::Status bad_target(absl::string_view target, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("target \"", target, "\": ", why));
}

// The parts of a target, percent-decoded. Queries and fragments are ignored, as in gRPC.
absl::StatusOr<Target> parse_target(absl::string_view target) {
  absl::string_view rest = target;
  if (!absl::ConsumePrefix(&rest, "xds:")) {
    return bad_target(target, "expected xds:///name or xds://authority/name");
  }
  rest = rest.substr(0, rest.find_first_of("?#"));
  absl::string_view authority;
  if (absl::ConsumePrefix(&rest, "//")) {
    authority = rest.substr(0, rest.find('/'));
    rest.remove_prefix(authority.size());
  }
  absl::ConsumePrefix(&rest, "/");
  auto decoded_authority = percent_decode(authority);
  auto decoded_name = percent_decode(rest);
  if (!decoded_authority || !decoded_name) {
    return bad_target(target, "a % is not followed by two hexadecimal digits");
  }
  if (decoded_name->empty()) return bad_target(target, "the name is empty");
  // A request with such a name would be invalid and end the stream, for all other watchers too.
  if (!is_utf8(*decoded_name)) {
    return bad_target(target, "the name is not UTF-8");
  }
  return Target{*decoded_authority, *decoded_name};
}

}  // namespace

std::string data_plane_authority(absl::string_view target) {
  const auto parsed = parse_target(target);
  return parsed.ok() ? percent_encode_authority(parsed->name) : "";
}

absl::StatusOr<std::string> listener_resource_name(const Bootstrap& bootstrap,
                                                   absl::string_view target) {
  auto parsed = parse_target(target);
  if (!parsed.ok()) return parsed.status();
  std::string name_template = bootstrap.client_default_listener_resource_name_template;
  if (!parsed->authority.empty()) {
    const auto authority = bootstrap.authorities.find(parsed->authority);
    if (authority == bootstrap.authorities.end()) {
      return bad_target(target,
                        absl::StrCat("the bootstrap has no authority \"", parsed->authority, "\""));
    }
    name_template = authority->second.client_listener_resource_name_template;
  }
  const bool new_style = absl::StartsWith(name_template, "xdstp:");
  return absl::StrReplaceAll(
      name_template, {{"%s", new_style ? percent_encode_path(parsed->name) : parsed->name}});
}

}  // namespace signalbox::xds
