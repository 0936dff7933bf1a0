// SPDX-License-Identifier: Apache-2.0
#include "messages/resource_dump.hpp"

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

struct Row {
  ResourceStatus status;
  absl::string_view word;
  absl::string_view state;
  absl::string_view state_if_cached;
};

const Row kRows[] = {
    {ResourceStatus::kRequested, "REQUESTED", "requested", "requested"},
    {ResourceStatus::kDoesNotExist,
     "DOES_NOT_EXIST",
     "does_not_exist",
     "does_not_exist_but_cached"},
    {ResourceStatus::kAcked, "ACKED", "acked", "acked"},
    {ResourceStatus::kNacked, "NACKED", "nacked", "nacked_but_cached"},
    {ResourceStatus::kReceivedError,
     "RECEIVED_ERROR",
     "received_error",
     "received_error_but_cached"},
    {ResourceStatus::kTimeout, "TIMEOUT", "timeout", "timeout"},
};

TEST_CASE("a resource's state has the words of the API and of the metrics [A40] [A88]") {
  for (const Row& row : kRows) {
    ResourceState state;
    state.status = row.status;
    CHECK(to_string(row.status) == row.word);
    CHECK(cache_state(state) == row.state);
    state.updated = WallTime();
    CHECK(cache_state(state) == row.state_if_cached);
  }
}

}  // namespace
}  // namespace signalbox
