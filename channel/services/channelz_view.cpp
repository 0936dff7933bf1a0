// SPDX-License-Identifier: Apache-2.0
#include "channel/services/channelz_view.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <arpa/inet.h>

#include "channel/admin/status_json.hpp"
#include "xds/utf8.hpp"

namespace signalbox::channel {
namespace {

using State = channelz::ChannelConnectivityState;

constexpr char kTarget = 't';
constexpr char kSubchannel = 's';
constexpr char kSocket = 'c';

// The hash FNV-1a, of which ids are made.
class Hash {
 public:
  explicit Hash(char kind) { add_byte(static_cast<unsigned char>(kind)); }

  Hash& add(absl::string_view text) {
    for (const char byte : text)
      add_byte(static_cast<unsigned char>(byte));
    add_byte(0xFF);  // Separates texts: this byte is never part of UTF-8.
    return *this;
  }

  std::int64_t id() const {
    return kFirstId | static_cast<std::int64_t>(hash_ & (static_cast<std::uint64_t>(kFirstId) - 1));
  }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 1'099'511'628'211ULL; }

  std::uint64_t hash_ = 14'695'981'039'346'656'037ULL;
};

/// An address, with its leaf cluster and its target.
struct Place {
  const TargetStatus& target;
  const ClusterStatus& cluster;
  const AddressStatus& address;

  std::int64_t id(char kind) const {
    return Hash(kind)
        .add(target.name)
        .add(cluster.aggregate.str())
        .add(cluster.name.str())
        .add(address.address.str())
        .id();
  }

  std::string name() const {
    return xds::as_utf8(absl::StrCat(cluster.aggregate.str(),
                                     absl::string_view(cluster.aggregate.empty() ? "" : "/"),
                                     cluster.name.str(),
                                     "/",
                                     address.address.str()));
  }

  bool has_subchannel() const { return address.state.has_value(); }

  bool has_socket() const {
    return has_subchannel() && address.connectivity == ConnectivityState::kReady;
  }
};

std::int64_t id_of(const TargetStatus& target) {
  return Hash(kTarget).add(target.name).id();
}

// Calls `use(place)` for each Place of the target until `use` returns true. Returns whether `use`
// has returned true.
template <typename Use>
bool find_place(const TargetStatus& target, const Use& use) {
  for (const ClusterStatus& cluster : target.clusters) {
    for (const PriorityStatus& priority : cluster.priorities) {
      for (const LocalityStatus& locality : priority.localities) {
        for (const EndpointStatus& endpoint : locality.endpoints) {
          for (const AddressStatus& address : endpoint.addresses) {
            if (use(Place{target, cluster, address})) return true;
          }
        }
      }
    }
  }
  return false;
}

template <typename Use>
void find_place(const RuntimeStatus& status, const Use& use) {
  for (const TargetStatus& target : status.targets) {
    if (find_place(target, use)) return;
  }
}

google::protobuf::Timestamp timestamp(WallTime time) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  google::protobuf::Timestamp out;
  out.set_seconds(std::chrono::floor<std::chrono::seconds>(since).count());
  out.set_nanos(
      static_cast<std::int32_t>((since - std::chrono::floor<std::chrono::seconds>(since)).count()));
  return out;
}

State::State state_of(ConnectivityState state) {
  switch (state) {
    case ConnectivityState::kIdle:
      return State::IDLE;
    case ConnectivityState::kConnecting:
      return State::CONNECTING;
    case ConnectivityState::kReady:
      return State::READY;
    case ConnectivityState::kTransientFailure:
      return State::TRANSIENT_FAILURE;
  }
  return State::UNKNOWN;
}

void add_event(channelz::ChannelTrace& trace,
               channelz::ChannelTraceEvent::Severity severity,
               const std::optional<WallTime>& at,
               const std::string& text) {
  channelz::ChannelTraceEvent& event = *trace.add_events();
  event.set_severity(severity);
  event.set_description(xds::as_utf8(text));
  if (at) *event.mutable_timestamp() = timestamp(*at);
  trace.set_num_events_logged(trace.events_size());
}

