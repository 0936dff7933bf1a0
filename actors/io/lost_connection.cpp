// SPDX-License-Identifier: Apache-2.0
#include "actors/io/lost_connection.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include <grpc/support/alloc.h>
#include <grpcpp/completion_queue.h>

#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_poller.hpp"
#include "actors/io/socket_channels.hpp"
#include "lb/subchannel/disconnect_reason.hpp"

namespace signalbox::actors {
namespace {

/// The longest wait of a call of the program until a connection has left READY, or a transport has
/// refused a call. The call's deadline may end the wait before.
constexpr std::chrono::milliseconds kMoment(1000);

/// The longest time until find_reach() answers. It blocks no thread, so that it may be longer.
constexpr std::chrono::seconds kLongest(2);

/// The method of the call that asks a transport whether it takes calls. If the transport takes the
/// headers, the call is cancelled: at once by reach_of(), after kLongest by find_reach(). The
/// server then sees a health check that is cancelled.
constexpr char kAsking[] = "/grpc.health.v1.Health/Check";

/// The facts about a failed call, and the text to which they refer.
struct Failure {
  std::string error;
  CallFacts facts;

  Reach judge(absl::FunctionRef<bool()> leaves_ready) {
    facts.error = error;
    return judge_reach(facts, leaves_ready);
  }
};

/// Reads the facts about a call, and records the reason if gRPC has lost the connection.
Failure learn(grpc::ClientContext& context, const GrpcConnection& connection, bool was_taken) {
  Failure failure{.error = context.debug_error_string(), .facts = {}};
  failure.facts = {.error = {},
                   .trailer_entries = GrpcAccess::trailer_entries(context),
                   .has_headers = GrpcAccess::has_headers(context),
                   .has_no_transport = has_no_transport(context.c_call()),
                   .was_taken = was_taken};
  if (failure.facts.trailer_entries <= 1 ||
      absl::StrContains(failure.error, "grpc_message:\"GOAWAY received")) {
    const char* const reason = lb::disconnect_reason(failure.error);
    if (reason != absl::string_view(lb::kUnknownReason)) connection.record_loss(reason);
  }
  return failure;
}

/// nullopt: only the transport knows.
std::optional<bool> known_loss(const GrpcConnection& connection) {
  if (!connection.is_ready()) return true;
  if (connection.server_says_goaway()) return false;
  return std::nullopt;
}

/// Whether the connection is lost. A call has waited since `begun`, and has seen that it is
/// (`is_lost`), or has not seen it.
bool conclude(const GrpcConnection& connection, bool is_lost, Instant begun) {
  if (connection.is_socket()) {
    if (is_lost) connection.lose();
    return is_lost;
  }
  // If the process stood still, the time can be over before gRPC changes the state.
  if (is_lost || !connection.is_ready()) return true;
  connection.record_vain_wait(begun, std::chrono::steady_clock::now());
  return false;
}

// --- waiting ----------------------------------------------------------------------

std::chrono::milliseconds longest_wait(const grpc::ClientContext& context) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      context.deadline() - std::chrono::system_clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), kMoment);
}

/// For a connection from a socket. False also if the transport has not answered in time.
bool refuses_calls(const GrpcConnection& connection, std::chrono::milliseconds limit) {
  grpc::CompletionQueue queue;
  const grpc::ClientContext context;
  grpc_call* const call = GrpcAccess::make_call(
      connection.c_channel(), kAsking, context, queue.cq(), connection.authority());
  return !send_headers(call, queue, limit).were_taken.value_or(true);
}

