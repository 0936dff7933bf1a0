// SPDX-License-Identifier: Apache-2.0
//
// The script of `--drill tiered`. The aggregate spreads its calls by health, and the first
// cluster's backends are killed one by one:
//
//   all backends run ─▶ SIGKILL to one ─▶ the client uses new loads ─▶ calls are measured ─▶ …
//
// signalbox::plan_text computes the expected loads, from the resources that the control plane
// serves and the addresses that are down.
#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "signalbox/plan.hpp"
#include "tools/demo_report.hpp"
#include "tools/demo_script.hpp"
#include "tools/plan_report.hpp"
#include "tools/tier_log.hpp"
#include "tools/tier_report.hpp"

namespace signalbox::tools {
namespace {

using Clock = Narrator::Clock;
using Loads = std::map<std::string, double>;
// Why a step ended the drill: a stop signal or an error. std::monostate: it did not.
using Interruption = std::variant<std::monostate, int, absl::Status>;

constexpr auto kSettleTime = std::chrono::seconds(15);
constexpr double kWhole = 100;

class TieredDrill {
 public:
  explicit TieredDrill(DemoStage& stage) : stage_(stage) {}

  // Calls report to this object, so the load must end before the object is destroyed.
  ~TieredDrill() { stage_.finish_load().IgnoreError(); }

  TieredDrill(const TieredDrill&) = delete;
  TieredDrill& operator=(const TieredDrill&) = delete;

  void add(const FinishedCall& call) {
    const std::lock_guard lock(mutex_);
    log_.add(call);
  }

  /// Plays a step. When `backend` is empty, no backend is killed.
  Interruption play(const std::string& backend, Clock::duration measuring, Narrator& narrator);
  std::string live_line_of(std::chrono::nanoseconds since_start, std::chrono::nanoseconds interval);

  // Precondition: the load has ended.
  TierResult result() {
    return stage_.with_log(
        [this](const CallLog& calls) { return make_result(stage_.leaves(), calls, log_); });
  }

 private:
  template <class Use>
  auto with_log(Use use) {
    const std::lock_guard lock(mutex_);
    return use(log_);
  }

  absl::StatusOr<Loads> compute() const;
  void kill(const std::string& backend);
  bool is_in_effect(const Loads& loads) const;

  DemoStage& stage_;
  std::vector<std::string> down_;  // The addresses of killed backends.
  Loads computed_;
  std::mutex mutex_;
  TierLog log_;
};

absl::StatusOr<Loads> TieredDrill::compute() const {
  const auto resources = stage_.topology().resources(stage_.backends().ports());
  if (!resources.ok()) return resources.status();
  PlanRequest request;
  request.cluster = stage_.topology().aggregate();
  request.assumptions.down = down_;
  const auto plan = plan_text(*resources, "resources.json", request);
  if (!plan.ok()) return plan.status();
  Loads loads;
  for (const std::string& leaf : stage_.leaves())
    loads[leaf] = 0;
  for (const PlannedLeaf& leaf : plan->leaves)
    loads[leaf.name.str()] = kWhole * leaf.shares.tiered.then / kAllCalls;
  return loads;
}

void TieredDrill::kill(const std::string& backend) {
  const std::string address = stage_.backends().address_of(backend);
  stage_.act_begins({.verb = "kill", .on = backend, .what = "SIGKILL to " + backend});
  stage_.with_log([&](CallLog& log) { log.kill_begins(Clock::now(), {address}); });
  stage_.backends().kill_one(backend);
  stage_.with_log([](CallLog& log) { log.kill_ended(Clock::now()); });
}

bool TieredDrill::is_in_effect(const Loads& loads) const {
  Loads reported = tier_loads(stage_.runtime().metrics_text(), stage_.topology().aggregate());
  for (const std::string& leaf : stage_.leaves())
    reported.try_emplace(leaf, 0);
  return reported == loads;
}

std::string loads_text(const Loads& loads, const std::vector<std::string>& leaves) {
  std::string text;
  for (const std::string& leaf : leaves)
    absl::StrAppendFormat(
        &text, "%s%s %.0f %%", text.empty() ? "" : ", ", short_name(leaf, leaves), loads.at(leaf));
  return text;
}

Interruption TieredDrill::play(const std::string& backend,
                               Clock::duration measuring,
                               Narrator& narrator) {
  if (!backend.empty()) down_.push_back(stage_.backends().address_of(backend));
  auto computed = compute();
  if (!computed.ok()) return computed.status();
  computed_ = *std::move(computed);
  narrator.announce(absl::StrCat(backend.empty() ? "all are there" : "SIGKILL to " + backend,
                                 ": computed ",
                                 loads_text(computed_, stage_.leaves())));
  with_log([&](TierLog& log) { log.begin(Clock::now(), backend, computed_); });
  if (!backend.empty()) kill(backend);

  const auto in_effect = [this] { return is_in_effect(computed_); };
  if (const auto signal = narrator.wait_until(Clock::now() + kSettleTime, in_effect))
    return *signal;
  if (!in_effect()) return {};  // The result reports the step as never settled.
  // Picks may use the loads a little later than the metric shows them.
  if (const auto signal = narrator.wait_until(Clock::now() + kNoticeTime)) return *signal;
  with_log([](TierLog& log) { log.settled(Clock::now()); });
  if (const auto signal = narrator.wait_until(Clock::now() + measuring)) return *signal;
  return {};
}

std::string TieredDrill::live_line_of(std::chrono::nanoseconds since_start,
                                      std::chrono::nanoseconds interval) {
  const auto counts = stage_.with_log([](CallLog& log) { return log.take_interval(); });
  const auto computed = static_cast<int>(computed_[stage_.leaves().front()]);
  return live_line(since_start, interval, stage_.leaves(), counts, computed);
}

}  // namespace

int play_tiered_drill(const DemoOptions& options, DemoStage& stage) {
  std::vector<std::string> victims{""};
  for (const BackendPlace& place : stage.topology().places()) {
    if (place.cluster == stage.leaves().front()) victims.push_back(place.name);
  }
  const auto measuring = std::chrono::round<Clock::duration>(
      std::chrono::duration<double>(options.seconds / static_cast<double>(victims.size())));

  TieredDrill drill(stage);
  if (auto status = stage.start_load([&drill](const FinishedCall& call) { drill.add(call); });
      !status.ok()) {
    return end_early(status);
  }
  // The column "computed" has the first cluster's computed share, beside the measured shares.
  std::cout << live_header(stage.leaves(), "computed") << "\n" << std::flush;
  Narrator narrator([&drill](auto since_start, auto interval) {
    return drill.live_line_of(since_start, interval);
  });
  for (const std::string& victim : victims) {
    const auto interruption = drill.play(victim, measuring, narrator);
    if (const auto* signal = std::get_if<int>(&interruption)) return end_early(*signal);
    if (const auto* status = std::get_if<absl::Status>(&interruption)) return end_early(*status);
  }
  narrator.end();
  if (auto status = stage.finish_load(); !status.ok()) return end_early(status);
  const TierResult result = drill.result();
  return publish(options,
                 stage,
                 {.table = table(result), .data = to_json(result), .failure = why_failed(result)});
}

}  // namespace signalbox::tools
