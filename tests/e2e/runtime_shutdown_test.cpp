// SPDX-License-Identifier: Apache-2.0
//
// The end of a runtime inside a process that lives on: it does not hang, and it leaves no thread
// and no file behind.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <set>

#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

// The name of a thread; the kernel keeps 15 characters of it.
std::string name_of(const std::filesystem::path& thread) {
  std::ifstream file(thread / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

// The number of threads except those of gRPC's pools, which gRPC shares among all channels and
// servers of the process, and grows and shrinks when it likes.
std::ptrdiff_t count_threads() {
  const std::set<std::string> pools{"default-executo",
                                    "event_engine",
                                    "grpc_global_tim",
                                    "nexting_thread",
                                    "resolver-execut",
                                    "timer_manager"};
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::count_if(begin(threads), end(threads), [&](const auto& thread) {
    return !pools.contains(name_of(thread.path()));
  });
}

// The threads and the file descriptors of this process.
struct Footprint {
  std::ptrdiff_t threads = count_threads();
  std::ptrdiff_t files = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});

  bool exceeds(const Footprint& other) const {
    return threads > other.threads || files > other.files;
  }
};

void check_shut_down(const Answer& answer) {
  INFO(answer.text());
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(answer.status.error_message(), Contains("shut down") && Contains("xds:///orders"));
}

enum class Order { kChannelFirst, kRuntimeFirst };

// One life of a runtime, with traffic until its end.
void live_and_die(const std::string& server, Order order) {
  auto runtime = start_runtime(options_for(server));
  auto channel = runtime->channel("xds:///orders");
  Traffic traffic(channel, 2);
  REQUIRE(eventually([&] { return traffic.completed() > 10; }));
  if (order == Order::kChannelFirst) {
    CHECK(traffic.finish().empty());
    channel = nullptr;
    runtime = nullptr;
    return;
  }
  runtime = nullptr;
  check_shut_down(call(channel));
  for (const std::string& failure : traffic.finish()) {
    CHECK_THAT(failure, Contains("code 14") && Contains("shut down"));
  }
}

}  // namespace

TEST_CASE("runtime: after its end the process has the threads and files that it had before",
          "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  // The first use allocates the state that gRPC keeps for the process.
  live_and_die(plane->address(), Order::kRuntimeFirst);
  live_and_die(plane->address(), Order::kChannelFirst);
  REQUIRE(plane->wait_for([](const DiscoveryRecord& record) { return record.open_streams() == 0; },
                          kPatience));
  const Footprint before;
  for (int i = 0; i < 20; ++i) {
    live_and_die(plane->address(), i % 2 == 0 ? Order::kRuntimeFirst : Order::kChannelFirst);
  }
  INFO("before: " << before.threads << " threads, " << before.files << " files");
  CHECK(eventually([&] { return !Footprint().exceeds(before); }));
  const Footprint now;
  INFO("now: " << now.threads << " threads, " << now.files << " files");
  CHECK_FALSE(now.exceeds(before));
}

TEST_CASE("runtime: calls in flight at its end run to theirs", "[e2e][runtime][shutdown]") {
  HoldingBackend backend("holding");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address()}));
  auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Calls calls(channel);
  calls.start(50, {.item = "hold", .wait_for_ready = true});
  REQUIRE(eventually([&] { return backend.held() == 50; }));

  runtime = nullptr;
  CHECK(calls.running() == 50);
  check_shut_down(call(channel));
  check_shut_down(call(channel, {.wait_for_ready = true}));
  CHECK(channel->GetState(true) == GRPC_CHANNEL_SHUTDOWN);
  backend.release();
  for (const Answer& answer : calls.finish()) {
    INFO(answer.text());
    CHECK(answer.ok());
  }
}

TEST_CASE("runtime: calls that wait at its end fail", "[e2e][runtime][shutdown]") {
  const auto plane = start_plane("");
  auto runtime = start_runtime(options_for(plane->address()));
  auto channel = runtime->channel("xds:///orders");
  Calls calls(channel);
  calls.start(50, {});
  calls.start(50, {.wait_for_ready = true});
  runtime = nullptr;
  for (const Answer& answer : calls.finish())
    check_shut_down(answer);
  channel = nullptr;
}

