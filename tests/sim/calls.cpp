// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/calls.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/sim/sessions.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

using std::chrono::milliseconds;

namespace {

// The load report that an endpoint sends with a response (A51). Its values are made from the call's
// number. They are multiples of 1/8, so that sums of them are exact, and above 0.
class EndpointReport {
 public:
  explicit EndpointReport(std::uint64_t call)
      : call_(call),
        metrics_{{{LoadMetric::Map::kNamedMetrics, "queue", eighths(7)},
                  {LoadMetric::Map::kNamedMetrics, "disk", eighths(3)},
                  {LoadMetric::Map::kUtilization, "queue", eighths(2)}}},
        load_{.application_utilization = eighths(11),
              .cpu_utilization = eighths(5),
              .mem_utilization = eighths(8),
              .qps = 100 * eighths(6),
              .eps = eighths(9),
              .metrics = metrics_} {}

  // Faults change qps and eps alone, which LRS does not pass on.
  void spoil(FakeFaults& faults) { testing::spoil_report(load_, faults); }

  EndpointReport(const EndpointReport&) = delete;
  EndpointReport& operator=(const EndpointReport&) = delete;

  // Some responses have no report.
  bool is_sent() const { return call_ % 4 != 0; }

  const LoadReport& load() const { return load_; }

 private:
  double eighths(std::uint64_t different) const {
    return static_cast<double>(call_ % different + 1) / 8;
  }

  const std::uint64_t call_;
  const std::array<LoadMetric, 3> metrics_;
  LoadReport load_;
};

// Adds the values that the cluster's load reports pass on, under the names that they have there.
void count_values(const LoadReport& report, const std::string& cluster, testing::CallLoad& load) {
  if (!has_load_reports(cluster)) return;
  const std::vector<std::string> chosen = reported_metrics(cluster);
  const auto has = [&](const std::string& name) { return std::ranges::count(chosen, name) > 0; };
  const auto add = [&](const std::string& name, double value) {
    MetricSum& sum = load.metrics[name];
    ++sum.calls;
    sum.total += value;
  };
  if (has("cpu_utilization")) add("cpu_utilization", report.cpu_utilization);
  if (has("mem_utilization")) add("mem_utilization", report.mem_utilization);
  if (has("application_utilization"))
    add("application_utilization", report.application_utilization);
  for (const LoadMetric& metric : report.metrics) {
    if (metric.map != LoadMetric::Map::kNamedMetrics) continue;
    const std::string name = absl::StrCat("named_metrics.", metric.name);
    if (chosen.empty()) add(std::string(metric.name), metric.value);
    if (has("named_metrics.*") || has(name)) add(name, metric.value);
  }
}

}  // namespace

// --- calls ------------------------------------------------------------------

std::uint64_t Calls::start(const Plan& plan) {
  const std::uint64_t number = ++started_;
  Call& call = calls_[number];
  call.number = number;
  call.path = plan.path;
  call.seed = setting_.chance.next();
  call.wait_for_ready = plan.wait_for_ready;
  call.length = plan.length;
  call.client = plan.client;
  if (plan.client) call.cookie = clients_.at(*plan.client).cookie;
  if (plan.deadline) {
    call.deadline = setting_.clock.now() + *plan.deadline;
    setting_.clock.after_exactly(*plan.deadline, [this, number] {
      if (calls_.contains(number)) end(number, CallState::kExpired);
    });
  }
  pick(call);
  look(call);
  return number;
}

std::uint64_t Calls::probe(const Plan& plan) {
  probes_.insert(started_ + 1);
  return start(plan);
}

void Calls::pick(Call& call) {
  const CookieHeader header(call.cookie);
  router_.repick(call.pick, {call.path, &header, call.seed});
}

lb::SessionsPtr Calls::sessions_of(Setting& setting) {
  return std::make_shared<const lb::Sessions>(
      lb::SessionTerms{.now = [&setting] { return setting.clock.now(); }});
}

std::uint64_t Calls::add_client(const std::string& path) {
  clients_[next_client_] = {path, ""};
  return next_client_++;
}

void Calls::look(Call& call) {
  const PickOutcome outcome = call.pick.outcome();
  if (call.pick.cluster() != nullptr)
    ++counts_[call.pick.cluster()->name().str()].picks[static_cast<std::size_t>(outcome)];
  setting_.trace.note(
      setting_.clock.now(),
      name_of(call.number),
      call.pick.connection() != nullptr ? call.pick.connection()->address().str() : "no connection",
      static_cast<std::uint64_t>(outcome));
  note_wishes(call);
  if (outcome == PickOutcome::kComplete) {
    run(call);
  } else if (outcome == PickOutcome::kFail && !call.wait_for_ready) {
    end(call.number, CallState::kFailed);
  } else if (outcome == PickOutcome::kDrop) {
    setting_.drops.note(call.pick.status());
    end(call.number, CallState::kDropped);
  }
}

