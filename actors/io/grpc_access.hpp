// SPDX-License-Identifier: Apache-2.0
//
// GrpcAccess — the only part of signalbox that uses private parts of gRPC's C++ layer.
//
//   actors/io, channel/grpc ─▶ [GrpcAccess] ─▶ grpc::Channel, ClientContext, CQ
//
// grpc::internal::BlockingUnaryCallImpl<I, O> is a friend of ChannelInterface, Channel,
// ClientContext and CompletionQueue. Its specialisation for a type of signalbox is ordinary C++: it
// needs no macro and no second definition of a gRPC type. It relies on private members of gRPC
// 1.51, so the check below refuses other versions.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/channel_interface.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/client_interceptor.h>
#include <grpcpp/version_info.h>

static_assert(GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51,
              "signalbox needs gRPC 1.51, found " GRPC_CPP_VERSION_STRING
              ": docs/versions.md says why, and which files another version would change");

namespace signalbox {
struct GrpcAccessTag;
}  // namespace signalbox

namespace grpc::internal {

template <>
class BlockingUnaryCallImpl<signalbox::GrpcAccessTag, signalbox::GrpcAccessTag> {
 public:
  // --- channels -----------------------------------------------------------

  /// Makes a call with the context's settings. The context does not know the call yet. `authority`
  /// is used when the context has none. When both are empty, the call has the authority that the
  /// channel adds, if it adds one.
  static grpc_call* make_call(grpc_channel* channel,
                              const char* method,
                              const ClientContext& context,
                              grpc_completion_queue* cq,
                              absl::string_view authority = {}) {
    const absl::string_view own = context.authority_.empty() ? authority : context.authority_;
    const grpc_slice path = grpc_slice_from_copied_string(method);
    const grpc_slice host = grpc_slice_from_copied_buffer(own.data(), own.size());
    grpc_call* const call = grpc_channel_create_call(channel,
                                                     context.propagate_from_call_,
                                                     context.propagation_options_.c_bitmask(),
                                                     cq,
                                                     path,
                                                     own.empty() ? nullptr : &host,
                                                     context.raw_deadline(),
                                                     nullptr);
    grpc_slice_unref(path);
    grpc_slice_unref(host);
    grpc_census_call_set_context(call, context.census_context());
    return call;
  }

  /// Makes a call without a parent call, a deadline, an authority and a ClientContext.
  static grpc_call* make_bare_call(const Channel& channel,
                                   const char* method,
                                   CompletionQueue& cq) {
    const grpc_slice path = grpc_slice_from_copied_string(method);
    grpc_call* const call = grpc_channel_create_call(channel.c_channel_,
                                                     nullptr,
                                                     GRPC_PROPAGATE_DEFAULTS,
                                                     cq.cq(),
                                                     path,
                                                     nullptr,
                                                     gpr_inf_future(GPR_CLOCK_REALTIME),
                                                     nullptr);
    grpc_slice_unref(path);
    return call;
  }

  /// The queue of the callback API: gRPC's own threads run its tags, which are functors.
  static CompletionQueue* callback_cq(ChannelInterface& channel) { return channel.CallbackCQ(); }

  static grpc_channel* c_channel(const Channel& channel) { return channel.c_channel_; }

  // --- contexts -----------------------------------------------------------

  static const std::multimap<std::string, std::string>& metadata(const ClientContext& context) {
    return context.send_initial_metadata_;
  }

  static std::multimap<std::string, std::string>& metadata(ClientContext& context) {
    return context.send_initial_metadata_;
  }

  /// The authority that the application has set; empty: none.
  static const std::string& authority(const ClientContext& context) { return context.authority_; }

  /// Removes the metadata for which `is_meant` holds.
  template <typename Predicate>
  static void erase_metadata(ClientContext& context, Predicate is_meant) {
    std::erase_if(context.send_initial_metadata_, is_meant);
  }

  /// The context's storage for received metadata.
  static MetadataMap& received_headers(ClientContext& context) {
    return context.recv_initial_metadata_;
  }

  static MetadataMap& received_trailers(ClientContext& context) {
    return context.trailing_metadata_;
  }