/// For a connection that gRPC has made. gRPC reports a GOAWAY to calls a moment before it changes
/// the channel's state.
bool leaves_ready(const GrpcConnection& connection, std::chrono::milliseconds limit) {
  grpc::CompletionQueue queue;
  grpc_channel_watch_connectivity_state(connection.c_channel(),
                                        GRPC_CHANNEL_READY,
                                        grpc_deadline(std::chrono::steady_clock::now() + limit),
                                        queue.cq(),
                                        nullptr);
  const grpc_event left =
      grpc_completion_queue_next(queue.cq(), gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
  grpc_completion_queue_shutdown(queue.cq());
  grpc_completion_queue_next(queue.cq(), gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
  return left.success != 0;
}

bool wait_for_loss(const GrpcConnection& connection, std::chrono::milliseconds limit) {
  if (const auto is_lost = known_loss(connection)) return *is_lost;
  const Instant begun = std::chrono::steady_clock::now();
  const bool is_lost =
      connection.is_socket() ? refuses_calls(connection, limit) : leaves_ready(connection, limit);
  return conclude(connection, is_lost, begun);
}

// --- without waiting --------------------------------------------------------------

/// Whether the connection is known to be lost.
using Told = std::function<void(bool is_lost)>;

/// For a connection from a socket: sends a call's headers, and cancels the call after kLongest. A
/// refused call never has a transport. After kLongest nothing is known: a cancelled call does not
/// show whether a transport had it, and the process may have stood still meanwhile.
void ask_transport(const GrpcConnection& connection, Told told) {
  const GrpcPoller::Hold hold;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLongest);
  grpc_call* const call = GrpcAccess::make_call(
      connection.c_channel(), kAsking, context, hold.callback_queue(), connection.authority());
  watch_end(call, /*send=*/true, [hold, call, told = std::move(told)](const absl::Status& status) {
    const bool is_refused = absl::IsUnavailable(status) && has_no_transport(call);
    grpc_call_unref(call);
    told(is_refused);
  });
}

/// For a connection that gRPC has made: waits for kLongest until it has left READY.
struct Leaving : grpc_completion_queue_functor {
  explicit Leaving(Told to) : told(std::move(to)) {
    functor_run = &Leaving::run;
    inlineable = 0;
  }

  static void run(grpc_completion_queue_functor* functor, int changed) {
    const std::unique_ptr<Leaving> self(static_cast<Leaving*>(functor));
    self->told(changed != 0);
  }

  const GrpcPoller::Interest interest;  // Keeps the poller running until run().
  const Told told;
};

void watch_state(const GrpcConnection& connection, Told told) {
  auto* const leaving = new Leaving(std::move(told));
  grpc_channel_watch_connectivity_state(connection.c_channel(),
                                        GRPC_CHANNEL_READY,
                                        grpc_deadline(std::chrono::steady_clock::now() + kLongest),
                                        leaving->interest.callback_queue(),
                                        leaving);
}

}  // namespace

// grpc_call_get_peer() returns the channel's target until a transport has taken the call and named
// its peer. After the call was cancelled, the function returns the target again.
bool has_no_transport(grpc_call* call) {
  char* const peer = grpc_call_get_peer(call);
  const bool has_none = is_grpc_target(peer);
  gpr_free(peer);
  return has_none;
}

Reach reach_of(grpc::ClientContext& context, const GrpcConnection& connection, bool was_taken) {
  return learn(context, connection, was_taken).judge([&] {
    return wait_for_loss(connection, longest_wait(context));
  });
}

void find_reach(grpc::ClientContext& context,
                const std::shared_ptr<const GrpcConnection>& connection,
                bool was_taken,
                std::function<void(Reach reach)> found) {
  Failure failure = learn(context, *connection, was_taken);
  bool is_asked = false;
  const Reach reach = failure.judge([&] { return !std::exchange(is_asked, true); });
  if (!is_asked) return found(reach);
  if (const auto is_lost = known_loss(*connection))
    return found(failure.judge([&] { return *is_lost; }));
  Told told = [failure = std::move(failure),
               found = std::move(found),
               weak = std::weak_ptr<const GrpcConnection>(connection),
               begun = std::chrono::steady_clock::now()](bool is_lost) {
    if (const auto still = weak.lock()) is_lost = conclude(*still, is_lost, begun);
    Failure judged = failure;
    found(judged.judge([&] { return is_lost; }));
  };
  if (connection->is_socket()) return ask_transport(*connection, std::move(told));
  watch_state(*connection, std::move(told));
}

bool is_from_server(grpc::ClientContext& context, Reach reach) {
  return reach == Reach::kServer && GrpcAccess::trailer_entries(context) > 1;
}

}  // namespace signalbox::actors
