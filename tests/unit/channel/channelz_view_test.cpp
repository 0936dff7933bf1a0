// SPDX-License-Identifier: Apache-2.0
#include "channel/services/channelz_view.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/unit/channel/status_fixture.hpp"

namespace signalbox::channel {
namespace {

using Catch::Matchers::Contains;

channelz::Channel only_channel(const RuntimeStatus& status) {
  channelz::GetTopChannelsResponse response;
  add_top_channels(status, 0, 100, response);
  REQUIRE(response.channel_size() == 1);
  CHECK(response.end());
  return response.channel(0);
}

channelz::Subchannel subchannel(const RuntimeStatus& status, const std::string& name) {
  const channelz::Channel channel = only_channel(status);
  for (const auto& ref : channel.subchannel_ref()) {
    if (ref.name() != name) continue;
    auto found = find_subchannel(status, ref.subchannel_id());
    REQUIRE(found);
    CHECK(found->ref().subchannel_id() == ref.subchannel_id());
    return *std::move(found);
  }
  FAIL("no subchannel " << name);
  return {};
}

}  // namespace

TEST_CASE("channelz_view: a target is a top channel with the subchannels of its leaves",
          "[channel][channelz]") {
  RuntimeStatus status = some_status();
  status.targets[0].calls_succeeded = 40;
  status.targets[0].calls_failed = 2;
  const channelz::Channel channel = only_channel(status);
  CHECK(channel.ref().name() == "xds:///orders");
  CHECK(channel.ref().channel_id() >= kFirstId);
  CHECK(channel.data().target() == "xds:///orders");
  CHECK(channel.data().state().state() == channelz::ChannelConnectivityState::READY);
  CHECK(channel.data().calls_started() == 42);
  CHECK(channel.data().calls_succeeded() == 40);
  CHECK(channel.data().calls_failed() == 2);
  // 10.0.2.1:80 has no subchannel.
  REQUIRE(channel.subchannel_ref_size() == 3);
  CHECK(channel.subchannel_ref(0).name() == "all/near/10.0.0.1:80");
  CHECK(channel.subchannel_ref(1).name() == "all/near/[2001:db8::1]:443");
  CHECK(channel.subchannel_ref(2).name() == "all/far/10.0.1.1:80");
  const auto found = find_channel(status, channel.ref().channel_id());
  REQUIRE(found);
  CHECK(found->SerializeAsString() == channel.SerializeAsString());
}

TEST_CASE("channelz_view: the trace of a channel has its changes of priority",
          "[channel][channelz]") {
  RuntimeStatus status = some_status();
  status.changes[0].target = "xds:///other";
  const channelz::ChannelTrace trace = only_channel(status).data().trace();
  CHECK(trace.num_events_logged() == 2);
  REQUIRE(trace.events_size() == 2);
  CHECK(trace.events(0).severity() == channelz::ChannelTraceEvent::CT_WARNING);
  CHECK(trace.events(0).description() ==
        "cluster all: calls moved from priority 0 (near) to none: lost: connection refused");
  CHECK(trace.events(0).timestamp().seconds() ==
        std::chrono::system_clock::to_time_t(at_second(300)));
  CHECK_THAT(trace.events(1).description(), Contains("from priority none to 1 (far): timed out"));
}

TEST_CASE("channelz_view: a subchannel has its connectivity, the reason, and its socket",
          "[channel][channelz]") {
  const RuntimeStatus status = some_status();
  const channelz::Subchannel failed = subchannel(status, "all/near/10.0.0.1:80");
  CHECK(failed.data().target() == "10.0.0.1:80");
  CHECK(failed.data().state().state() == channelz::ChannelConnectivityState::TRANSIENT_FAILURE);
  REQUIRE(failed.data().trace().events_size() == 1);
  CHECK(failed.data().trace().events(0).description() == "transient_failure: connection refused");
  CHECK(failed.socket_ref_size() == 0);

  const channelz::Subchannel ejected = subchannel(status, "all/near/[2001:db8::1]:443");
  CHECK(ejected.data().state().state() == channelz::ChannelConnectivityState::READY);
  CHECK(ejected.data().trace().events(0).description() == "ejected: too many failures");
  REQUIRE(ejected.socket_ref_size() == 1);
  const auto socket = find_socket(status, ejected.socket_ref(0).socket_id());
  REQUIRE(socket);
  CHECK(socket->ref().name() == "[2001:db8::1]:443");
  CHECK(socket->remote().tcpip_address().port() == 443);
  const std::string ip = socket->remote().tcpip_address().ip_address();
  CHECK(ip == std::string("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16));
  REQUIRE(socket->data().option_size() == 1);
  CHECK(socket->data().option(0).name() == "signalbox.calls_in_flight");
  CHECK(socket->data().option(0).value() == "1");
}

TEST_CASE("channelz_view: has every message that grpcdebug reads", "[channel][channelz]") {
  RuntimeStatus status = some_status();
  status.changes.clear();
  const channelz::Channel channel = only_channel(status);
  CHECK(channel.data().trace().has_creation_timestamp());
  for (const auto& ref : channel.subchannel_ref()) {
    const channelz::Subchannel shown = subchannel(status, ref.name());
    CHECK(shown.data().trace().has_creation_timestamp());
    for (const auto& socket_ref : shown.socket_ref()) {
      const auto socket = find_socket(status, socket_ref.socket_id());
      REQUIRE(socket);
      CHECK(socket->local().tcpip_address().ip_address().size() ==
            socket->remote().tcpip_address().ip_address().size());
      CHECK(socket->data().has_last_local_stream_created_timestamp());
      CHECK(socket->data().has_last_remote_stream_created_timestamp());
      CHECK(socket->data().has_last_message_sent_timestamp());
      CHECK(socket->data().has_last_message_received_timestamp());
      CHECK(socket->data().has_local_flow_control_window());
      CHECK(socket->data().has_remote_flow_control_window());
    }
  }
}

TEST_CASE("channelz_view: what a socket of gRPC's has is kept", "[channel][channelz]") {
  channelz::Socket socket;
  socket.mutable_local()->mutable_tcpip_address()->set_port(7);
  socket.mutable_data()->mutable_last_message_sent_timestamp()->set_seconds(8);
  fill_gaps(socket);
  CHECK(socket.local().tcpip_address().port() == 7);
  CHECK(socket.data().last_message_sent_timestamp().seconds() == 8);
  CHECK(socket.data().has_remote_flow_control_window());
}

TEST_CASE("channelz_view: an id means the same thing in every status, and only that",
          "[channel][channelz]") {
  RuntimeStatus status = some_status();
  const std::int64_t channel = only_channel(status).ref().channel_id();
  const std::int64_t address = subchannel(status, "all/far/10.0.1.1:80").ref().subchannel_id();
  TargetStatus other = status.targets[0];
  other.name = "xds:///another";
  status.targets.insert(status.targets.begin(), other);
  CHECK(find_channel(status, channel)->ref().name() == "xds:///orders");
  CHECK(find_subchannel(status, address)->ref().name() == "all/far/10.0.1.1:80");
  CHECK_FALSE(find_channel(status, address));
  CHECK_FALSE(find_subchannel(status, channel));
  CHECK_FALSE(find_socket(status, address));
  CHECK_FALSE(find_socket(status, -1));
  status.targets[1].clusters[2].priorities[0].localities.clear();
  CHECK_FALSE(find_subchannel(status, address));
}

TEST_CASE("channelz_view: pages of top channels lead to every target once", "[channel][channelz]") {
  RuntimeStatus status;
  for (int number = 0; number < 25; ++number)
    status.targets.push_back({.name = "xds:///" + std::to_string(number)});
  std::int64_t start = 0;
  std::size_t seen = 0;
  for (int page = 0; page < 3; ++page) {
    channelz::GetTopChannelsResponse response;
    add_top_channels(status, start, 10, response);
    CHECK(response.end() == (page == 2));
    for (const auto& channel : response.channel()) {
      CHECK(channel.ref().channel_id() >= start);
      start = channel.ref().channel_id() + 1;
      ++seen;
    }
  }
  CHECK(seen == 25);
}

TEST_CASE("channelz_view: names that are not UTF-8 are escaped", "[channel][channelz]") {
  RuntimeStatus status;
  status.targets.push_back({.name = "xds:///\xFF"});
  CHECK(only_channel(status).ref().name() == "xds:///\\377");
}

}  // namespace signalbox::channel
