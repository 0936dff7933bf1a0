// SPDX-License-Identifier: Apache-2.0
//
// A control plane that sends too much.
#include <string>

#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

// `resource` with `size` bytes more, in an unknown field: number 1000, of type bytes.
xds::ResourceBytes padded(xds::ResourceBytes resource, std::size_t size) {
  const auto add_varint = [&](std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U)
      resource.bytes.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
    resource.bytes.push_back(static_cast<char>(value));
  };
  add_varint((1000U << 3U) | 2U);
  add_varint(size);
  resource.bytes.append(size, 'x');
  return resource;
}

}  // namespace

TEST_CASE("runtime: a response of 65 MiB is told, counted, and changes nothing",
          "[e2e][runtime][B7]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  const auto plane = start_plane(simple_yaml("orders", "c", {before.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");
  CHECK(metric(*runtime, "signalbox_config_rejected_total", {"reason=\"limit\""}) == 0.0);

  Traffic traffic(channel, 1);
  const auto endpoints = resources(endpoints_yaml("c", {{after.address}}));
  plane->update({padded(endpoints.at(0), 65 * kMiB)});
  // Each new stream brings the response again, so the rejections continue.
  CHECK(eventually([&] {
    return metric(*runtime, "signalbox_config_rejected_total", {"reason=\"limit\""}) >= 2.0;
  }));
  CHECK(call(channel).cluster == "before");
  CHECK(eventually([&] {
    const Answer answer = call(runtime->channel("xds:///unknown"));
    return answer.status.error_message().find("(limit max_message_bytes)") != std::string::npos;
  }));

  // 63 MiB are below the limit.
  plane->update({padded(endpoints.at(0), 63 * kMiB)});
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  CHECK(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 1.0; }));
  CHECK(traffic.finish() == std::vector<std::string>{});
}

}  // namespace signalbox::test