std::string priority_text(const std::optional<std::size_t>& at, const std::string& name) {
  if (!at) return "none";
  return name.empty() ? absl::StrCat(*at) : absl::StrCat(*at, " (", name, ")");
}

void add_event(channelz::ChannelTrace& trace, const PriorityChange& change) {
  const bool is_good = change.reason == PriorityChangeReason::kFirst ||
                       change.reason == PriorityChangeReason::kRecovered ||
                       change.reason == PriorityChangeReason::kReconfigured;
  std::string text = absl::StrCat("cluster ",
                                  change.cluster.str(),
                                  ": calls moved from priority ",
                                  priority_text(change.from, change.from_name),
                                  " to ",
                                  priority_text(change.to, change.to_name),
                                  ": ",
                                  to_string(change.reason));
  if (!change.details.empty()) absl::StrAppend(&text, ": ", change.details);
  add_event(
      trace,
      is_good ? channelz::ChannelTraceEvent::CT_INFO : channelz::ChannelTraceEvent::CT_WARNING,
      change.at,
      text);
}

// grpcdebug fails without a creation time. RuntimeStatus has none, so the time is 0, which
// grpcdebug does not show.
void begin_trace(channelz::ChannelData& data) {
  data.mutable_trace()->mutable_creation_timestamp();
}

channelz::Channel channel_of(const RuntimeStatus& status, const TargetStatus& target) {
  channelz::Channel out;
  out.mutable_ref()->set_channel_id(id_of(target));
  out.mutable_ref()->set_name(xds::as_utf8(target.name));
  channelz::ChannelData& data = *out.mutable_data();
  data.set_target(xds::as_utf8(target.name));
  data.mutable_state()->set_state(state_of(target.state));
  const std::int64_t succeeded = target.calls_succeeded.value_or(0);
  const std::int64_t failed = target.calls_failed.value_or(0);
  data.set_calls_succeeded(succeeded);
  data.set_calls_failed(failed);
  data.set_calls_started(succeeded + failed);
  begin_trace(data);
  for (const PriorityChange& change : status.changes) {
    if (change.target == target.name) add_event(*data.mutable_trace(), change);
  }
  if (!target.failure.ok()) {
    add_event(*data.mutable_trace(),
              channelz::ChannelTraceEvent::CT_ERROR,
              target.since,
              std::string(target.failure.message()));
  }
  find_place(target, [&](const Place& place) {
    if (!place.has_subchannel()) return false;
    channelz::SubchannelRef& ref = *out.add_subchannel_ref();
    ref.set_subchannel_id(place.id(kSubchannel));
    ref.set_name(place.name());
    return static_cast<std::size_t>(out.subchannel_ref_size()) == kMaxSubchannelRefs;
  });
  return out;
}

void fill_ref(channelz::SocketRef& ref, const Place& place) {
  ref.set_socket_id(place.id(kSocket));
  ref.set_name(xds::as_utf8(place.address.address.str()));
}

channelz::Subchannel subchannel_of(const Place& place) {
  channelz::Subchannel out;
  out.mutable_ref()->set_subchannel_id(place.id(kSubchannel));
  out.mutable_ref()->set_name(place.name());
  channelz::ChannelData& data = *out.mutable_data();
  data.set_target(xds::as_utf8(place.address.address.str()));
  data.mutable_state()->set_state(state_of(place.address.connectivity));
  begin_trace(data);
  if (!place.address.reason.ok()) {
    add_event(*data.mutable_trace(),
              channelz::ChannelTraceEvent::CT_WARNING,
              place.address.since,
              absl::StrCat(to_word(place.address.state), ": ", place.address.reason.message()));
  }
  if (place.has_socket()) fill_ref(*out.add_socket_ref(), place);
  return out;
}

