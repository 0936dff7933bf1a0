// SPDX-License-Identifier: Apache-2.0
#include "xds/health_message.hpp"

#include <cstdint>

#include <google/protobuf/unknown_field_set.h>

namespace signalbox::xds {
namespace {

using ::google::protobuf::UnknownField;
using ::google::protobuf::UnknownFieldSet;

constexpr int kService = 1;  // The field number of HealthCheckRequest.service.
constexpr int kStatus = 1;   // The field number of HealthCheckResponse.status.
constexpr std::uint64_t kServing = 1;

}  // namespace

std::string health_request(const std::string& service) {
  UnknownFieldSet message;
  if (!service.empty()) message.AddLengthDelimited(kService, service);
  std::string bytes;
  message.SerializeToString(&bytes);
  return bytes;
}

bool is_serving(absl::string_view response) {
  UnknownFieldSet message;
  if (!message.ParseFromArray(response.data(), static_cast<int>(response.size()))) return false;
  std::uint64_t status = 0;  // If the field occurs several times, the last value counts.
  for (int i = 0; i < message.field_count(); ++i) {
    const UnknownField& field = message.field(i);
    if (field.number() == kStatus && field.type() == UnknownField::TYPE_VARINT)
      status = field.varint();
  }
  return status == kServing;
}

}  // namespace signalbox::xds
