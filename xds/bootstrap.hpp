// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap: which control planes to ask, who we are, and how a target names its listener.
//
//   path | inline JSON | environment ──▶ [load_bootstrap] ──▶ Bootstrap ──▶ xds_client
//   "xds:///orders" and the Bootstrap ──▶ [listener_resource_name] ──▶ the first watch
//
// The format is gRPC's own, so that existing deployments work unchanged; one key is ours,
// `signalbox.resources`, which names a resource file (resource_file.hpp). Unknown keys are ignored,
// and so are types of channel credentials that we do not have, as long as one is usable, and
// plugins of certificate providers. Whatever is wrong is told at once; every error names the
// source, the field and what was found there. Files that it names are not opened here.
//
// gRFC A27 (bootstrap), A29 (certificate providers), A30 (server features), A47 (authorities), A65
// (tls).

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/ids.hpp"

namespace signalbox::xds {

/// Where certificates are: the config of `tls` (A65) and of the plugin file_watcher (A29).
struct CertificateFiles {
  std::string ca_certificate_file;  ///< Whom to trust; empty: the system's root certificates.
  std::string certificate_file;     ///< Who we are; empty: we do not say.
  std::string private_key_file;     ///< Its key: set if and only if that is.
  Duration refresh_interval = std::chrono::minutes(10);

  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
};

struct InsecureCredentials {
  friend bool operator==(const InsecureCredentials&, const InsecureCredentials&) = default;
};

struct TlsCredentials {
  CertificateFiles files;

  friend bool operator==(const TlsCredentials&, const TlsCredentials&) = default;
};

using ChannelCredentials = std::variant<InsecureCredentials, TlsCredentials>;

/// One control-plane server. Equal ones share a stream (A47).
struct ServerConfig {
  std::string server_uri;
  ChannelCredentials channel_creds;          ///< The first of a usable type.
  std::vector<std::string> server_features;  ///< As written, whether we know them or not (A30).

  bool has_feature(absl::string_view feature) const;
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

/// Where the names `xdstp://<authority>/…` come from.
struct AuthorityConfig {
  std::vector<ServerConfig> servers;  ///< The bootstrap's own where the authority has none.
  std::string client_listener_resource_name_template;

  friend bool operator==(const AuthorityConfig&, const AuthorityConfig&) = default;
};

struct NodeLocality {
  std::string region;
  std::string zone;
  std::string sub_zone;

  friend bool operator==(const NodeLocality&, const NodeLocality&) = default;
};

/// Who we are; node.hpp makes the message of it.
struct NodeConfig {
  std::string id;
  std::string cluster;
  std::optional<NodeLocality> locality;
  std::string metadata_json;  ///< A JSON object; empty for none.

  friend bool operator==(const NodeConfig&, const NodeConfig&) = default;
};

struct Bootstrap {
  std::vector<ServerConfig> servers;  ///< Best first (A71); empty only with a resource file.
  std::map<std::string, AuthorityConfig> authorities;
  /// By instance name; those of the plugin file_watcher only.
  std::map<std::string, CertificateFiles> certificate_providers;
  NodeConfig node;
  std::string client_default_listener_resource_name_template = "%s";
  std::optional<std::string> resources_file;

  friend bool operator==(const Bootstrap&, const Bootstrap&) = default;
};

struct BootstrapFile {
  std::string path;
};

struct BootstrapText {
  std::string json;
};

/// GRPC_XDS_BOOTSTRAP (a path) wins over GRPC_XDS_BOOTSTRAP_CONFIG (the JSON itself). An empty
/// variable counts as unset.
struct BootstrapEnvironment {
  std::function<const char*(const char*)> get;  ///< As std::getenv.
};

using BootstrapSource = std::variant<BootstrapFile, BootstrapText, BootstrapEnvironment>;

/// `source_name` stands before every error: a path, or a variable's name.
absl::StatusOr<Bootstrap> parse_bootstrap(absl::string_view json_text,
                                          absl::string_view source_name);

/// Reads and parses. A relative resource file is relative to the bootstrap's folder, where that is
/// a file.
absl::StatusOr<Bootstrap> load_bootstrap(const BootstrapSource& source);

/// Every server that the bootstrap names, once (A47): its own first, then those of the authorities.
std::vector<ServerConfig> distinct_servers(const Bootstrap& bootstrap);

/// The listener to watch for `xds:///name` or `xds://authority/name` (A47).
absl::StatusOr<std::string> listener_resource_name(const Bootstrap& bootstrap,
                                                   absl::string_view target);

/// The target's authority, which calls carry and which virtual hosts' domains are compared with
/// (A47): the path of the target without its leading slash, percent-encoded as an authority is.
/// Empty where the target is none.
std::string data_plane_authority(absl::string_view target);

}  // namespace signalbox::xds
