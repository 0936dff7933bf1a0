// SPDX-License-Identifier: Apache-2.0
#include "xds/client/request_turn.hpp"

namespace signalbox::xds {

RequestTurn::RequestTurn(const RequestTurnOptions& options, std::uint64_t seed)
    : options_(options), waits_(options.wait, seed) {}

void RequestTurn::asked(Change change, Instant now) {
  if (now - since_ >= options_.patience) answered();
  const bool adds = change == Change::kAdds || unanswered_ == Unanswered::kAddition;
  unanswered_ = adds ? Unanswered::kAddition : Unanswered::kRemoval;
  since_ = now;
}

void RequestTurn::answered() {
  unanswered_ = Unanswered::kNothing;
  waits_.reset();
}

bool RequestTurn::must_wait(Change change, Instant now) const {
  if (now - since_ >= options_.patience) return false;
  switch (unanswered_) {
    case Unanswered::kNothing:
      return false;
    case Unanswered::kRemoval:
      return change == Change::kRemoves;
    case Unanswered::kAddition:
      return true;
  }
  return false;
}

}  // namespace signalbox::xds
