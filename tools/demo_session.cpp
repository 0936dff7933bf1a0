// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_session.hpp"

#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>

#include "tools/load/peer.hpp"

namespace signalbox::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr auto kCallTimeout = std::chrono::seconds(5);
constexpr std::uint32_t kWorkUs = 1000;

}  // namespace

DemoSession::DemoSession(const std::shared_ptr<grpc::ChannelInterface>& channel,
                         std::function<void(const FinishedCall&)> on_finished)
    : stub_(demo::v1::Orders::NewStub(channel)),
      on_finished_(std::move(on_finished)),
      thread_([this] { run(); }) {}

DemoSession::~DemoSession() {
  finish();
}

absl::StatusOr<std::string> DemoSession::settle(const std::string& cluster,
                                                std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, at_most, [&] { return cluster_ == cluster; }))
    return absl::InternalError(absl::StrCat("the session has not come back to ", cluster));
  if (jar_.cookie_header("").empty()) return "";
  settled_ = true;
  return backend_;
}

void DemoSession::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t DemoSession::moves() const {
  const std::lock_guard lock(mutex_);
  return moves_;
}

void DemoSession::run() {
  for (;;) {
    on_finished_(call());
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kPause, [this] { return stopping_; })) return;
  }
}

FinishedCall DemoSession::call() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  jar_.send(context);
  demo::v1::PlaceRequest request;
  request.set_item("session");
  request.set_work_us(kWorkUs);
  demo::v1::PlaceReply reply;
  const CallTime started = Clock::now();
  const grpc::Status status = stub_->Place(&context, request, &reply);
  const absl::Status received = jar_.receive(context);
  FinishedCall finished{.due = started,
                        .started = started,
                        .ended = Clock::now(),
                        .ok = status.ok() && received.ok(),
                        .code = status.error_code(),
                        .is_of_session = true,
                        .address = address_of_peer(context.peer()),
                        .cluster = reply.cluster(),
                        .error = {}};
  if (status.ok()) record_answer(reply);
  if (!status.ok())
    finished.error =
        absl::StrCat("code ", static_cast<int>(status.error_code()), ": ", status.error_message());
  else if (!received.ok())
    finished.error = std::string(received.message());
  return finished;
}

void DemoSession::record_answer(const demo::v1::PlaceReply& reply) {
  const std::lock_guard lock(mutex_);
  if (settled_ && reply.backend() != backend_) ++moves_;
  backend_ = reply.backend();
  cluster_ = reply.cluster();
  changed_.notify_all();
}

}  // namespace signalbox::tools
