// SPDX-License-Identifier: Apache-2.0
#include "channel/http_filters.hpp"

#include <exception>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "channel/extension_name.hpp"
#include "lb/trace.hpp"

namespace signalbox::channel {
namespace {

// Wraps a custom filter. When the filter throws, the call ends with INTERNAL, and the exception
// goes no further.
class Guarded final : public CallFilter {
 public:
  Guarded(std::string type, CallFilterPtr own, EventCountPtr failures)
      : type_(std::move(type)), own_(std::move(own)), failures_(std::move(failures)) {}

  void apply(FilterCall& call) const override {
    guard(call, lb::Silent{}, [&] { own_->apply(call); });
  }

  void explain(FilterCall& call, PickTrace& trace) const override {
    guard(call, lb::Telling{trace}, [&] { own_->explain(call, trace); });
  }

 private:
  template <typename Sink, typename Ask>
  void guard(FilterCall& call, const Sink& sink, const Ask& ask) const {
    try {
      ask();
    } catch (const std::exception& error) {
      fail(call, absl::StrCat("threw: ", error.what()), sink);
    } catch (...) {
      fail(call, "threw", sink);
    }
  }

  template <typename Sink>
  void fail(FilterCall& call, absl::string_view how, const Sink& sink) const {
    sink.leave([&] { failures_->add(0, 1); });
    call.end(absl::InternalError(absl::StrCat("the custom HTTP filter ", type_, " ", how)));
  }

  const std::string type_;
  const CallFilterPtr own_;
  const EventCountPtr failures_;
};

xds::CustomFilterParser guarded(const std::string& type,
                                const CustomHttpFilter::Parse& parse,
                                const EventCountPtr& failures) {
  return [type, parse, failures](const RawFilterConfig& config) -> absl::StatusOr<CallFilterPtr> {
    try {
      auto parsed = parse(config);
      if (!parsed.ok()) return parsed.status();
      if (*parsed == nullptr) return absl::InternalError("its parser returned no configuration");
      return std::make_shared<const Guarded>(type, *std::move(parsed), failures);
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("its parser threw: ", error.what()));
    } catch (...) {
      return absl::InternalError("its parser threw");
    }
  };
}

// Returns "FIELD: must be …, found …"; empty: the filter is valid.
std::string what_is_wrong(const CustomHttpFilter& filter, const std::set<std::string>& taken) {
  const auto type_is_wrong = [&](const std::string& type) {
    std::string wrong = what_is_wrong_with_http_filter_type(type);
    if (wrong.empty() && taken.contains(type))
      wrong = absl::StrCat("must be unique, found \"", type, "\"");
    return wrong;
  };
  if (const std::string wrong = type_is_wrong(filter.type); !wrong.empty())
    return absl::StrCat("type: ", wrong);
  if (!filter.parse) return absl::StrCat("parse: must be set, found none (", filter.type, ")");
  if (filter.override_type.empty()) return "";
  if (!filter.parse_override) {
    return absl::StrCat(
        "parse_override: must be set with an override_type, found none (", filter.type, ")");
  }
  const std::string wrong = type_is_wrong(filter.override_type);
  return wrong.empty() ? "" : absl::StrCat("override_type: ", wrong);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const xds::CustomFilters>> register_http_filters(
    const std::vector<CustomHttpFilter>& filters, metrics::Instruments& instruments) {
  auto registered = std::make_shared<xds::CustomFilters>();
  std::set<std::string> taken;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const CustomHttpFilter& filter = filters[i];
    if (const std::string wrong = what_is_wrong(filter, taken); !wrong.empty())
      return absl::InvalidArgumentError(absl::StrCat("http_filters[", i, "].", wrong));
    taken.insert({filter.type, filter.override_type});
    const EventCountPtr failures = instruments.filter_failures(filter.type);
    xds::CustomFilterParsers parsers;
    parsers.parse = guarded(filter.type, filter.parse, failures);
    if (filter.parse_override) {
      parsers.override_type = filter.override_type.empty() ? filter.type : filter.override_type;
      parsers.parse_override = guarded(filter.type, filter.parse_override, failures);
    }
    registered->emplace(filter.type, std::move(parsers));
  }
  return registered;
}

}  // namespace signalbox::channel
