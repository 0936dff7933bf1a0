// SPDX-License-Identifier: Apache-2.0
#include "actors/io/socket_channels.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>

#include "actors/io/grpc_access.hpp"

namespace signalbox::actors {
namespace {

constexpr char kUnix[] = "unix:";

bool is_unix(const Address& address) {
  return absl::StartsWith(address.str(), kUnix);
}

bool is_ipv6(const Address& address) {
  return !address.empty() && address.str().front() == '[';
}

std::shared_ptr<grpc::Channel> channel_on(Descriptor socket,
                                          const Address& address,
                                          const grpc::ChannelArguments& arguments) {
  return grpc::CreateCustomInsecureChannelFromFd(grpc_target(address), socket.release(), arguments);
}

// --- the self-test ----------------------------------------------------------------

const char kTestAddress[] = "192.0.2.1:65535";  // An address that no endpoint has (RFC 5737).

// A channel on one of a pair of connected sockets. Nothing reads from the other one.
struct TestChannel {
  explicit TestChannel(const grpc::ChannelArguments& arguments) {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
      error = errno;
      return;
    }
    other_end = Descriptor(ends[1]);
    channel = channel_on(Descriptor(ends[0]), Address(kTestAddress), arguments);
  }

  grpc_channel* core() const { return GrpcAccess::c_channel(*channel); }

  /// The error of a test without a channel.
  absl::Status lack() const {
    return absl::ResourceExhaustedError(
        absl::StrCat("no socket for the self-test could be made: ", std::strerror(error)));
  }

  int error = 0;
  Descriptor other_end;
  std::shared_ptr<grpc::Channel> channel;
};

SentHeaders send_call(const grpc::Channel& channel) {
  grpc::CompletionQueue queue;
  grpc_call* const call = GrpcAccess::make_bare_call(channel, "/signalbox/Test", queue);
  return send_headers(call, queue, std::chrono::seconds(1));
}

}  // namespace

absl::StatusOr<SocketChannels> SocketChannels::make(const grpc::ChannelArguments& arguments) {
  // Blocks of different sizes between the channels change the memory around each channel. So a way
  // to the name by old values in memory does not hold in all channels.
  constexpr std::size_t kChannels = 16;
  std::vector<std::string> blocks;
  std::vector<TestChannel> tests;
  std::vector<grpc_channel*> channels;
  for (std::size_t i = 0; i < kChannels; ++i) {
    for (std::size_t size = 24; size < 8192; size *= 2)
      blocks.emplace_back(size + 16 * (i * 7 % kChannels), ' ');
    const TestChannel& test = tests.emplace_back(arguments);
    if (test.channel == nullptr) return test.lack();
    channels.push_back(test.core());
  }
  const std::string name = grpc_peer(Address(kTestAddress));
  for (const TransportName& place : TransportName::find(channels)) {
    // Each place is tried on a channel of its own: a wrong place may name the transport of another
    // channel of this test.
    const TestChannel& test = tests.emplace_back(arguments);
    if (test.channel == nullptr) return test.lack();
    if (!place.set(test.core(), name)) continue;
    const SentHeaders sent = send_call(*test.channel);
    if (!sent.were_taken)
      return absl::ResourceExhaustedError("the self-test's call was not sent within a second");
    if (*sent.were_taken && sent.peer == name) return SocketChannels(arguments, place);
  }
  return absl::UnimplementedError(
      "this build of gRPC keeps the name of a peer where signalbox does not find it, or the system "
      "forbids process_vm_readv()");
}

std::shared_ptr<grpc::Channel> SocketChannels::channel(Descriptor socket,
                                                       const Address& address) const {
  auto made = channel_on(std::move(socket), address, arguments_);
  const bool is_named = place_.set(GrpcAccess::c_channel(*made), grpc_peer(address));
  return is_named ? made : nullptr;
}

SentHeaders send_headers(grpc_call* call,
                         grpc::CompletionQueue& queue,
                         std::chrono::milliseconds limit) {
  SentHeaders result;
  grpc_op headers{};
  headers.op = GRPC_OP_SEND_INITIAL_METADATA;
  if (grpc_call_start_batch(call, &headers, 1, queue.cq(), nullptr) == GRPC_CALL_OK) {
    const gpr_timespec due = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_millis(limit.count(), GPR_TIMESPAN));
    const grpc_event sent = grpc_completion_queue_next(queue.cq(), due, nullptr);
    if (sent.type == GRPC_OP_COMPLETE) result.were_taken = sent.success != 0;
  }
  char* const peer = grpc_call_get_peer(call);
  result.peer = peer;
  gpr_free(peer);
  grpc_call_cancel(call, nullptr);
  grpc_call_unref(call);
  grpc_completion_queue_shutdown(queue.cq());
  while (
      grpc_completion_queue_next(queue.cq(), gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr).type !=
      GRPC_QUEUE_SHUTDOWN) {
  }
  return result;
}

std::string grpc_target(const Address& address) {
  if (is_unix(address)) return absl::StrCat("unix://", absl::StripPrefix(address.str(), kUnix));
  return absl::StrCat(is_ipv6(address) ? "ipv6:///" : "ipv4:///", address.str());
}

bool is_grpc_target(const std::string& peer) {
  return absl::StartsWith(peer, "ipv4:///") || absl::StartsWith(peer, "ipv6:///") ||
         absl::StartsWith(peer, "unix:///");
}

std::string grpc_peer(const Address& address) {
  if (is_unix(address)) return address.str();
  if (!is_ipv6(address)) return absl::StrCat("ipv4:", address.str());
  return absl::StrCat("ipv6:", absl::StrReplaceAll(address.str(), {{"[", "%5B"}, {"]", "%5D"}}));
}

}  // namespace signalbox::actors