// Records the hosts that a call of a session names in its cookie, and the host that it went to. A
// call that begins a session counts, too, even if no simulated client continues the session.
void Calls::note_wishes(const Call& call) {
  const bool is_of_session = call.client || !call.pick.set_cookie().empty();
  if (!is_of_session) return;
  if (call.pick.connection() != nullptr)
    wished_[call.pick.connection()->address()] = setting_.clock.now();
  const auto cookie = read_cookie(call.cookie);
  if (!cookie) return;
  for (const Address& host : cookie->hosts)
    wished_[host] = setting_.clock.now();
}

// Checks a Set-Cookie: it names the host and the cluster that the call went to, and it is not the
// cookie that the client has already. This holds under all faults.
void Calls::check_set_cookie(const Call& call) {
  if (call.set_cookie.empty()) return;
  ++counts_[call.pick.cluster()->name().str()].cookies;
  const auto told = read_cookie(cookie_of(call.set_cookie));
  const bool is_true = told && told->hosts.front() == call.pick.connection()->address() &&
                       told->cluster == call.pick.cluster()->name().str();
  setting_.complaints.require(
      is_true, "a cookie says where the call went [A55-22, A55-23]", call.set_cookie);
  setting_.complaints.require(told != read_cookie(call.cookie),
                              "who is where his cookie says is told nothing [A55-24]",
                              call.set_cookie);
}

void Calls::run(Call& call) {
  call.state = CallState::kRunning;
  call.set_cookie = call.pick.set_cookie();
  check_set_cookie(call);
  call.pick.stats()->count_started();
  ++counts_[call.pick.cluster()->name().str()].running;
  ++in_flight_[owner_of(call.pick.connection()->address())];
  ++loads_[owner_of(call.pick.connection()->address())].issued;
  ++moves_;
  check_connection(call.pick.cluster()->name().str(), call.pick.connection());
  setting_.clock.after(call.length, [this, number = call.number] {
    if (calls_.contains(number)) end(number, CallState::kCompleted);
  });
}

void Calls::end(std::uint64_t number, CallState how) {
  const auto found = calls_.find(number);
  setting_.complaints.require(found != calls_.end(), "every call gets exactly one end");
  if (found == calls_.end()) return;
  Call& call = found->second;
  setting_.complaints.require(call.pick.status().code() != absl::StatusCode::kInternal,
                              "no call is told of an internal error",
                              std::string(call.pick.status().message()));
  setting_.complaints.require(!absl::IsUnavailable(call.pick.status()) ||
                                  absl::StrContains(call.pick.status().message(), "node ID: "),
                              "what fails names the node [A88]",
                              std::string(call.pick.status().message()));
  if (probes_.contains(number)) {
    Ending& ending = endings_[number];
    ending.state = how;
    ending.status = call.pick.status();
    ending.path = call.path;
    ending.cookie = call.cookie;
    ending.set_cookie = call.set_cookie;
    if (call.pick.cluster() != nullptr) ending.cluster = call.pick.cluster()->name().str();
    if (call.pick.connection() != nullptr) ending.address = call.pick.connection()->address();
  }
  setting_.trace.note(setting_.clock.now(),
                      name_of(number),
                      absl::StrCat("ends: ", call.pick.status().message()),
                      static_cast<std::uint64_t>(how));
  if (call.state == CallState::kRunning) end_receipt(call, how);
  if (how == CallState::kCompleted && call.client && !call.set_cookie.empty()) {
    const auto client = clients_.find(*call.client);
    if (client != clients_.end()) client->second.cookie = cookie_of(call.set_cookie);
  }
  calls_.erase(found);
  setting_.reclaimer->sweep();
}

// Ends a running call with the backend's answer, or with its deadline, and counts the end.
void Calls::end_receipt(Call& call, CallState how) {
  constexpr int kDeadlineExceeded = 4;
  constexpr int kUnavailable = 14;
  const Address& address = call.pick.connection()->address();
  const bool bad = setting_.connector->answers_badly(address);
  --in_flight_[owner_of(address)];
  ++moves_;
  const int code = how == CallState::kExpired ? kDeadlineExceeded : bad ? kUnavailable : 0;
  testing::CallLoad& load = loads_[owner_of(address)];
  ++(code == 0 ? load.succeeded : load.failed);
  EndpointReport report(call.number);
  report.spoil(setting_.faults);
  const bool has_report =
      how != CallState::kExpired && report.is_sent() && !stops_reporting(address);
  if (has_report) count_values(report.load(), owner_of(address), load);
  call.pick.end(code, has_report ? &report.load() : nullptr, setting_.clock.now());
  call.pick.stats()->count_completed(code);
  --counts_[call.pick.cluster()->name().str()].running;
}

// Whether the fault kReportStops keeps this host from reporting its load now.
bool Calls::stops_reporting(const Address& host) {
  using std::chrono::seconds;
  if (setting_.faults.fires(Fault::kReportStops)) {
    FakeChance& dice = setting_.faults.dice(Fault::kReportStops);
    silent_until_[host] = setting_.clock.now() + dice.between(seconds(1), seconds(40));
  }
  const auto found = silent_until_.find(host);
  return setting_.faults.has(Fault::kReportStops) && found != silent_until_.end() &&
         setting_.clock.now() < found->second;
}

