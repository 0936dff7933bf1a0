// SPDX-License-Identifier: Apache-2.0
//
// The pre-stop hook of a backend: a call that ends when the test says so. A pod that makes the call
// before it stops therefore stops when the test wants.
//
//   pod ── Hook ─▶ [HookService] waits ◀── SetReturnStatus ◀── test
//   pod ── Hook ─▶ [PreStopHook] waits ◀── return_status ◀── SendHookRequest ◀── test
//
// All are thread-safe.

#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <grpcpp/server.h>

#include "tests/interop/psm/grpc_testing.grpc.pb.h"

namespace signalbox::psm {

class HookService final : public grpc::testing::HookService::CallbackService {
 public:
  /// The status of the call that has waited longest, else of the next call.
  void answer_one(const grpc::Status& status);
  /// Ends the waiting calls, and all that come.
  void abort();

 private:
  using Empty = grpc::testing::Empty;

  grpc::ServerUnaryReactor* Hook(grpc::CallbackServerContext* context,
                                 const Empty* request,
                                 Empty* response) override;
  grpc::ServerUnaryReactor* SetReturnStatus(grpc::CallbackServerContext* context,
                                            const grpc::testing::SetReturnStatusRequest* request,
                                            Empty* response) override;
  grpc::ServerUnaryReactor* ClearReturnStatus(grpc::CallbackServerContext* context,
                                              const Empty* request,
                                              Empty* response) override;
  void set_all(const std::optional<grpc::Status>& status);
  void match();

  std::mutex mutex_;
  std::deque<grpc::ServerUnaryReactor*> waiting_;
  std::deque<grpc::Status> answers_;         ///< For one call each.
  std::optional<grpc::Status> all_answers_;  ///< For the calls without an answer of their own.
};

/// A HookService on a server of its own.
class PreStopHook {
 public:
  PreStopHook() = default;
  ~PreStopHook();
  PreStopHook(const PreStopHook&) = delete;
  PreStopHook& operator=(const PreStopHook&) = delete;

  /// Serves the hook on `address`. ALREADY_EXISTS: it is served. UNAVAILABLE: listening failed.
  grpc::Status start(const std::string& address);
  /// Ends the server; waiting calls fail ABORTED. UNAVAILABLE: the hook is not served.
  grpc::Status stop();
  /// HookService::answer_one(). UNAVAILABLE: the hook is not served.
  grpc::Status return_status(const grpc::Status& status);

 private:
  std::mutex mutex_;
  std::unique_ptr<HookService> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace signalbox::psm
