// SPDX-License-Identifier: Apache-2.0
//
// apply_filters — passes one call through the filter chain of its route.
//
//   router ─▶ [apply_filters](args, selection) ─┬▶ selection: perhaps another cluster
//                                               ├▶ Filtered: delay, end, headers; null: none
//                                               └▶ Session, where stateful_session began one
//
// Allocates nothing of its own for a call that the filters let pass unchanged, unless they begin a
// session and the thread has no ended Session to use again.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "lb/route/config_selector.hpp"
#include "lb/session/session.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

using AddedHeaders = std::vector<std::pair<std::string, std::string>>;

/// The filters' decisions about one call.
struct Filtered {
  Duration delay{};  ///< The sum of all delays; 0 once it is over.
  Instant due{};     ///< The end of the delay; see Pick::begin_delay().
  /// Objects that filters gave to FilterCall::delay(); destroyed when the delay is over or the call
  /// has ended.
  std::vector<std::shared_ptr<const void>> holds;
  std::optional<absl::Status> end;  ///< How the call ends after the delay; nullopt: it is picked.
  AddedHeaders headers;
};

/// The call's own headers, followed by those that filters added.
class FilteredHeaders final : public HeaderSource {
 public:
  /// Either argument may be null. Both must outlive this object.
  FilteredHeaders(const HeaderSource* own, const Filtered* filtered)
      : own_(own), filtered_(filtered) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override;

 private:
  const HeaderSource* own_;
  const Filtered* filtered_;
};

/// The filters' decisions, beside changes to the Selection.
struct FilterVerdict {
  std::unique_ptr<Filtered> filtered;  ///< Null: the filters let the call pass unchanged.
  SessionPtr session;                  ///< Null: the call has none.
};

/// Runs the filters of `selection`, which may change the cluster in it. Precondition: `selection`
/// has a cluster and filters.
FilterVerdict apply_filters(const PickArgs& args,
                            Selection& selection,
                            const SessionTerms& sessions);

/// As apply_filters(), for an explanation. `trace` receives what each filter decided. Headers that
/// a filter adds are shown without their values. But a fault filter's steps show the delay, status
/// and percentage that it reads from the call's headers.
FilterVerdict explain_filters(const PickArgs& args,
                              Selection& selection,
                              const SessionTerms& sessions,
                              PickTrace& trace);

}  // namespace signalbox::lb
