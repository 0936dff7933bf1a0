// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/picks.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::stress {

void PickUser::call(const RouterPtr& router) {
  const std::string path = method_of(static_cast<Shape>(below(random_, 4)));
  const CallArgs args{path, nullptr, random_()};
  Pick pick = router->pick(args);
  check(pick);
  for (int i = below(random_, 4); i > 0 && pick.outcome() != PickOutcome::kComplete; --i) {
    if (pick.outcome() == PickOutcome::kDrop) return;
    wait_for_change(router, pick);
    router->repick(pick, args);
    check(pick);
  }
  if (pick.outcome() == PickOutcome::kComplete) start(router, std::move(pick));
}

void PickUser::check(const Pick& pick) {
  const bool complete = pick.outcome() == PickOutcome::kComplete;
  const bool whole = complete ? pick.connection() != nullptr && pick.cluster() != nullptr
                              : pick.connection() == nullptr;
  if (!whole) ledger_.report("a pick is torn");
  if (complete && !absl::StartsWith(pick.connection()->address().str(), "127.0.0.1:"))
    ledger_.report("a pick leads nowhere");
  const bool fails = pick.outcome() == PickOutcome::kFail || pick.outcome() == PickOutcome::kDrop;
  if (fails && pick.status().code() != absl::StatusCode::kUnavailable)
    ledger_.report(absl::StrCat("a pick fails unexpectedly: ", pick.status().ToString()));
}

void PickUser::wait_for_change(const RouterPtr& router, const Pick& pick) {
  if (!one_in(random_, 3)) {
    router->wait(pick, Clock::now() + milliseconds(below(random_, 30)));
    return;
  }
  const auto notice = notices_.emplace_back(std::make_shared<Notice>());
  const auto registered = router->on_change(pick, [notice, router] {
    ++notice->calls;
    router->pick({method_of(Shape::kUnary), nullptr, 1});
  });
  notice->cancelled = one_in(random_, 4) && registered.cancel();
}

void PickUser::start(const RouterPtr& router, Pick pick) {
  ++completed_;
  router->started(pick);
  held_.push_back({router, std::move(pick)});
  while (held_.size() > static_cast<std::size_t>(below(random_, 24)))
    end_oldest();
}

void PickUser::end_oldest() {
  Held oldest = std::move(held_.front());
  held_.pop_front();
  check(oldest.pick);
  oldest.router->finished(oldest.pick, below(random_, 17));
}

void PickUser::finish() {
  while (!held_.empty())
    end_oldest();
  const auto once = [](const auto& notice) { return notice->calls == (notice->cancelled ? 0 : 1); };
  const auto wrong = std::ranges::count_if(notices_, std::not_fn(once));
  if (wrong != 0)
    ledger_.report(absl::StrCat(wrong, " of ", notices_.size(), " on_change() not called once"));
}

}  // namespace signalbox::stress
