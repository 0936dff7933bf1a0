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

std::ostream& operator<<(std::ostream& out, ResourceType type) {
  return out << to_string(type);
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

std::ostream& operator<<(std::ostream& out, RejectionReason reason) {
  return out << to_string(reason);
}

ResourceType type_of(const Resource& resource) {
  return static_cast<ResourceType>(resource.index());
}

}  // namespace signalbox
