// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filtered_call.hpp"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/call_filter.hpp"
#include "messages/header_rules.hpp"

namespace signalbox::lb {
namespace {

// The longest sum of delays. No call waits for a century, and a longer sum could overflow.
constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);

class FilteredCall final : public FilterCall {
 public:
  FilteredCall(const PickArgs& args, Selection& selection, const SessionTerms& sessions)
      : args_(args), selection_(selection), sessions_(sessions), headers_(args.headers, nullptr) {}

  /// Runs the filter. Returns true if it has ended the call; no later filter runs then.
  template <typename Sink>
  bool ask(const CallFilter& filter, std::uint64_t position, const Sink& sink) {
    position_ = position;
    if constexpr (Sink::kTells) {
      tell(filter, sink);
    } else {
      filter.apply(*this);
    }
    return said_ != nullptr && said_->end.has_value();
  }

  FilterVerdict verdict() { return {std::move(said_), std::move(session_)}; }

  absl::string_view path() const override { return args_.path; }

  const HeaderSource& headers() const override {
    return said_ == nullptr && args_.headers != nullptr ? *args_.headers : headers_;
  }

  std::uint64_t draw_below(Salt salt, std::uint64_t bound) const override {
    return signalbox::draw_below(args_.seed, salt, bound, position_);
  }

  const ClusterName& cluster() const override { return selection_.cluster->name(); }

  bool has_choice() const override { return selection_.choices.size() > 1; }

  bool send_to(absl::string_view cluster) override {
    const auto found = std::ranges::find_if(selection_.choices, [&](const RouteCluster& choice) {
      return choice.cluster->name().str() == cluster;
    });
    if (found == selection_.choices.end()) return false;
    selection_.cluster = found->cluster.get();
    selection_.place = found->place;
    return true;
  }

  void delay(Duration duration, std::shared_ptr<const void> hold) override {
    if (duration <= Duration::zero()) return;
    Filtered& filtered = say();
    filtered.delay += std::min(duration, kLongest - filtered.delay);
    if (hold != nullptr) filtered.holds.push_back(std::move(hold));
  }

  void end(absl::Status status) override { say().end = std::move(status); }

  SessionHint* begin_session() override {
    if (session_ != nullptr) return nullptr;
    session_ = make_session(sessions_);
    return session_.get();
  }

  bool add_header(std::string name, std::string value) override {
    const bool is_reserved = absl::StartsWith(name, "grpc-");
    if (is_reserved || !is_header_name(name) || !is_header_value(name, value)) return false;
    // The session's cookie may be a view into a header, and headers move when their list grows. So
    // the session copies the cookie before.
    if (session_ != nullptr) session_->keep();
    say().headers.emplace_back(std::move(name), std::move(value));
    return true;
  }

 private:
  // Runs the filter for an explanation, and tells what the filter decided about the call.
  void tell(const CallFilter& filter, const Telling& sink) {
    const Duration waited = said_ == nullptr ? Duration::zero() : said_->delay;
    const std::size_t headers = said_ == nullptr ? 0 : said_->headers.size();
    const ClusterRef* const cluster = selection_.cluster;
    filter.explain(*this, sink.trace());
    const auto step = [&](std::string decision) {
      sink.tell([&] {
        return PickStep{absl::StrCat("filter ", position_), std::move(decision), "", kFilterSource};
      });
    };
    if (cluster != selection_.cluster) step("to cluster " + selection_.cluster->name().str());
    if (said_ == nullptr) return;
    if (said_->delay > waited)
      step(absl::StrCat("the call waits for ", shown(said_->delay - waited)));
    for (std::size_t i = headers; i < said_->headers.size(); ++i)
      step(absl::StrCat("adds header \"", said_->headers[i].first, "\""));
    if (said_->end) step(absl::StrCat("ends the call: ", said_->end->ToString()));
  }

  Filtered& say() {
    if (said_ == nullptr) {
      said_ = std::make_unique<Filtered>();
      headers_ = FilteredHeaders(args_.headers, said_.get());
    }
    return *said_;
  }

  const PickArgs& args_;
  Selection& selection_;
  const SessionTerms& sessions_;
  FilteredHeaders headers_;
  std::uint64_t position_ = 0;
  std::unique_ptr<Filtered> said_;
  SessionPtr session_;
};

}  // namespace

void FilteredHeaders::each(absl::string_view name,
                           absl::FunctionRef<void(absl::string_view value)> visit) const {
  if (own_ != nullptr) own_->each(name, visit);
  if (filtered_ == nullptr) return;
  for (const auto& [added, value] : filtered_->headers) {
    if (added == name) visit(value);
  }
}

namespace {

template <typename Sink>
FilterVerdict ask_filters(const PickArgs& args,
                          Selection& selection,
                          const SessionTerms& sessions,
                          const Sink& sink) {
  FilteredCall call(args, selection, sessions);
  std::uint64_t position = 0;
  for (const CallFilterPtr& filter : selection.filters->filters) {
    if (call.ask(*filter, position++, sink)) break;
  }
  return call.verdict();
}

}  // namespace

FilterVerdict apply_filters(const PickArgs& args,
                            Selection& selection,
                            const SessionTerms& sessions) {
  return ask_filters(args, selection, sessions, Silent{});
}

FilterVerdict explain_filters(const PickArgs& args,
                              Selection& selection,
                              const SessionTerms& sessions,
                              PickTrace& trace) {
  return ask_filters(args, selection, sessions, Telling{trace});
}

}  // namespace signalbox::lb
