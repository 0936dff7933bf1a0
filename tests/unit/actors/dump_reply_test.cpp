// SPDX-License-Identifier: Apache-2.0
#include "actors/dump_reply.hpp"

#include <memory>

#include <catch2/catch.hpp>

namespace signalbox::actors {

TEST_CASE("dump reply: the first answer counts", "[actors][dump]") {
  DumpReply reply;
  auto future = reply.future();
  reply.answer(ResourceDump{.node_id = "first"});
  reply.answer(absl::UnavailableError("second"));
  const auto answer = future.get();
  REQUIRE(answer.ok());
  CHECK(answer->node_id == "first");
}

TEST_CASE("dump reply: whoever lets go of it without a word has said that nobody knows",
          "[actors][dump]") {
  auto reply = std::make_unique<DumpReply>();
  auto future = reply->future();
  reply = nullptr;
  CHECK(future.get().status().code() == absl::StatusCode::kUnavailable);
}

}  // namespace signalbox::actors
