// SPDX-License-Identifier: Apache-2.0
//
// GrpcAccess — the one door to what gRPC's C++ layer keeps private, and the only file that knows
// how it is opened.
//
//   actors/io/grpc_connector, channel/* ─▶ [GrpcAccess] ─▶ grpc::Channel, ClientContext, CQ
//
// grpc::internal::BlockingUnaryCallImpl<I, O> is a friend of ChannelInterface, Channel,
// ClientContext and CompletionQueue. A specialisation for a type of ours is an ordinary C++
// program: no macro, no second definition of anything of gRPC's. What it reads are facts of one
// version, hence the check below.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/channel_interface.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/version_info.h>

static_assert(GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51,
              "GrpcAccess was written against gRPC 1.51: check every member before raising this");

namespace signalbox {
struct GrpcAccessTag;
}  // namespace signalbox

namespace grpc::internal {

template <>
class BlockingUnaryCallImpl<signalbox::GrpcAccessTag, signalbox::GrpcAccessTag> {
 public:
  // --- channels -----------------------------------------------------------

  static Call create_call(ChannelInterface& channel,
                          const RpcMethod& method,
                          ClientContext* context,
                          CompletionQueue* cq) {
    return channel.CreateCall(method, context, cq);
  }

  /// The queue of the callback API: gRPC's own threads run its tags, which are functors.
  static CompletionQueue* callback_cq(ChannelInterface& channel) { return channel.CallbackCQ(); }

  static grpc_channel* c_channel(const Channel& channel) { return channel.c_channel_; }

  // --- contexts -----------------------------------------------------------

  static const std::multimap<std::string, std::string>& metadata(const ClientContext& context) {
    return context.send_initial_metadata_;
  }

  static bool wait_for_ready(const ClientContext& context) { return context.wait_for_ready_; }

  /// What calls made under `from` inherit of it, except its metadata and its wait_for_ready.
  static void copy_settings(ClientContext& from, ClientContext& to) {
    to.set_deadline(from.raw_deadline());
    to.set_authority(from.authority_);
    to.set_census_context(from.census_context());
    to.set_credentials(from.credentials());
    to.propagate_from_call_ = from.propagate_from_call_;
    to.propagation_options_ = from.propagation_options_;
  }

  /// `owned` lives until ~ClientContext, which destroys it after its own reference on the call.
  static void attach(ClientContext& context, std::shared_ptr<void> owned) {
    MutexLock lock(&context.mu_);
    Channel* const channel = context.channel_.get();
    context.channel_ = std::shared_ptr<Channel>(std::move(owned), channel);
  }

  /// From now on TryCancel(), peer() and auth_context() act on `call`. The caller owns the
  /// reference on the call that is returned, and keeps it until ~ClientContext: the call's arena
  /// holds what the application still reads.
  static grpc_call* rebind(ClientContext& context, grpc_call* call) {
    MutexLock lock(&context.mu_);
    grpc_call_ref(call);
    return std::exchange(context.call_, call);
  }

  // --- completion queues --------------------------------------------------

  /// Shutdown() of the queue does not finish before as many release_cq().
  static void hold_cq(CompletionQueue* cq) { cq->RegisterAvalanching(); }

  static void release_cq(CompletionQueue* cq) { cq->CompleteAvalanching(); }
};

}  // namespace grpc::internal

namespace signalbox {

using GrpcAccess = grpc::internal::BlockingUnaryCallImpl<GrpcAccessTag, GrpcAccessTag>;

/// Keeps the threads of gRPC's callback API for the life of the process. They end with the last
/// channel that used them, and join each other then: fatal if one of them drops that channel, as
/// ours may, since it is they who tell us of the end of calls and connections.
inline void keep_grpc_callback_threads() {
  // Never destroyed, on purpose; see above.
  static const auto* const keeper = [] {
    auto* channel = new std::shared_ptr<grpc::Channel>(
        grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials()));
    GrpcAccess::callback_cq(**channel);
    return channel;
  }();
  static_cast<void>(keeper);
}

}  // namespace signalbox
