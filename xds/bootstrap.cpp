// SPDX-License-Identifier: Apache-2.0
#include "xds/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <google/protobuf/util/time_util.h>
#include <nlohmann/json.hpp>

#include "messages/overloaded.hpp"
#include "xds/client/resource_text.hpp"
#include "xds/document.hpp"
#include "xds/json_reader.hpp"
#include "xds/node.hpp"
#include "xds/percent_encoding.hpp"

namespace signalbox::xds {
namespace {

using Presence = JsonReader::Presence;

constexpr const char* kPathVariable = "GRPC_XDS_BOOTSTRAP";
constexpr const char* kTextVariable = "GRPC_XDS_BOOTSTRAP_CONFIG";

// JSON's form of google.protobuf.Duration: "600s", "1.5s".
Duration read_duration(const JsonReader& parent, const std::string& key, Duration otherwise) {
  const std::string text = parent.string(key, Presence::kOptional);
  if (text.empty()) return otherwise;
  ::google::protobuf::Duration duration;
  const bool parsed = ::google::protobuf::util::TimeUtil::FromString(text, &duration);
  if (!parsed || duration.seconds() < 0 || duration.nanos() < 0 ||
      (duration.seconds() == 0 && duration.nanos() == 0)) {
    parent.error(key,
                 absl::StrCat("expected a duration above zero (\"600s\"), found \"", text, "\""));
    return otherwise;
  }
  // Duration overflows after some 292 years. A day is long enough for a refresh interval.
  const auto seconds = std::min<std::int64_t>(duration.seconds(), std::int64_t{24} * 60 * 60);
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(duration.nanos());
}

CertificateFiles read_certificate_files(const JsonReader& config) {
  CertificateFiles files;
  files.ca_certificate_file = config.string("ca_certificate_file", Presence::kOptional);
  files.certificate_file = config.string("certificate_file", Presence::kOptional);
  files.private_key_file = config.string("private_key_file", Presence::kOptional);
  files.refresh_interval = read_duration(config, "refresh_interval", files.refresh_interval);
  if (files.certificate_file.empty() != files.private_key_file.empty()) {
    const bool has_key = files.certificate_file.empty();
    config.error(has_key ? "certificate_file" : "private_key_file",
                 absl::StrCat("expected it together with ",
                              has_key ? "private_key_file" : "certificate_file",
                              ", found only that"));
  }
  return files;
}

// Reads one entry of channel_creds; nullopt: signalbox does not support its type.
std::optional<ChannelCredentials> read_usable(const JsonReader& credentials,
                                              absl::string_view type) {
  if (type == "insecure") return InsecureCredentials{};
  if (type != "tls") return std::nullopt;
  TlsCredentials tls;
  credentials.object("config",
                     [&](const JsonReader& config) { tls.files = read_certificate_files(config); });
  return tls;
}

// Returns the first entry of a usable type; of later entries only the type is validated (A27). An
// error is added if there is no such entry.
ChannelCredentials read_credentials(const JsonReader& server) {
  std::optional<ChannelCredentials> chosen;
  std::vector<std::string> written;
  server.each_object("channel_creds", Presence::kRequired, [&](const JsonReader& credentials) {
    const std::string type = credentials.string("type", Presence::kRequired);
    if (type.empty()) return;
    written.push_back(absl::StrCat("\"", type, "\""));
    if (!chosen) chosen = read_usable(credentials, type);
  });
  if (!chosen && !written.empty()) {
    server.error("channel_creds",
                 absl::StrCat("expected a usable type (\"insecure\", \"tls\"), found ",
                              absl::StrJoin(written, ", ")));
  }
  return chosen.value_or(InsecureCredentials{});
}

// Providers of other plugins are left out. A resource that refers to one then gets the error that
// the provider does not exist (A29).
std::map<std::string, CertificateFiles> read_certificate_providers(const JsonReader& root) {
  std::map<std::string, CertificateFiles> providers;
  root.object("certificate_providers", [&](const JsonReader& instances) {
    instances.each_member([&](const std::string& name, const JsonReader& provider) {
      if (provider.string("plugin_name", Presence::kRequired) != "file_watcher") return;
      CertificateFiles files;
      provider.object("config",
                      [&](const JsonReader& config) { files = read_certificate_files(config); });
      if (files.ca_certificate_file.empty() && files.certificate_file.empty()) {
        provider.error("config",
                       "expected a ca_certificate_file or a certificate_file, found neither");
      }
      providers.emplace(name, std::move(files));
    });
  });
  return providers;
}

std::vector<ServerConfig> read_servers(const JsonReader& parent, Presence presence) {
  std::vector<ServerConfig> servers;
  parent.each_object("xds_servers", presence, [&](const JsonReader& server) {
    servers.push_back({.server_uri = server.string("server_uri", Presence::kRequired),
                       .channel_creds = read_credentials(server),
                       .server_features = server.strings("server_features")});
  });
  return servers;
}

// A47: the template must start with "xdstp://<authority>/". An authority without a template gets a
// default one.
AuthorityConfig read_authority(const std::string& name, const JsonReader& authority) {
  constexpr const char* kTemplate = "client_listener_resource_name_template";
  AuthorityConfig config;
  config.servers = read_servers(authority, Presence::kOptional);
  config.client_listener_resource_name_template = authority.string(kTemplate, Presence::kOptional);
  std::string& name_template = config.client_listener_resource_name_template;
  const std::string start = absl::StrCat("xdstp://", name, "/");
  if (name_template.empty()) {
    name_template = absl::StrCat(
        "xdstp://", percent_encode_authority(name), "/envoy.config.listener.v3.Listener/%s");
  } else if (!absl::StartsWith(name_template, start)) {
    authority.error(
        kTemplate,
        absl::StrCat("expected it to start with \"", start, "\", found \"", name_template, "\""));
  }
  return config;
}

NodeConfig read_node(const JsonReader& node) {
  NodeConfig config;
  config.id = node.string("id", Presence::kOptional);
  config.cluster = node.string("cluster", Presence::kOptional);
  node.object("locality", [&](const JsonReader& locality) {
    config.locality = NodeLocality{.region = locality.string("region", Presence::kOptional),
                                   .zone = locality.string("zone", Presence::kOptional),
                                   .sub_zone = locality.string("sub_zone", Presence::kOptional)};
  });
  node.object("metadata",
              [&](const JsonReader& metadata) { config.metadata_json = metadata.value().dump(); });
  return config;
}

// Returns `; unknown key "a", "b"`, for the error that the bootstrap has neither xds_servers nor
// signalbox.resources: such a key is probably misspelt. Unknown keys alone are no error (A27).
std::string unknown_keys(const nlohmann::json& root) {
  constexpr std::array kKnown{"signalbox.resources",
                              "xds_servers",
                              "authorities",
                              "certificate_providers",
                              "node",
                              "client_default_listener_resource_name_template",
                              "server_listener_resource_name_template"};
  std::vector<std::string> unknown;
  for (const auto& [key, value] : root.items()) {
    if (!absl::c_linear_search(kKnown, key)) unknown.push_back(key);
  }
  return unknown.empty() ? "" : absl::StrCat("; unknown key ", listed(unknown));
}

Bootstrap read_bootstrap(const JsonReader& root) {
  Bootstrap bootstrap;
  if (root.has("signalbox.resources")) {
    bootstrap.resources_file = root.string("signalbox.resources", Presence::kRequired);
  }
  if (!bootstrap.resources_file && !root.has("xds_servers")) {
    root.error("needs xds_servers or signalbox.resources",
               absl::StrCat("found neither", unknown_keys(root.value())));
  }
  const Presence servers = root.has("xds_servers") && !bootstrap.resources_file
                               ? Presence::kRequired
                               : Presence::kOptional;
  bootstrap.servers = read_servers(root, servers);
  if (bootstrap.resources_file && !bootstrap.servers.empty()) {
    root.error("signalbox.resources", "expected it or xds_servers, found both");
  }
  root.object("authorities", [&](const JsonReader& authorities) {
    authorities.each_member([&](const std::string& name, const JsonReader& authority) {
      AuthorityConfig config = read_authority(name, authority);
      if (config.servers.empty()) config.servers = bootstrap.servers;
      bootstrap.authorities.emplace(name, std::move(config));
    });
  });
  bootstrap.certificate_providers = read_certificate_providers(root);
  root.object("node", [&](const JsonReader& node) { bootstrap.node = read_node(node); });
  const std::string name_template =
      root.string("client_default_listener_resource_name_template", Presence::kOptional);
  if (!name_template.empty()) {
    bootstrap.client_default_listener_resource_name_template = name_template;
  }
  return bootstrap;
}

// Reads and parses the bootstrap in a file. Error texts call the file `name`.
absl::StatusOr<Bootstrap> load_file(const std::filesystem::path& path, absl::string_view name) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const bool is_forbidden = !file.is_open() && (errno == EACCES || errno == EPERM);
  std::error_code ignored;
  if (!file.is_open() || std::filesystem::is_directory(path, ignored)) {
    const std::string text = absl::StrCat(name, ": the file cannot be read");
    return is_forbidden ? absl::PermissionDeniedError(text) : absl::NotFoundError(text);
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  auto bootstrap = parse_bootstrap(text, name);
  if (bootstrap.ok() && bootstrap->resources_file) {
    // operator/ replaces the folder if the right-hand path is absolute.
    bootstrap->resources_file = (path.parent_path() / *bootstrap->resources_file).string();
  }
  return bootstrap;
}

absl::StatusOr<Bootstrap> load_environment(const BootstrapEnvironment& environment) {
  const auto get = [&](const char* variable) -> std::string {
    const char* value = environment.get(variable);
    return value == nullptr ? "" : value;
  };
  if (const std::string path = get(kPathVariable); !path.empty()) {
    return load_file(path, absl::StrCat(kPathVariable, " (", path, ")"));
  }
  if (const std::string text = get(kTextVariable); !text.empty()) {
    return parse_bootstrap(text, kTextVariable);
  }
  return absl::NotFoundError(
      absl::StrCat("no bootstrap: neither ", kPathVariable, " nor ", kTextVariable, " is set"));
}

}  // namespace

bool ServerConfig::has_feature(absl::string_view feature) const {
  return absl::c_linear_search(server_features, feature);
}

absl::StatusOr<Bootstrap> parse_bootstrap(absl::string_view json_text,
                                          absl::string_view source_name) {
  const auto document = parse_json_document(json_text);
  if (!document.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source_name, ": ", document.status().message()));
  }
  if (!document->root.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source_name, ": expected a JSON object, found ", document->root.type_name()));
  }
  std::vector<std::string> errors;
  Bootstrap bootstrap = read_bootstrap(JsonReader(document->root, "", errors));
  const auto node = make_node(bootstrap.node);
  if (!node.ok()) errors.push_back(std::string(node.status().message()));
  if (errors.empty()) return bootstrap;
  return absl::InvalidArgumentError(
      absl::StrJoin(errors, "; ", [&](std::string* out, const std::string& error) {
        absl::StrAppend(out, source_name, ": ", error);
      }));
}

std::vector<ServerConfig> distinct_servers(const Bootstrap& bootstrap) {
  std::vector<ServerConfig> distinct;
  const auto add = [&](const std::vector<ServerConfig>& servers) {
    for (const ServerConfig& server : servers) {
      if (std::ranges::find(distinct, server) == distinct.end()) distinct.push_back(server);
    }
  };
  add(bootstrap.servers);
  for (const auto& [name, authority] : bootstrap.authorities)
    add(authority.servers);
  return distinct;
}

absl::StatusOr<Bootstrap> load_bootstrap(const BootstrapSource& source) {
  return std::visit(
      Overloaded{
          [](const BootstrapFile& file) { return load_file(file.path, file.path); },
          [](const BootstrapText& text) { return parse_bootstrap(text.json, "inline bootstrap"); },
          [](const BootstrapEnvironment& environment) { return load_environment(environment); },
      },
      source);
}

}  // namespace signalbox::xds
