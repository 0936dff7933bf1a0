// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/custom_picker.hpp"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

// The fault in the result of the user's picker; null: the result is valid.
const char* what_is_wrong(const PickResult& result) {
  return std::visit(
      Overloaded{
          [](const Complete& it) -> const char* {
            return it.connection == nullptr ? "completed without a connection" : nullptr;
          },
          [](const Queue&) -> const char* { return nullptr; },
          [](const Fail& it) -> const char* { return it.status.ok() ? "failed with OK" : nullptr; },
          [](const Drop& it) -> const char* {
            return it.status.ok() ? "dropped with OK" : nullptr;
          },
      },
      result.outcome);
}

class CustomPicker final : public Picker {
 public:
  CustomPicker(std::string policy,
               PickerPtr own,
               LocalityName caller,
               std::shared_ptr<const StripedCounters<1>> failures)
      : policy_(std::move(policy)),
        own_(std::move(own)),
        caller_(std::move(caller)),
        failures_(std::move(failures)) {}

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  // If the user's picker does not override explain(), this calls its pick(), with the side effects
  // that pick() has.
  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    const Telling sink{trace};
    PickResult result = decide(args, sink);
    sink.tell([&] {
      const auto* chosen = std::get_if<Complete>(&result.outcome);
      return PickStep{policy_,
                      chosen != nullptr ? shown(*chosen) : "no endpoint",
                      "the picker of a policy of the program's own says so",
                      "CDS"};
    });
    return result;
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    try {
      PickResult result = sink.ask(*own_, args);
      if (const char* const wrong = what_is_wrong(result)) return failed(wrong, sink);
      // The user's picker may have set a connection without its use counter, which the router
      // needs.
      if (auto* it = std::get_if<Complete>(&result.outcome)) {
        it->uses = it->connection->use_counter();
        if (it->endpoint != nullptr && it->endpoint->locality != nullptr)
          it->zone = zone_of(it->endpoint->locality->name, caller_);
      }
      return result;
    } catch (const std::exception& error) {
      return failed(absl::StrCat("threw: ", error.what()), sink);
    } catch (...) {
      return failed("threw", sink);
    }
  }

  template <typename Sink>
  PickResult failed(absl::string_view why, const Sink& sink) const {
    if (failures_ != nullptr) sink.leave([&] { failures_->add(0, 1); });
    PickResult result;
    result.outcome =
        Fail{absl::InternalError(absl::StrCat("the picker of custom policy ", policy_, " ", why))};
    return result;
  }

  const std::string policy_;
  const PickerPtr own_;
  const LocalityName caller_;
  const std::shared_ptr<const StripedCounters<1>> failures_;
};

}  // namespace

PickerPtr make_custom_picker(std::string policy,
                             PickerPtr own,
                             LocalityName caller,
                             std::shared_ptr<const StripedCounters<1>> failures) {
  return std::make_shared<const CustomPicker>(
      std::move(policy), std::move(own), std::move(caller), std::move(failures));
}

}  // namespace signalbox::lb
