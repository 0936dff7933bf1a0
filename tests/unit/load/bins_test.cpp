// SPDX-License-Identifier: Apache-2.0
#include "tools/load/bins.hpp"

#include <catch2/catch.hpp>

#include "tests/support/example_load.hpp"

namespace signalbox::tools {

TEST_CASE("load bins: bins that are joined have the calls and percentiles of one bin", "[load]") {
  const LoadSide side = example_side("signalbox", true, 0, 1);
  const auto whole = wider_bins(side.bins, side.bins.size());
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].scheduled == side.validity.scheduled);
  CHECK(whole[0].codes == side.codes);
  CHECK(whole[0].p99_ns == side.from_due.percentile(99));
  CHECK(whole[0].p50_ns == side.from_due.percentile(50));
  CHECK(whole[0].max_ns == side.from_due.max());
  const LatencyHistogram all = histogram_of(whole[0]);
  CHECK(std::ranges::equal(all.counts(), side.from_due.counts()));
  for (std::size_t i = 1; i < whole[0].latencies.size(); ++i)
    CHECK(whole[0].latencies[i - 1].bucket < whole[0].latencies[i].bucket);
}

TEST_CASE("load bins: the last of wider bins has what is left", "[load]") {
  std::vector<LoadBin> bins(5);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    bins[i].sent = i + 1;
    bins[i].shares = {{.endpoint = 0, .place = static_cast<std::uint32_t>(i % 2), .ok = 1}};
  }
  const auto wider = wider_bins(bins, 2);
  REQUIRE(wider.size() == 3);
  CHECK(wider[0].sent == 3);
  CHECK(wider[2].sent == 5);
  CHECK(wider[0].shares.size() == 2);
  CHECK(wider[2].shares.at(0).ok == 1);
  CHECK(wider[0].p99_ns == 0);
}

}  // namespace signalbox::tools