  /// Whether response headers of the context's call have begun to arrive. False while the call has
  /// neither headers nor status. gRPC's own function cannot be used. For a response that was cut
  /// off inside its headers, that function answers Trailers-Only, and asserts that no header has
  /// come, which ends the process.
  ///
  /// The capacity of the metadata array is used instead. gRPC makes the array as large as the
  /// number of entries, including entries that it does not show. One entry is the peer's name.
  /// Every HEADERS frame adds another entry (GrpcStatusFromWire) before its headers are read.
  static bool has_headers(ClientContext& context) {
    return received_headers(context).arr()->capacity > 1;
  }

  /// The number of metadata entries that came with the status, including entries that gRPC does not
  /// show. One entry is the peer's name. A status from a server has at least one more entry
  /// (GrpcStatusFromWire). A call that certainly no server has processed also has another entry
  /// (GrpcStreamNetworkState).
  static std::size_t trailer_entries(ClientContext& context) {
    return received_trailers(context).arr()->capacity;
  }

  static bool wait_for_ready(const ClientContext& context) { return context.wait_for_ready_; }

  using Creators = std::vector<std::unique_ptr<experimental::ClientInterceptorFactoryInterface>>;

  /// Makes the context's interceptors: those of the creators from `position` on, then gRPC's global
  /// interceptor. A position beyond creators.size() makes no interceptor at all.
  static experimental::ClientRpcInfo* intercept(ClientContext& context,
                                                const RpcMethod& method,
                                                ChannelInterface* channel,
                                                const Creators& creators,
                                                std::size_t position) {
    return context.set_client_rpc_info(method.name(),
                                       method.suffix_for_stats(),
                                       method.method_type(),
                                       channel,
                                       creators,
                                       position);
  }

  /// Makes `call` the call of the context. May be called once per context. Takes over the reference
  /// to `call`, and applies settings that were made in the context before: credentials,
  /// cancellation. `owned` lives until ~ClientContext, which destroys it after the call's reference
  /// and the interceptors.
  static void set_call(ClientContext& context, grpc_call* call, std::shared_ptr<void> owned) {
    context.set_call(call, std::shared_ptr<Channel>(std::move(owned), nullptr));
  }

  static std::shared_ptr<void> owned(const ClientContext& context) { return context.channel_; }

  static void own(ClientContext& context, std::shared_ptr<void> owned) {
    context.channel_ = std::shared_ptr<Channel>(std::move(owned), nullptr);
  }

  /// Attaches `what` to a context that has no call yet. An interceptor's factory uses it to pass an
  /// object to the code that makes the context's interceptors. set_call() removes the attachment.
  static void attach(ClientContext& context, void* what) {
    context.channel_ =
        std::shared_ptr<Channel>(std::shared_ptr<void>(), static_cast<Channel*>(what));
  }

  /// The attached object; null: nothing is attached.
  static void* attached(const ClientContext& context) { return context.channel_.get(); }

  /// From now on TryCancel(), peer() and auth_context() act on `call`; the context takes over its
  /// reference. Returns the earlier call. The caller must keep the earlier call until
  /// ~ClientContext, because the application still reads data in that call's arena.
  static grpc_call* rebind(ClientContext& context, grpc_call* call) {
    MutexLock lock(&context.mu_);
    return std::exchange(context.call_, call);
  }

  static bool has_credentials(const ClientContext& context) { return context.creds_ != nullptr; }

  /// Applies the context's credentials to `call`, as gRPC does when it makes a call.
  static void apply_credentials(ClientContext& context, grpc_call* call) {
    if (context.creds_ == nullptr || context.creds_->ApplyToCall(call)) return;
    grpc_call_cancel_with_status(
        call, GRPC_STATUS_CANCELLED, "Failed to set credentials to rpc.", nullptr);
  }

  // --- completion queues --------------------------------------------------

  /// The queue's Shutdown() does not finish before release_cq() was called as often as hold_cq().
  static void hold_cq(CompletionQueue* cq) { cq->RegisterAvalanching(); }

  static void release_cq(CompletionQueue* cq) { cq->CompleteAvalanching(); }
};

}  // namespace grpc::internal

namespace signalbox {

using GrpcAccess = grpc::internal::BlockingUnaryCallImpl<GrpcAccessTag, GrpcAccessTag>;

}  // namespace signalbox
