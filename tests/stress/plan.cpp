// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/plan.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "absl/strings/str_cat.h"

namespace signalbox::stress {
namespace {

milliseconds draw_deadline(Random& random) {
  switch (below(random, 8)) {
    case 0:
      return milliseconds(-1);
    case 1:
      return milliseconds(below(random, 3));
    case 2:
    case 3:
      return milliseconds(below(random, 40));
    case 4:
      return milliseconds(below(random, 300));
    default:
      return milliseconds(2'000);
  }
}

}  // namespace

Request Plan::request() const {
  Request request;
  request.set_text(absl::StrCat("call ", id));
  request.set_hold_ms(hold_ms);
  request.set_status(status);
  request.set_replies(messages);
  return request;
}

std::string Plan::to_string() const {
  return absl::StrCat("call ",
                      id,
                      " (",
                      stress::to_string(api),
                      " ",
                      stress::to_string(shape),
                      ", deadline ",
                      deadline.count(),
                      " ms, ",
                      messages,
                      " messages, hold ",
                      hold_ms,
                      " ms",
                      wait_for_ready ? ", wait for ready" : "",
                      cancel_first ? ", cancelled first" : "",
                      cancel_after ? absl::StrCat(", cancelled after ", cancel_after->count()) : "",
                      abandon ? ", abandoned)" : ")");
}

Plan draw_plan(Random& random, Api api) {
  static std::atomic<std::uint64_t> calls{0};
  Plan plan;
  plan.id = ++calls;
  plan.api = api;
  plan.shape = static_cast<Shape>(below(random, 4));
  // The generic stubs support unary calls and bidirectional streams only.
  const bool generic = api == Api::kGenericAsync || api == Api::kGenericCallback;
  if (generic && plan.shape != Shape::kUnary) plan.shape = Shape::kChat;
  plan.deadline = draw_deadline(random);
  plan.wait_for_ready = one_in(random, 3);
  plan.messages = below(random, 4);
  plan.hold_ms = one_in(random, 3) ? below(random, 60) : 0;
  plan.status = one_in(random, 10) ? static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION) : 0;
  // A message tells the server the status, so the call must send one.
  if (plan.status != 0) plan.messages = std::max(plan.messages, 1);
  switch (below(random, 6)) {
    case 0:
      plan.cancel_first = one_in(random, 3);
      break;
    case 1:
    case 2:
      plan.cancel_after = milliseconds(below(random, one_in(random, 2) ? 3 : 50));
      break;
    default:
      break;
  }
  plan.outlive = one_in(random, 2);
  plan.abandon = api == Api::kSync && plan.shape != Shape::kUnary && one_in(random, 16);
  return plan;
}

std::string to_string(Api api) {
  const std::array names{"sync", "async", "callback", "generic async", "generic callback"};
  return names[static_cast<std::size_t>(api)];
}

std::string to_string(Shape shape) {
  const std::array names{"Unary", "Collect", "Feed", "Chat"};
  return names[static_cast<std::size_t>(shape)];
}

std::string method_of(Shape shape) {
  return absl::StrCat("/signalbox.stress.Load/", to_string(shape));
}

}  // namespace signalbox::stress