std::string Calls::name_of(std::uint64_t call) const {
  return absl::StrCat(target_, ": call ", call);
}

void Calls::end_all() {
  for (auto& [number, call] : calls_) {
    if (call.state == CallState::kRunning) end_receipt(call, CallState::kCompleted);
  }
  calls_.clear();
  slow_reads_.clear();
}

// --- queued picks -----------------------------------------------------------

void Calls::published() {
  if (std::exchange(again_ordered_, true)) return;
  setting_.clock.after(setting_.chance.between(Duration::zero(), milliseconds(5)),
                       [this] { ask_again(); });
}

void Calls::ask_again() {
  again_ordered_ = false;
  std::vector<std::uint64_t> waiting;
  for (const auto& [number, call] : calls_) {
    if (call.state == CallState::kWaiting) waiting.push_back(number);
  }
  for (const std::uint64_t number : waiting) {
    Call& call = calls_.at(number);
    if (call.pick.sequence() == router_.sequence()) continue;
    const lb::ClusterRef* const before = call.pick.cluster();
    pick(call);
    setting_.complaints.require(before == nullptr || before == call.pick.cluster(),
                                "a call stays with its cluster [A31-10]",
                                name_of(number));
    look(call);
  }
}

// --- slow reads -------------------------------------------------------------

void Calls::start_slow_read(const std::string& path, Duration pause, Duration hold) {
  const std::uint64_t number = ++started_;
  SlowRead& read = slow_reads_[number];
  read.reader = setting_.reclaimer->begin_read();
  read.snapshot = &*lb::SnapshotCell::Reader(*cell_);
  read.path = path;
  read.seed = setting_.chance.next();
  setting_.clock.after(pause, [this, number, hold] { finish_slow_read(number, hold); });
}

// Does the steps of Router::pick that follow the reading of the snapshot, which was some time ago.
void Calls::finish_slow_read(std::uint64_t number, Duration hold) {
  SlowRead& read = slow_reads_.at(number);
  const lb::Snapshot* current = &*lb::SnapshotCell::Reader(*cell_);
  const bool alive = read.snapshot == current || setting_.reclaimer->is_pending(read.snapshot);
  setting_.complaints.require(alive, "a snapshot that a reader sees is never destroyed");
  if (alive && read.snapshot->selector != nullptr) {
    auto selected = read.snapshot->selector->select({read.path, nullptr, nullptr, read.seed});
    if (const auto* selection = std::get_if<lb::Selection>(&selected)) {
      read.cluster = Use(*selection->cluster);
      auto result =
          read.snapshot->picker->pick({read.path, nullptr, &selection->cluster->name(), read.seed});
      if (result.ask && result.ask_target != nullptr) result.ask_target->tell(*result.ask);
      if (const auto* drop = std::get_if<Drop>(&result.outcome)) setting_.drops.note(drop->status);
      if (const auto* complete = std::get_if<Complete>(&result.outcome)) {
        read.connection = Use(*complete->connection);
        check_connection(selection->cluster->name().str(), complete->connection);
      }
    }
  }
  setting_.trace.note(setting_.clock.now(),
                      target_ + ": slow read",
                      read.path,
                      static_cast<bool>(read.connection) ? 1 : 0);
  setting_.reclaimer->end_read(read.reader);
  read.snapshot = nullptr;
  setting_.clock.after(hold, [this, number] {
    slow_reads_.erase(number);
    setting_.reclaimer->sweep();
  });
}

// --- what calls hold --------------------------------------------------------

std::vector<std::pair<const lb::ClusterRef*, std::int64_t>> Calls::references() const {
  std::vector<std::pair<const lb::ClusterRef*, std::int64_t>> counts;
  const auto count = [&](const lb::ClusterRef* ref) {
    if (ref == nullptr) return;
    const auto found =
        std::ranges::find_if(counts, [&](const auto& entry) { return entry.first == ref; });
    if (found == counts.end()) {
      counts.emplace_back(ref, 1);
    } else {
      ++found->second;
    }
  };
  for (const auto& [number, call] : calls_)
    count(call.pick.cluster());
  for (const auto& [number, read] : slow_reads_)
    count(static_cast<const lb::ClusterRef*>(read.cluster.get()));
  return counts;
}

void Calls::check_connection(const std::string& cluster, const Connection* connection) {
  const bool exists = setting_.connector->exists(connection);
  setting_.complaints.require(exists, "a pick leads to a connection that was not destroyed");
  if (!exists) return;
  const std::string owner = owner_of(connection->address());
  setting_.complaints.require(may_serve(cluster, owner),
                              "a pick's connection belongs to an endpoint of the chosen cluster",
                              absl::StrCat(cluster, " chose ", connection->address().str()));
}

bool Calls::may_serve(const std::string& cluster, const std::string& owner) const {
  std::set<std::string> seen;
  std::vector<std::string> open{cluster};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (name == owner) return true;
    if (!seen.insert(name).second) continue;
    const auto found = below_.find(name);
    if (found != below_.end()) open.insert(open.end(), found->second.begin(), found->second.end());
  }
  return false;
}

}  // namespace signalbox::sim
