// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_load.hpp"

#include <random>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>

#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::tools {
namespace {

constexpr std::uint32_t kLeastWorkUs = 1000;
constexpr std::uint32_t kMostWorkUs = 5000;
constexpr int kFirstItem = 100;
constexpr int kLastItem = 999;

}  // namespace

CallPlan demo_calls(double rps, std::uint64_t seed) {
  return {.method = "/signalbox.demo.v1.Orders/Place",
          .call_timeout = std::chrono::seconds(5),
          .max_in_flight = 1'000'000,  // An outage delays calls. None of them is to be dropped.
          .profile = {{.from = rps, .to = rps}},
          .arrivals = Arrivals::kEven,
          .seed = seed,
          .duration = std::chrono::hours(24 * 365)};
}

std::vector<std::string> demo_requests(std::uint64_t seed) {
  std::mt19937_64 dice(seed);
  std::uniform_int_distribution work(kLeastWorkUs, kMostWorkUs);
  std::vector<std::string> requests;
  for (int item = kFirstItem; item <= kLastItem; ++item) {
    demo::v1::PlaceRequest request;
    request.set_item(absl::StrCat("item-", item));
    request.set_work_us(work(dice));
    requests.push_back(request.SerializeAsString());
  }
  return requests;
}

absl::Status make_first_call(const std::shared_ptr<grpc::ChannelInterface>& channel,
                             std::chrono::milliseconds at_most) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + at_most);
  demo::v1::PlaceRequest request;
  request.set_item("warm-up");
  demo::v1::PlaceReply reply;
  const grpc::Status status = demo::v1::Orders::NewStub(channel)->Place(&context, request, &reply);
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the first call failed: ", status.error_message()));
}

FinishedCall finished_call(const NamedCall& call,
                           const std::map<std::string, std::string>& clusters) {
  FinishedCall finished{.due = call.due,
                        .started = call.sent,
                        .ended = call.ended,
                        .ok = call.ok,
                        .code = call.code,
                        .address = call.address,
                        .cluster = {},
                        .error = call.message};
  if (const auto found = clusters.find(call.address); call.ok && found != clusters.end())
    finished.cluster = found->second;
  return finished;
}

}  // namespace signalbox::tools
