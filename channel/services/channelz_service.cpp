// SPDX-License-Identifier: Apache-2.0
#include "channel/services/channelz_service.hpp"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include "channel/services/channelz_view.hpp"

namespace signalbox::channel {
namespace {

absl::Status not_found(const char* what, std::int64_t id) {
  return absl::NotFoundError(absl::StrCat("no ", what, " has the id ", id));
}

// Parses an answer of gRPC's own channelz registry into `response`, and frees `json`. With null
// `json` (the registry has no such entity), returns `none`.
absl::Status take(char* json, google::protobuf::Message& response, const absl::Status& none) {
  const std::unique_ptr<char, void (*)(void*)> owner(json, gpr_free);
  if (json == nullptr) return none;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &response, options);
  if (status.ok()) return {};
  return absl::InternalError(
      absl::StrCat("gRPC's channelz has an unknown form: ", status.ToString()));
}

// The most entries of one response. `wanted`: max_results of the request; 0: as many as allowed.
absl::StatusOr<int> page_size(std::int64_t start, std::int64_t wanted) {
  if (start < 0)
    return absl::InvalidArgumentError(absl::StrCat("start id: expected 0 or more, got ", start));
  if (wanted < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("max_results: expected 0 or more, got ", wanted));
  if (wanted == 0 || wanted > ChannelzService::kMaxResults)
    return static_cast<int>(ChannelzService::kMaxResults);
  return static_cast<int>(wanted);
}

// Removes the entries beyond `size`, and says in the response that there are more.
template <typename Entries, typename Response>
void cut(Entries& entries, int size, Response& response) {
  if (entries.size() <= size) return;
  entries.DeleteSubrange(size, entries.size() - size);
  response.set_end(false);
}

absl::Status top_channels(const std::function<RuntimeStatus()>& status,
                          const channelz::GetTopChannelsRequest& request,
                          channelz::GetTopChannelsResponse& response) {
  const auto size = page_size(request.start_channel_id(), request.max_results());
  if (!size.ok()) return size.status();
  response.set_end(true);
  if (request.start_channel_id() < kFirstId) {
    auto taken = take(grpc_channelz_get_top_channels(request.start_channel_id()), response, {});
    if (!taken.ok()) return taken;
    cut(*response.mutable_channel(), *size, response);
  }
  if (response.end()) {
    add_top_channels(
        status(), request.start_channel_id(), static_cast<std::size_t>(*size), response);
  }
  return {};
}

absl::Status servers(const channelz::GetServersRequest& request,
                     channelz::GetServersResponse& response) {
  const auto size = page_size(request.start_server_id(), request.max_results());
  if (!size.ok()) return size.status();
  response.set_end(true);
  auto taken = take(grpc_channelz_get_servers(request.start_server_id()), response, {});
  if (taken.ok()) cut(*response.mutable_server(), *size, response);
  return taken;
}

absl::Status server(const channelz::GetServerRequest& request,
                    channelz::GetServerResponse& response) {
  return take(grpc_channelz_get_server(request.server_id()),
              response,
              not_found("server", request.server_id()));
}

absl::Status server_sockets(const channelz::GetServerSocketsRequest& request,
                            channelz::GetServerSocketsResponse& response) {
  const auto size = page_size(request.start_socket_id(), request.max_results());
  if (!size.ok()) return size.status();
  return take(
      grpc_channelz_get_server_sockets(request.server_id(), request.start_socket_id(), *size),
      response,
      not_found("server", request.server_id()));
}

}  // namespace

ChannelzService::ChannelzService(Worker& worker, std::function<RuntimeStatus()> status)
    : status_(std::move(status)) {
  add_unary<channelz::GetTopChannelsRequest, channelz::GetTopChannelsResponse>(
      "/grpc.channelz.v1.Channelz/GetTopChannels",
      worker,
      [this](const channelz::GetTopChannelsRequest& request,
             channelz::GetTopChannelsResponse& response) {
        return top_channels(status_, request, response);
      });
  add_unary<channelz::GetServersRequest, channelz::GetServersResponse>(
      "/grpc.channelz.v1.Channelz/GetServers", worker, servers);
  add_unary<channelz::GetServerRequest, channelz::GetServerResponse>(
      "/grpc.channelz.v1.Channelz/GetServer", worker, server);
  add_unary<channelz::GetServerSocketsRequest, channelz::GetServerSocketsResponse>(
      "/grpc.channelz.v1.Channelz/GetServerSockets", worker, server_sockets);
  add_unary<channelz::GetChannelRequest, channelz::GetChannelResponse>(
      "/grpc.channelz.v1.Channelz/GetChannel",
      worker,
      [this](const channelz::GetChannelRequest& request, channelz::GetChannelResponse& response) {
        const std::int64_t id = request.channel_id();
        if (id < kFirstId)
          return take(grpc_channelz_get_channel(id), response, not_found("channel", id));
        auto found = find_channel(status_(), id);
        if (!found) return not_found("channel", id);
        *response.mutable_channel() = *std::move(found);
        return absl::OkStatus();
      });
  add_unary<channelz::GetSubchannelRequest, channelz::GetSubchannelResponse>(
      "/grpc.channelz.v1.Channelz/GetSubchannel",
      worker,
      [this](const channelz::GetSubchannelRequest& request,
             channelz::GetSubchannelResponse& response) {
        const std::int64_t id = request.subchannel_id();
        if (id < kFirstId)
          return take(grpc_channelz_get_subchannel(id), response, not_found("subchannel", id));
        auto found = find_subchannel(status_(), id);
        if (!found) return not_found("subchannel", id);
        *response.mutable_subchannel() = *std::move(found);
        return absl::OkStatus();
      });
  add_unary<channelz::GetSocketRequest, channelz::GetSocketResponse>(
      "/grpc.channelz.v1.Channelz/GetSocket",
      worker,
      [this](const channelz::GetSocketRequest& request, channelz::GetSocketResponse& response) {
        const std::int64_t id = request.socket_id();
        if (id < kFirstId) {
          auto taken = take(grpc_channelz_get_socket(id), response, not_found("socket", id));
          if (taken.ok()) fill_gaps(*response.mutable_socket());
          return taken;
        }
        auto found = find_socket(status_(), id);
        if (!found) return not_found("socket", id);
        *response.mutable_socket() = *std::move(found);
        return absl::OkStatus();
      });
}

}  // namespace signalbox::channel
