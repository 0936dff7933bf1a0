// SPDX-License-Identifier: Apache-2.0
//
// Any text as a resource file, in YAML and in JSON.
//
//   F1  An error is INVALID_ARGUMENT, or RESOURCE_EXHAUSTED where it names a limit. It begins with
//       the file's name, and is UTF-8.
//   F2  Each resource of an accepted file has one of the four types. parse_resource() reads its
//       name in its bytes. No two resources have the same type and name.
//   F3  A second parse of the text gives equal resources.

#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include <google/protobuf/stubs/logging.h>

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/parse_options.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"

namespace signalbox::fuzz {
namespace {

const ::google::protobuf::LogSilencer silence;

void check_resource(const xds::ResourceBytes& resource) {
  const auto type = xds::resource_type_of(resource.type_url);
  SIGNALBOX_FUZZ_EXPECT(type.has_value(), "F2: the type", resource.type_url);
  const auto read =
      xds::parse_resource(*type, resource.type_url, resource.bytes, xds::all_parse_options());
  SIGNALBOX_FUZZ_EXPECT(read.name == resource.name, "F2: the name", read.name);
}

void check_text(absl::string_view text, xds::Format format) {
  const auto resources = xds::parse_resources_text(text, format, "f.yaml");
  if (!resources.ok()) {
    const std::string error(resources.status().message());
    const bool names_limit = absl::StrContains(error, "(limit ");
    SIGNALBOX_FUZZ_EXPECT((absl::IsInvalidArgument(resources.status()) ||
                           (absl::IsResourceExhausted(resources.status()) && names_limit)) &&
                              absl::StartsWith(error, "f.yaml: ") && xds::is_utf8(error),
                          "F1",
                          error);
    return;
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const xds::ResourceBytes& resource : *resources) {
    check_resource(resource);
    SIGNALBOX_FUZZ_EXPECT(
        seen.emplace(resource.type_url, resource.name).second, "F2: once", resource.name);
  }
  const auto again = xds::parse_resources_text(text, format, "f.yaml");
  SIGNALBOX_FUZZ_EXPECT(again.ok() && *again == *resources, "F3", "other ones");
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = signalbox::fuzz::text_of(data, size);
  for (const auto format : {signalbox::xds::Format::kYaml, signalbox::xds::Format::kJson})
    signalbox::fuzz::check_text(text, format);
  return 0;
}
