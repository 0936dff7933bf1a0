// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap: the control planes to ask, the client's node, and the listener names of targets.
//
//   path | inline JSON | environment ──▶ [load_bootstrap] ──▶ Bootstrap ──▶ xds_client
//   "xds:///orders" and the Bootstrap ──▶ [listener_resource_name] ──▶ the first watch
//
// The format is gRPC's own, so that existing deployments work unchanged. The key
// `signalbox.resources` is an addition: it names a resource file (resource_file.hpp).
//
// Ignored: unknown keys; certificate providers of unknown plugins; unsupported types of channel
// credentials, as long as one type is usable. All errors of fields are reported together. Each of
// them names the source and the field. Files that the bootstrap names are not opened here.
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

/// The paths of certificate files: the config of `tls` (A65) and of the plugin file_watcher (A29).
/// Without a ca_certificate_file, `tls` trusts the system's root certificates, and file_watcher has
/// no roots.
struct CertificateFiles {
  std::string ca_certificate_file;  ///< Trusted roots; empty: see above.
  std::string certificate_file;     ///< The client's certificate; empty: none is presented.
  std::string private_key_file;     ///< Set if and only if certificate_file is.
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

/// One control-plane server. Equal configurations share a stream (A47).
struct ServerConfig {
  std::string server_uri;
  /// The first entry of channel_creds that has a usable type.
  ChannelCredentials channel_creds;
  /// The features as the bootstrap writes them, including unknown ones (A30).
  std::vector<std::string> server_features;

  bool has_feature(absl::string_view feature) const;
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

/// The servers of the names `xdstp://<authority>/…`.
struct AuthorityConfig {
  std::vector<ServerConfig> servers;  ///< Bootstrap::servers if the authority lists none.
  std::string client_listener_resource_name_template;

  friend bool operator==(const AuthorityConfig&, const AuthorityConfig&) = default;
};

struct NodeLocality {
  std::string region;
  std::string zone;
  std::string sub_zone;

  friend bool operator==(const NodeLocality&, const NodeLocality&) = default;
};

/// The client's node; node.hpp makes the Node message of it.
struct NodeConfig {
  std::string id;
  std::string cluster;
  std::optional<NodeLocality> locality;
  std::string metadata_json;  ///< A JSON object; empty if there is none.

  friend bool operator==(const NodeConfig&, const NodeConfig&) = default;
};

struct Bootstrap {
  std::vector<ServerConfig> servers;  ///< Best first (A71); empty only with a resource file.
  std::map<std::string, AuthorityConfig> authorities;
  /// The certificate providers of the plugin file_watcher; providers of other plugins are left out.
  /// Keys: instance names.
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
  std::function<const char*(const char*)> get;  ///< Behaves as std::getenv.
};

using BootstrapSource = std::variant<BootstrapFile, BootstrapText, BootstrapEnvironment>;

/// INVALID_ARGUMENT: the text is no valid bootstrap. Every error text begins with `source_name`,
/// such as a path or the name of a variable.
absl::StatusOr<Bootstrap> parse_bootstrap(absl::string_view json_text,
                                          absl::string_view source_name);

/// Reads and parses the bootstrap. If the bootstrap is a file, a relative `signalbox.resources`
/// path is relative to the folder of that file. NOT_FOUND: the environment names no bootstrap.
/// PERMISSION_DENIED: the process may not read the file. NOT_FOUND, too, if the file cannot be
/// opened for another reason, or is a folder. INVALID_ARGUMENT: the bootstrap is invalid.
absl::StatusOr<Bootstrap> load_bootstrap(const BootstrapSource& source);

/// Each distinct server once (A47): Bootstrap::servers first, then the servers of the authorities.
std::vector<ServerConfig> distinct_servers(const Bootstrap& bootstrap);

/// The name of the listener to watch for `xds:///name` or `xds://authority/name` (A47).
/// INVALID_ARGUMENT: the target is invalid, or the bootstrap lacks its authority.
absl::StatusOr<std::string> listener_resource_name(const Bootstrap& bootstrap,
                                                   absl::string_view target);

/// The authority of the target's calls, which is compared with the domains of virtual hosts (A47).
/// It is the target's path without the leading slash, percent-encoded as a URI authority. Empty if
/// the target is invalid.
std::string data_plane_authority(absl::string_view target);

}  // namespace signalbox::xds
