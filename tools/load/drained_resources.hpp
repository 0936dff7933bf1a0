// SPDX-License-Identifier: Apache-2.0
//
// DrainedResources — a file of xDS resources in which endpoints can be set to DRAINING, and led
// through proxies.
//
//   YAML or JSON ─▶ [parse] ─▶ drain("10.0.0.1:80", true) ─▶ text() ─▶ the control plane's own copy
//
// The user's file is never written. This class does not check that the resources are valid: the
// control plane that serves them does.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

namespace signalbox::tools {

class DrainedResources {
 public:
  static absl::StatusOr<DrainedResources> parse(absl::string_view text,
                                                absl::string_view file_name);

  /// "ip:port" of every endpoint of the file, sorted, each once.
  std::vector<std::string> endpoints() const;

  /// True: text() has health DRAINING for the endpoint. False: text() has the health that the file
  /// gives. INVALID_ARGUMENT: no endpoint has the address.
  absl::Status drain(const std::string& address, bool is_draining);

  /// Replaces the endpoint's address in the resources with that of a proxy (IPv4), so that clients
  /// connect to the proxy.
  void lead(const std::string& address, const std::string& proxy);

  /// The resources as JSON.
  std::string text() const;

 private:
  explicit DrainedResources(nlohmann::json root) : root_(std::move(root)) {}

  nlohmann::json root_;
  std::set<std::string> draining_;
  std::map<std::string, std::string> proxies_;  // The proxy's address for each endpoint's address.
};

}  // namespace signalbox::tools