TEST_CASE("runtime: calls that wait keep a destroyed channel going", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  auto channel = runtime->channel("xds:///orders");
  Calls calls(channel);
  calls.start(20, {.wait_for_ready = true});
  channel = nullptr;
  plane->set_resources(resources(simple_yaml("orders", "c", {backend.address})));
  for (const Answer& answer : calls.finish()) {
    INFO(answer.text());
    CHECK(answer.cluster == "good");
  }
}

TEST_CASE("runtime: may end on another thread than it began", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  auto first = start_runtime(options_for(plane->address()));
  auto second = start_runtime(options_for(plane->address()));
  const auto channel = first->channel("xds:///orders");
  CHECK(call(channel).ok());
  std::promise<void> ended;
  std::thread other([&] {
    first = nullptr;
    ended.set_value();
  });
  REQUIRE(ended.get_future().wait_for(kPatience) == std::future_status::ready);
  other.join();
  check_shut_down(call(channel));
  CHECK(call(second->channel("xds:///orders")).ok());
}

TEST_CASE("runtime: may end in the callback of a call", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  for (int i = 0; i < 5; ++i) {
    auto runtime = start_runtime(options_for(plane->address()));
    auto channel = runtime->channel("xds:///orders");
    Calls others(channel);
    others.start(20, {.work_us = 1000, .wait_for_ready = true});
    Stub stub(channel);
    grpc::ClientContext context;
    const demo::v1::PlaceRequest request;
    demo::v1::PlaceReply reply;
    std::promise<grpc::Status> ended;
    stub.async()->Place(&context, &request, &reply, [&](const grpc::Status& status) {
      runtime = nullptr;
      channel = nullptr;
      ended.set_value(status);
    });
    auto end = ended.get_future();
    REQUIRE(end.wait_for(kPatience) == std::future_status::ready);
    CHECK(end.get().ok());
    for (const Answer& answer : others.finish()) {
      INFO(answer.text());
      CHECK((answer.ok() || answer.status.error_code() == grpc::StatusCode::UNAVAILABLE));
    }
  }
}

TEST_CASE("runtime: channels may go while it ends, on another thread", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  for (int i = 0; i < 20; ++i) {
    auto runtime = start_runtime(options_for(plane->address()));
    std::vector<std::shared_ptr<grpc::ChannelInterface>> channels;
    for (int n = 0; n < 5; ++n)
      channels.push_back(runtime->channel("xds:///orders" + std::to_string(n)));
    channels.push_back(runtime->channel("xds:///orders"));
    CHECK(call(channels.back()).ok());
    std::thread other([&] { channels.clear(); });
    runtime = nullptr;
    other.join();
  }
  CHECK(plane->wait_for([](const DiscoveryRecord& record) { return record.open_streams() == 0; },
                        kPatience));
}

TEST_CASE("runtime: ends at once in every phase of its start", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const RefusingAddress nobody;
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  for (int i = 0; i < 20; ++i) {
    const bool is_refused = i % 4 == 3;
    auto runtime = start_runtime(options_for(is_refused ? nobody.address() : plane->address()));
    auto channel = runtime->channel("xds:///orders");
    Calls calls(channel);
    if (i % 2 == 0) calls.start(3, {.wait_for_ready = true});
    // How far the connection attempt gets depends on chance and on the round's number.
    for (int state = 0; state < i; ++state)
      channel->GetState(true);
    if (i % 3 == 0) channel = nullptr;
    runtime = nullptr;
    for (const Answer& answer : calls.finish()) {
      INFO(answer.text());
      CHECK((answer.ok() || answer.status.error_code() == grpc::StatusCode::UNAVAILABLE));
    }
  }
  CHECK(plane->wait_for([](const DiscoveryRecord& record) { return record.open_streams() == 0; },
                        kPatience));
}

}  // namespace signalbox::test
