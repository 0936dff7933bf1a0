// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/psm/hook_service.hpp"

#include <chrono>
#include <utility>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

namespace signalbox::psm {
namespace {

grpc::Status not_served() {
  return {grpc::StatusCode::UNAVAILABLE, "the pre-stop hook is not served"};
}

grpc::ServerUnaryReactor* done(grpc::CallbackServerContext& context) {
  auto* const call = context.DefaultReactor();
  call->Finish(grpc::Status::OK);
  return call;
}

}  // namespace

void HookService::answer_one(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  answers_.push_back(status);
  match();
}

void HookService::abort() {
  set_all(grpc::Status{grpc::StatusCode::ABORTED, "the pre-stop hook is shut down"});
}

grpc::ServerUnaryReactor* HookService::Hook(grpc::CallbackServerContext* context,
                                            const Empty* /*request*/,
                                            Empty* /*response*/) {
  auto* const call = context->DefaultReactor();
  const std::lock_guard lock(mutex_);
  waiting_.push_back(call);
  match();
  return call;
}

grpc::ServerUnaryReactor* HookService::SetReturnStatus(
    grpc::CallbackServerContext* context,
    const grpc::testing::SetReturnStatusRequest* request,
    Empty* /*response*/) {
  set_all(grpc::Status{static_cast<grpc::StatusCode>(request->grpc_code_to_return()),
                       request->grpc_status_description()});
  return done(*context);
}

grpc::ServerUnaryReactor* HookService::ClearReturnStatus(grpc::CallbackServerContext* context,
                                                         const Empty* /*request*/,
                                                         Empty* /*response*/) {
  set_all(std::nullopt);
  return done(*context);
}

void HookService::set_all(const std::optional<grpc::Status>& status) {
  const std::lock_guard lock(mutex_);
  all_answers_ = status;
  match();
}

void HookService::match() {
  for (; !waiting_.empty() && !answers_.empty(); answers_.pop_front(), waiting_.pop_front())
    waiting_.front()->Finish(answers_.front());
  if (!all_answers_) return;
  for (auto* const call : std::exchange(waiting_, {}))
    call->Finish(*all_answers_);
}

PreStopHook::~PreStopHook() {
  stop();
}

grpc::Status PreStopHook::start(const std::string& address) {
  const std::lock_guard lock(mutex_);
  if (server_ != nullptr)
    return {grpc::StatusCode::ALREADY_EXISTS, "the pre-stop hook is served already"};
  auto service = std::make_unique<HookService>();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(service.get());
  auto server = builder.BuildAndStart();
  if (server == nullptr) return {grpc::StatusCode::UNAVAILABLE, address + ": cannot listen"};
  service_ = std::move(service);
  server_ = std::move(server);
  return grpc::Status::OK;
}

grpc::Status PreStopHook::stop() {
  const std::lock_guard lock(mutex_);
  if (server_ == nullptr) return not_served();
  service_->abort();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  server_.reset();
  service_.reset();
  return grpc::Status::OK;
}

grpc::Status PreStopHook::return_status(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  if (server_ == nullptr) return not_served();
  service_->answer_one(status);
  return grpc::Status::OK;
}

}  // namespace signalbox::psm
