// SPDX-License-Identifier: Apache-2.0
#include "xds/node.hpp"

#include "absl/strings/str_cat.h"
#include <google/protobuf/util/json_util.h>

#include "messages/build_facts.hpp"

namespace signalbox::xds {

absl::StatusOr<envoy::config::core::v3::Node> make_node(const NodeConfig& config,
                                                        bool overprovisions) {
  envoy::config::core::v3::Node node;
  node.set_id(config.id);
  node.set_cluster(config.cluster);
  if (config.locality) {
    node.mutable_locality()->set_region(config.locality->region);
    node.mutable_locality()->set_zone(config.locality->zone);
    node.mutable_locality()->set_sub_zone(config.locality->sub_zone);
  }
  if (!config.metadata_json.empty()) {
    const auto status = ::google::protobuf::util::JsonStringToMessage(config.metadata_json,
                                                                      node.mutable_metadata());
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node.metadata: no object, or nested too deeply: ", std::string(status.message())));
    }
  }
  node.set_user_agent_name("signalbox");
  node.set_user_agent_version(std::string(build_version()));
  if (!overprovisions) node.add_client_features("envoy.lb.does_not_support_overprovisioning");
  node.add_client_features("xds.config.resource-in-sotw");
  return node;
}

}  // namespace signalbox::xds
