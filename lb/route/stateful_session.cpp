// SPDX-License-Identifier: Apache-2.0
#include "lb/route/stateful_session.hpp"

#include <memory>
#include <utility>

#include "lb/route/session.hpp"

namespace signalbox::lb {
namespace {

class StatefulSession final : public CallFilter {
 public:
  explicit StatefulSession(CompiledCookie config) : config_(std::move(config)) {}

  void apply(FilterCall& call) const override {
    if (!path_matches(call.path(), config_.cookie.path)) return;
    Session* const session = call.begin_session();
    if (session == nullptr) return;
    session->flaw = session->read(config_, call.headers());
    const absl::string_view cluster = session->cluster();
    if (!cluster.empty() && !call.send_to(cluster)) session->stay_off_its_cluster();
  }

 private:
  const CompiledCookie config_;
};

}  // namespace

CallFilterPtr make_session_filter(const StatefulSessionFilter& config) {
  if (!config.cookie) return nullptr;
  return std::make_shared<const StatefulSession>(
      CompiledCookie{*config.cookie, attributes_of(*config.cookie), config.strict});
}

}  // namespace signalbox::lb
