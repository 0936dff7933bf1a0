// SPDX-License-Identifier: Apache-2.0
#include "lb/route/fault.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/http_status.hpp"

namespace signalbox::lb {
namespace {

using std::chrono::milliseconds;

// The header's first value that is a number of this type and for which `sense` is true.
template <typename Number, typename Sense>
std::optional<Number> number_in(const HeaderSource& headers, absl::string_view name, Sense sense) {
  std::optional<Number> number;
  headers.each(name, [&](absl::string_view value) {
    Number found = 0;
    if (!number && absl::SimpleAtoi(value, &found) && sense(found)) number = found;
  });
  return number;
}

// The percentage from the header, but at most the configured one. A33: "the percentage value is
// capped by" the configured one.
std::uint32_t numerator_in(const HeaderSource& headers,
                           absl::string_view name,
                           std::uint32_t configured) {
  const auto any = [](std::uint32_t) { return true; };
  return std::min(configured, number_in<std::uint32_t>(headers, name, any).value_or(configured));
}

// The status that the call's headers ask for, as an HTTP status or as a gRPC status. With valid
// values of both, the HTTP status is used, as in Envoy.
std::optional<absl::StatusCode> code_in(const HeaderSource& headers) {
  const auto http =
      number_in<std::uint32_t>(headers, "x-envoy-fault-abort-request", is_http_status);
  if (http) return status_of_http(*http);
  const auto is_known = [](std::uint32_t code) { return code <= kLastStatusCode; };
  const auto grpc = number_in<std::uint32_t>(headers, "x-envoy-fault-abort-grpc-request", is_known);
  if (grpc) return static_cast<absl::StatusCode>(*grpc);
  return std::nullopt;
}

// The delay from the call's header, at most a century: a longer one would make no difference, but
// could overflow.
Duration delay_in(const HeaderSource& headers) {
  constexpr std::int64_t kMost = milliseconds(std::chrono::hours(24 * 365 * 100)).count();
  const auto is_positive = [](std::int64_t count) { return count >= 0; };
  const auto found =
      number_in<std::int64_t>(headers, "x-envoy-fault-delay-request", is_positive).value_or(0);
  return milliseconds(std::min(found, kMost));
}

template <typename Sink>
void tell(const Sink& sink, absl::string_view decision, absl::string_view reason) {
  sink.tell(
      [&] { return PickStep{"fault", std::string(decision), std::string(reason), kFilterSource}; });
}

template <typename Sink>
bool drawn(const FilterCall& call,
           Salt salt,
           std::uint32_t numerator,
           std::uint32_t denominator,
           const Sink& sink) {
  if (numerator == 0) return false;
  const std::uint64_t draw = call.draw_below(salt, denominator);
  const bool is_hit = draw < numerator;
  sink.tell([&] {
    return PickStep{
        "fault",
        absl::StrCat(is_hit ? "" : "no ", salt == Salt::kFaultDelay ? "delay" : "abort"),
        absl::StrCat(shown_draw(draw, denominator), "; it takes those below ", numerator),
        kFilterSource};
  });
  return is_hit;
}

// While this object exists, one call counts among the active faults.
class Active {
 public:
  Active(RequestLimitPtr among, std::uint32_t most) : among_(std::move(among)), most_(most) {}

  ~Active() { among_->put_back(most_); }

  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  const RequestLimitPtr among_;
  const std::uint32_t most_;
};

class Fault final : public CallFilter {
 public:
  Fault(const FaultFilter& config, FaultOptions options)
      : config_(config),
        most_(config.max_active_faults.value_or(std::numeric_limits<std::uint32_t>::max())),
        options_(std::move(options)) {
    if (options_.active == nullptr) options_.active = std::make_shared<const RequestLimit>();
  }

  void apply(FilterCall& call) const override { decide(call, Silent{}); }

  void explain(FilterCall& call, PickTrace& trace) const override { decide(call, Telling{trace}); }

 private:
  template <typename Sink>
  void decide(FilterCall& call, const Sink& sink) const {
    const Duration delay = delay_of(call, sink);
    const std::optional<absl::StatusCode> code = abort_of(call, sink);
    if (delay == Duration::zero() && !code) return;
    if (!has_room(sink)) return tell(sink, "no fault", "max_active_faults are going on");
    std::shared_ptr<const Active> active;
    sink.leave([&] { active = std::make_shared<const Active>(options_.active, most_); });
    if (delay > Duration::zero()) {
      sink.leave([&] { count(kDelayFault); });
      call.delay(delay, std::move(active));
    }
    if (!code) return;
    sink.leave([&] { count(kAbortFault); });
    call.end(absl::Status(*code, "Fault injected"));
  }

  // Whether max_active_faults allows one more call with a fault. If so, a pick counts the call as
  // one with an active fault; an explanation does not.
  template <typename Sink>
  bool has_room(const Sink& /*sink*/) const {
    if constexpr (Sink::kTells) {
      return options_.active->in_flight() < std::int64_t{most_};
    } else {
      return options_.active->take(most_);
    }
  }

  template <typename Sink>
  Duration delay_of(const FilterCall& call, const Sink& sink) const {
    if (!config_.delay) return Duration::zero();
    const auto& [fixed, share] = *config_.delay;
    Duration delay;
    std::uint32_t numerator = share.numerator;
    if (fixed) {
      delay = *fixed;
    } else {
      delay = delay_in(call.headers());
      numerator = numerator_in(call.headers(), "x-envoy-fault-delay-request-percentage", numerator);
    }
    const bool is_hit = drawn(call, Salt::kFaultDelay, numerator, share.denominator, sink);
    return is_hit ? delay : Duration::zero();
  }

  template <typename Sink>
  std::optional<absl::StatusCode> abort_of(const FilterCall& call, const Sink& sink) const {
    if (!config_.abort) return std::nullopt;
    const auto& [status, share] = *config_.abort;
    std::optional<absl::StatusCode> code = status;
    std::uint32_t numerator = share.numerator;
    if (!code) {
      code = code_in(call.headers());
      numerator = numerator_in(call.headers(), "x-envoy-fault-abort-request-percentage", numerator);
    }
    const bool is_hit = drawn(call, Salt::kFaultAbort, numerator, share.denominator, sink);
    return is_hit ? code : std::nullopt;
  }

  void count(std::size_t kind) const {
    if (options_.injected != nullptr) options_.injected->add(kind, 1);
  }

  const FaultFilter config_;
  const std::uint32_t most_;
  FaultOptions options_;
};

}  // namespace

const RequestLimitPtr& active_faults_of_process() {
  static const auto shared = std::make_shared<const RequestLimit>();
  return shared;
}

CallFilterPtr make_fault_filter(const FaultFilter& config, const FaultOptions& options) {
  const bool delays =
      config.delay && config.delay->share.numerator > 0 && config.delay->fixed != Duration::zero();
  const bool aborts = config.abort && config.abort->share.numerator > 0;
  if ((!delays && !aborts) || config.max_active_faults == 0U) return nullptr;
  return std::make_shared<const Fault>(config, options);
}

}  // namespace signalbox::lb
