// SPDX-License-Identifier: Apache-2.0
//
// Any text as a bootstrap (gRFC A27, A47).
//
//   B1  An error is INVALID_ARGUMENT, begins with the source's name, and is UTF-8.
//   B2  An accepted bootstrap can be used: each server has a URI, and a certificate only with its
//       key. It has servers or a resource file, not both. If it has servers, each authority has
//       servers. Its node can be sent.
//   B3  A second parse of the text gives an equal bootstrap.
//   B4  listener_resource_name() gives a UTF-8 name for a target, or INVALID_ARGUMENT.

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <google/protobuf/stubs/logging.h>

#include "tests/fuzz/fuzz_target.hpp"
#include "xds/bootstrap.hpp"
#include "xds/node.hpp"
#include "xds/utf8.hpp"

namespace signalbox::fuzz {
namespace {

using xds::Bootstrap;
using xds::ServerConfig;

const ::google::protobuf::LogSilencer silence;

void check_servers(const std::vector<ServerConfig>& servers) {
  for (const ServerConfig& server : servers) {
    SIGNALBOX_FUZZ_EXPECT(!server.server_uri.empty(), "B2: a URI", "none");
    const auto* tls = std::get_if<xds::TlsCredentials>(&server.channel_creds);
    SIGNALBOX_FUZZ_EXPECT(tls == nullptr || tls->files.certificate_file.empty() ==
                                                tls->files.private_key_file.empty(),
                          "B2: a certificate with its key",
                          server.server_uri);
  }
}

void check_targets(const Bootstrap& bootstrap, absl::string_view text) {
  std::vector<std::string> targets = {
      "xds:///orders", "xds:///a%2fb?c", absl::StrCat("xds:///", text)};
  for (const auto& [authority, config] : bootstrap.authorities)
    targets.push_back(absl::StrCat("xds://", authority, "/orders"));
  for (const std::string& target : targets) {
    const auto name = xds::listener_resource_name(bootstrap, target);
    SIGNALBOX_FUZZ_EXPECT(
        name.ok() || absl::IsInvalidArgument(name.status()), "B4", name.status().ToString());
    SIGNALBOX_FUZZ_EXPECT(!name.ok() || xds::is_utf8(*name), "B4: a name is UTF-8", target);
  }
}

void check_bootstrap(absl::string_view text) {
  const auto bootstrap = xds::parse_bootstrap(text, "b.json");
  if (!bootstrap.ok()) {
    const std::string error(bootstrap.status().message());
    SIGNALBOX_FUZZ_EXPECT(absl::IsInvalidArgument(bootstrap.status()) &&
                              absl::StartsWith(error, "b.json: ") && xds::is_utf8(error),
                          "B1",
                          bootstrap.status().ToString());
    return;
  }
  SIGNALBOX_FUZZ_EXPECT(bootstrap->servers.empty() == bootstrap->resources_file.has_value(),
                        "B2: servers or a file",
                        std::to_string(bootstrap->servers.size()));
  check_servers(bootstrap->servers);
  for (const auto& [name, authority] : bootstrap->authorities) {
    check_servers(authority.servers);
    SIGNALBOX_FUZZ_EXPECT(authority.servers.empty() <= bootstrap->servers.empty(),
                          "B2: an authority's servers",
                          name);
  }
  const auto node = xds::make_node(bootstrap->node);
  SIGNALBOX_FUZZ_EXPECT(node.ok(), "B2: the node", node.status().ToString());
  envoy::config::core::v3::Node read;
  SIGNALBOX_FUZZ_EXPECT(
      read.ParseFromString(node->SerializeAsString()), "B2: the node can be read", node->id());

  const auto again = xds::parse_bootstrap(text, "b.json");
  SIGNALBOX_FUZZ_EXPECT(again.ok() && *again == *bootstrap, "B3", "another one");
  check_targets(*bootstrap, text.substr(0, 64));
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  signalbox::fuzz::check_bootstrap(signalbox::fuzz::text_of(data, size));
  return 0;
}
