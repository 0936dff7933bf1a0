// SPDX-License-Identifier: Apache-2.0
//
// A hundred thousand endpoints refuse connections, then two serve. Calls go to these two, and the
// memory of the others returns to the system. The test measures its own memory, so it is a program
// of its own. It does not limit the time that this takes. For that, tests/unit/lb/scale_test counts
// the messages until a good endpoint serves, and lets no timer run until then.
#include <chrono>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <malloc.h>

#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using envoy::config::endpoint::v3::ClusterLoadAssignment;

constexpr auto kLongPatience = std::chrono::minutes(5);
// Shares of the memory that the refused endpoints took.
constexpr double kMostKept = 0.1;   // The heap keeps whole pages for small blocks in use.
constexpr double kMostUsed = 0.01;  // Of the blocks in use.
constexpr double kMegabyte = 1e6;

// AddressSanitizer keeps freed memory, and a stack trace for each allocation. With 100,000
// endpoints the test took half an hour and 8 GB.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kRefused = 5'000;
constexpr bool kIsMemoryOurs = false;
#else
constexpr int kRefused = 100'000;
constexpr bool kIsMemoryOurs = true;
#endif

// Endpoints 127.1.0.0, 127.1.0.1, …, all with the port of `refusing`, where nothing listens.
xds::ResourceBytes refused_endpoints(const std::string& refusing) {
  const auto port = static_cast<unsigned>(std::stoul(refusing.substr(refusing.rfind(':') + 1)));
  ClusterLoadAssignment assignment;
  assignment.set_cluster_name("c");
  auto* const locality = assignment.add_endpoints();
  locality->mutable_locality()->set_region("r");  // The same locality as that of endpoints_yaml().
  locality->mutable_locality()->set_zone("z0");
  locality->mutable_load_balancing_weight()->set_value(1);
  for (int i = 0; i < kRefused; ++i) {
    auto* const socket = locality->add_lb_endpoints()
                             ->mutable_endpoint()
                             ->mutable_address()
                             ->mutable_socket_address();
    socket->set_address(absl::StrCat("127.", 1 + (i >> 16), ".", (i >> 8) & 0xff, ".", i & 0xff));
    socket->set_port_value(port);
  }
  return {std::string(xds::kClusterLoadAssignmentTypeUrl), "c", assignment.SerializeAsString()};
}

double resident_megabytes() {
  std::ifstream lines("/proc/self/status");
  std::string word;
  while (lines >> word) {
    double kib = 0;
    if (word == "VmRSS:" && lines >> kib) return kib * 1024 / 1e6;
    std::getline(lines, word);
  }
  FAIL("no VmRSS");
  return 0;
}

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

double used_megabytes() {
  const auto heap = ::mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd) / kMegabyte;
}

std::string memory_text() {
  const auto heap = ::mallinfo2();
  return absl::StrCat(resident_megabytes(),
                      " MB resident; of the heap ",
                      used_megabytes(),
                      " MB in use, ",
                      static_cast<double>(heap.fordblks) / kMegabyte,
                      " MB free");
}

bool both_serve(Stub& stub) {
  bool one = false;
  bool two = false;
  return eventually([&] {
    const Answer answer = call(stub, {.wait_for_ready = true});
    one = one || (answer.ok() && answer.cluster == "one");
    two = two || (answer.ok() && answer.cluster == "two");
    return one && two;
  });
}

}  // namespace

TEST_CASE("runtime: after 100,000 refused endpoints two good ones serve, and the memory returns",
          "[e2e][runtime][scale][memory]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  const RefusingAddress refusing;
  const auto good = resources(endpoints_yaml("c", {{one.address, two.address}}));
  const auto plane = start_plane(simple_yaml("orders", "c", {one.address, two.address}));
  RuntimeOptions options = options_for(plane->address());
  // The back-off of an hour means that each endpoint is tried once. Endpoints must be removable
  // while they back off.
  options.initial_backoff = 1h;
  options.max_backoff = 1h;
  const auto runtime = start_runtime(std::move(options));
  Stub stub(runtime->channel("xds:///orders"));
  REQUIRE(both_serve(stub));
  for (int i = 0; i < 1'000; ++i)
    REQUIRE(call(stub).ok());
  const double at_start = resident_megabytes();
  const double used_at_start = used_megabytes();
  WARN("two endpoints: " << memory_text());

  const auto begun = std::chrono::steady_clock::now();
  plane->update({refused_endpoints(refusing.address())});
  REQUIRE(eventually(
      [&] {
        return metric(*runtime, "signalbox_endpoints", {"state=\"transient_failure\""}) == kRefused;
      },
      kLongPatience));
  const double all_refused = resident_megabytes();
  const double used_by_refused = used_megabytes() - used_at_start;
  WARN("all refused after " << seconds_since(begun) << " s: " << memory_text());
  CHECK(call(stub).status.error_code() == grpc::StatusCode::UNAVAILABLE);

  const auto told = std::chrono::steady_clock::now();
  plane->update(good);
  CHECK(both_serve(stub));
  WARN("two endpoints serve after " << seconds_since(told) << " s: " << memory_text());
  for (int i = 0; i < 1'000; ++i)
    REQUIRE(call(stub).ok());
  const double most_at_rest = at_start + kMostKept * (all_refused - at_start);
  CHECK(eventually([&] { return !kIsMemoryOurs || resident_megabytes() <= most_at_rest; },
                   kLongPatience));
  const double most_used = used_at_start + kMostUsed * used_by_refused;
  CHECK(eventually([&] { return !kIsMemoryOurs || used_megabytes() <= most_used; }, kLongPatience));
  WARN("at rest after " << seconds_since(told) << " s: " << memory_text());
}

}  // namespace signalbox::test
