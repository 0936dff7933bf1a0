// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_load.hpp"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>

#include "tools/load/report.hpp"
#include "tools/load/schedule.hpp"

namespace signalbox::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kLeastWorkUs = 1000;
constexpr std::uint32_t kMostWorkUs = 5000;
constexpr auto kLastAnswers = std::chrono::seconds(2);  // Time after the last call's deadline.

}  // namespace

struct DemoLoad::Call {
  CallTime due;
  CallTime started;
  bool is_closed_loop = false;
  grpc::ClientContext context;
  demo::v1::PlaceRequest request;
  demo::v1::PlaceReply reply;
};

std::uint64_t DemoLoad::usual_request_bytes() {
  demo::v1::PlaceRequest request;
  request.set_item("item-100");
  request.set_work_us(kMostWorkUs);
  return request.ByteSizeLong();
}

DemoLoad::DemoLoad(const std::shared_ptr<grpc::ChannelInterface>& channel,
                   Options options,
                   std::function<void(const FinishedCall&)> on_finished)
    : stub_(demo::v1::Orders::NewStub(channel)),
      options_(options),
      on_finished_(std::move(on_finished)),
      dice_(options.seed) {}

DemoLoad::~DemoLoad() {
  finish();
}

absl::Status DemoLoad::warm_up(std::chrono::milliseconds at_most) {
  Call call;
  call.context.set_wait_for_ready(true);
  call.context.set_deadline(std::chrono::system_clock::now() + at_most);
  call.request.set_item("warm-up");
  const grpc::Status status = stub_->Place(&call.context, call.request, &call.reply);
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the first call failed: ", status.error_message()));
}

void DemoLoad::start() {
  thread_ = std::thread([this] { run(); });
}

bool DemoLoad::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  return changed_.wait_for(
      lock, options_.call_timeout + kLastAnswers, [this] { return under_way_ == 0; });
}

void DemoLoad::run() {
  const CallTime start = Clock::now();
  Schedule schedule({{.from = options_.rps, .to = options_.rps}}, Arrivals::kEven, options_.seed);
  for (;;) {
    const CallTime due = start + schedule.next();
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_until(lock, due, [this] { return stopping_; })) return;
      ++under_way_;
    }
    send(due);
  }
}

void DemoLoad::send(CallTime due) {
  auto owner = std::make_unique<Call>();
  Call* const call = owner.get();
  call->due = due;
  call->context.set_deadline(std::chrono::system_clock::now() + options_.call_timeout);
  call->request.set_item(absl::StrCat("item-", ++sent_));
  call->request.set_work_us(std::uniform_int_distribution(kLeastWorkUs, kMostWorkUs)(dice_));
  call->is_closed_loop = closed_in_flight_ < kClosedLoopCallers;
  if (call->is_closed_loop) ++closed_in_flight_;
  call->started = Clock::now();
  // The callback is called once, and owns the call. A unique_ptr cannot own it, because
  // std::function needs copyable captures.
  stub_->async()->Place(&call->context,
                        &call->request,
                        &call->reply,
                        [this, call = owner.release()](const grpc::Status& status) {
                          record_end(*call, status);
                          if (call->is_closed_loop) --closed_in_flight_;
                          delete call;
                          const std::lock_guard lock(mutex_);
                          --under_way_;
                          changed_.notify_all();
                        });
}

void DemoLoad::record_end(const Call& call, const grpc::Status& status) {
  FinishedCall finished{.due = call.due,
                        .started = call.started,
                        .ended = Clock::now(),
                        .ok = status.ok(),
                        .code = status.error_code(),
                        .is_closed_loop = call.is_closed_loop,
                        .peer = call.context.peer(),
                        .cluster = call.reply.cluster(),
                        .error = {}};
  if (!status.ok()) {
    finished.error =
        absl::StrCat("code ", static_cast<int>(status.error_code()), ", ", status.error_message());
  }
  on_finished_(finished);
}

}  // namespace signalbox::tools
