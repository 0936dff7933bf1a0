// SPDX-License-Identifier: Apache-2.0
#include "messages/resource.hpp"

namespace signalbox {

absl::string_view to_string(ResourceType type) {
  switch (type) {
    case ResourceType::kListener:
      return "LDS";
    case ResourceType::kRouteConfig:
      return "RDS";
    case ResourceType::kCluster:
      return "CDS";
    case ResourceType::kEndpoints:
      return "EDS";
  }
  return "?";
}

absl::string_view to_string(RejectionReason reason) {
  switch (reason) {
    case RejectionReason::kParse:
      return "parse";
    case RejectionReason::kSemantic:
      return "semantic";
    case RejectionReason::kLimit:
      return "limit";
  }
  return "?";
}

ResourceType type_of(const Resource& resource) {
  return static_cast<ResourceType>(resource.index());
}

}  // namespace signalbox