channelz::Address address_of(const Address& address) {
  channelz::Address out;
  const std::string& text = address.str();
  absl::string_view path = text;
  if (absl::ConsumePrefix(&path, "unix:")) {
    out.mutable_uds_address()->set_filename(xds::as_utf8(path));
    return out;
  }
  const std::size_t colon = text.rfind(':');
  absl::string_view host = absl::string_view(text).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  std::int32_t port = 0;
  std::array<char, sizeof(in6_addr)> bytes{};
  const std::string ip(host);
  std::size_t size = 0;
  if (::inet_pton(AF_INET, ip.c_str(), bytes.data()) == 1)
    size = sizeof(in_addr);
  else if (::inet_pton(AF_INET6, ip.c_str(), bytes.data()) == 1)
    size = sizeof(in6_addr);
  if (size == 0 || colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port)) {
    out.mutable_other_address()->set_name(xds::as_utf8(text));
    return out;
  }
  out.mutable_tcpip_address()->set_ip_address(std::string(bytes.data(), size));
  out.mutable_tcpip_address()->set_port(port);
  return out;
}

// The unknown local address of a connection to `remote`: 0.0.0.0:0 for IPv4, [::]:0 for IPv6.
channelz::Address unknown_local(const channelz::Address& remote) {
  channelz::Address out;
  const std::string& ip = remote.tcpip_address().ip_address();
  out.mutable_tcpip_address()->set_ip_address(
      std::string(ip.empty() ? sizeof(in_addr) : ip.size(), '\0'));
  return out;
}

channelz::Socket socket_of(const Place& place) {
  channelz::Socket out;
  fill_ref(*out.mutable_ref(), place);
  *out.mutable_remote() = address_of(place.address.address);
  channelz::SocketOption& option = *out.mutable_data()->add_option();
  option.set_name("signalbox.calls_in_flight");
  option.set_value(absl::StrCat(place.address.calls_in_flight));
  fill_gaps(out);
  return out;
}

}  // namespace

void fill_gaps(channelz::Socket& socket) {
  if (!socket.has_local()) *socket.mutable_local() = unknown_local(socket.remote());
  channelz::SocketData& data = *socket.mutable_data();
  data.mutable_last_local_stream_created_timestamp();
  data.mutable_last_remote_stream_created_timestamp();
  data.mutable_last_message_sent_timestamp();
  data.mutable_last_message_received_timestamp();
  data.mutable_local_flow_control_window();
  data.mutable_remote_flow_control_window();
}

void add_top_channels(const RuntimeStatus& status,
                      std::int64_t start,
                      std::size_t max,
                      channelz::GetTopChannelsResponse& response) {
  std::vector<std::pair<std::int64_t, const TargetStatus*>> wanted;
  for (const TargetStatus& target : status.targets) {
    if (const std::int64_t id = id_of(target); id >= start) wanted.emplace_back(id, &target);
  }
  std::ranges::sort(wanted);
  response.set_end(true);
  for (const auto& [id, target] : wanted) {
    if (static_cast<std::size_t>(response.channel_size()) >= max) {
      response.set_end(false);
      return;
    }
    *response.add_channel() = channel_of(status, *target);
  }
}

std::optional<channelz::Channel> find_channel(const RuntimeStatus& status, std::int64_t id) {
  for (const TargetStatus& target : status.targets) {
    if (id_of(target) == id) return channel_of(status, target);
  }
  return std::nullopt;
}

std::optional<channelz::Subchannel> find_subchannel(const RuntimeStatus& status, std::int64_t id) {
  std::optional<channelz::Subchannel> found;
  find_place(status, [&](const Place& place) {
    if (place.has_subchannel() && place.id(kSubchannel) == id) found = subchannel_of(place);
    return found.has_value();
  });
  return found;
}

std::optional<channelz::Socket> find_socket(const RuntimeStatus& status, std::int64_t id) {
  std::optional<channelz::Socket> found;
  find_place(status, [&](const Place& place) {
    if (place.has_socket() && place.id(kSocket) == id) found = socket_of(place);
    return found.has_value();
  });
  return found;
}

}  // namespace signalbox::channel
