// SPDX-License-Identifier: Apache-2.0
#include "xds/client/discovery_codec.hpp"

#include "absl/status/status.h"

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::xds {
std::string encode(const DiscoveryRequest& request) {
  envoy::service::discovery::v3::DiscoveryRequest message;
  message.set_version_info(request.version);
  message.set_type_url(std::string(type_url_of(request.type)));
  message.set_response_nonce(request.nonce);
  for (const std::string& name : request.names)
    message.add_resource_names(name);
  if (!request.node.empty()) {
    const bool parsed = message.mutable_node()->ParseFromString(request.node);
    SIGNALBOX_INVARIANT(parsed, "the session is given a serialised node");
  }
  if (!request.rejection.empty()) {
    message.mutable_error_detail()->set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
    message.mutable_error_detail()->set_message(request.rejection);
  }
  return message.SerializeAsString();
}

}  // namespace signalbox::xds
