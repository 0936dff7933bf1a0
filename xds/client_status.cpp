// SPDX-License-Identifier: Apache-2.0
#include "xds/client_status.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <google/protobuf/util/time_util.h>

#include "xds/redacted_resource.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

using envoy::admin::v3::ClientResourceStatus;
using envoy::service::status::v3::ClientConfig;
using envoy::service::status::v3::ClientStatusRequest;
using envoy::service::status::v3::ClientStatusResponse;

::google::protobuf::Timestamp timestamp(WallTime time) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  return ::google::protobuf::util::TimeUtil::NanosecondsToTimestamp(since.count());
}

ClientResourceStatus status_of(ResourceStatus status) {
  switch (status) {
    case ResourceStatus::kRequested:
      return envoy::admin::v3::REQUESTED;
    case ResourceStatus::kDoesNotExist:
      return envoy::admin::v3::DOES_NOT_EXIST;
    case ResourceStatus::kAcked:
      return envoy::admin::v3::ACKED;
    case ResourceStatus::kNacked:
      return envoy::admin::v3::NACKED;
    case ResourceStatus::kReceivedError:
      return envoy::admin::v3::RECEIVED_ERROR;
    case ResourceStatus::kTimeout:
      return envoy::admin::v3::TIMEOUT;
  }
  return envoy::admin::v3::UNKNOWN;
}

void add(ClientConfig::GenericXdsConfig& out,
         const ResourceState& state,
         const ResourceRedactor* redactor) {
  const absl::string_view type_url = type_url_of(state.key.type);
  out.set_type_url(std::string(type_url));
  out.set_name(as_utf8(state.key.name));
  out.set_client_status(status_of(state.status));
  out.set_version_info(as_utf8(state.version));
  // A resource without an update gets the time 0, because the tool grpcdebug crashes if the time is
  // absent.
  auto& updated = *out.mutable_last_updated();
  if (state.updated) updated = timestamp(*state.updated);
  if (state.bytes && redactor != nullptr) {
    out.mutable_xds_config()->set_type_url(std::string(type_url));
    if (auto shown = redactor->bytes(type_url, *state.bytes))
      out.mutable_xds_config()->set_value(*std::move(shown));
  }
  if (!state.failure) return;
  auto& error = *out.mutable_error_state();
  error.set_details(as_utf8(state.failure->details));
  error.set_version_info(as_utf8(state.failure->version));
  *error.mutable_last_update_attempt() = timestamp(state.failure->at);
}

}  // namespace

absl::Status check(const ClientStatusRequest& request) {
  if (request.node_matchers().empty()) return {};
  return absl::InvalidArgumentError(
      "node_matchers: expected none, because this client knows only its own node");
}

ClientStatusResponse client_status(const ResourceDump& dump, const ClientStatusRequest& request) {
  std::optional<ResourceRedactor> redactor;
  if (!request.exclude_resource_contents()) redactor.emplace();
  ClientStatusResponse response;
  ClientConfig& config = *response.add_config();
  config.mutable_node()->set_id(as_utf8(dump.node_id));
  for (const ResourceState& state : dump.resources)
    add(*config.add_generic_xds_configs(), state, redactor ? &*redactor : nullptr);
  return response;
}

}  // namespace signalbox::xds
