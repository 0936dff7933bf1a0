// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/parse_options.hpp"

#include "absl/strings/string_view.h"

namespace signalbox::xds {

ParseOptions parse_options_from(const std::function<const char*(const char*)>& get,
                                bool trusted_server,
                                ParseOptions options) {
  // Any other value of a variable leaves the default.
  const auto is = [&](const char* variable, absl::string_view wanted) {
    const char* value = get(variable);
    return value != nullptr && value == wanted;
  };
  options.keep_aggregate_lb_policy = is("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT", "true");
  options.session_affinity = !is("GRPC_EXPERIMENTAL_XDS_ENABLE_OVERRIDE_HOST", "false");
  options.dualstack_endpoints = !is("GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS", "false");
  options.endpoint_hash_key = !is("GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT", "true");
  options.endpoint_metrics_are_chosen = is("GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION", "true");
  options.http_connect = is("GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT", "true");
  options.authority_rewrite =
      trusted_server && is("GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE", "true");
  return options;
}

}  // namespace signalbox::xds
