// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/random.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/leaf/petiole.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

class RandomPicker final : public Picker {
 public:
  explicit RandomPicker(ReadyEndpoints ready) : ready_(std::move(ready)) {}

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    std::size_t drawn = draw_below(args.seed, Salt::kEndpoint, ready_.size());
    if (args.tried != nullptr) [[unlikely]]
      drawn = first_untried(ready_, args, drawn);
    sink.tell([&] {
      return PickStep{
          "random",
          shown(ready_[drawn]),
          absl::StrCat("drawn by the call's seed: ", drawn + 1, " of ", ready_.size(), " READY"),
          "CDS"};
    });
    PickResult result;
    result.outcome = ready_[drawn];
    return result;
  }

  ReadyEndpoints ready_;  // Never empty.
};

class Random final : public Petiole {
 public:
  explicit Random(PolicyContext context)
      : Petiole("random", std::move(context), EndpointSet::Connects::kAtOnce) {}

 private:
  PickerPtr make_picker() override {
    if (state() == ConnectivityState::kConnecting) return make_queue_picker();
    if (state() == ConnectivityState::kTransientFailure) return make_fail_picker(failure());
    return std::make_shared<const RandomPicker>(endpoints().ready());
  }
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const RandomConfig& /*config*/, PolicyContext context) {
  return std::make_unique<Random>(std::move(context));
}

}  // namespace signalbox::lb
