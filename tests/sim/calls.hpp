// SPDX-License-Identifier: Apache-2.0
//
// Calls — the simulated data plane: calls that pick, run for a while and end; waiting calls that
// pick again.
//
//   start ─▶ Router::pick ─┬▶ complete: runs, ends
//                          ├▶ queue, or fail of a wait_for_ready call: waits ◀─ published()
//                          └▶ fail, drop: ends
//   start_slow_read ─▶ holds a snapshot ─▶ later: route, pick, references, all from that snapshot

#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lb/pick/router.hpp"
#include "tests/sim/setting.hpp"

namespace signalbox::sim {

/// The state of a call; the last four are ends.
enum class CallState : std::uint8_t { kWaiting, kRunning, kCompleted, kFailed, kDropped, kExpired };

struct Call {
  std::uint64_t number = 0;
  std::string path;
  std::uint64_t seed = 0;
  bool wait_for_ready = false;
  std::optional<Instant> deadline;
  Duration length{};
  std::optional<std::uint64_t> client;
  std::string cookie;      ///< The cookie that was sent with the request.
  std::string set_cookie;  ///< The Set-Cookie header of the response, once the call runs.
  lb::Pick pick;
  CallState state = CallState::kWaiting;
};

/// The counts of one target's data plane for the calls that its routes sent to one cluster.
struct CallCounts {
  std::array<std::int64_t, kPickOutcomes> picks{};
  std::int64_t running = 0;
  std::int64_t cookies = 0;  ///< The number of cookies that responses have set.

  CallCounts& operator+=(const CallCounts& other) {
    for (std::size_t i = 0; i < picks.size(); ++i)
      picks[i] += other.picks[i];
    running += other.running;
    cookies += other.cookies;
    return *this;
  }
};

/// A slow reader: it read a snapshot, and takes its references from the snapshot only after a
/// delay.
struct SlowRead {
  std::uint64_t reader = 0;
  const lb::Snapshot* snapshot = nullptr;
  std::string path;
  std::uint64_t seed = 0;
  Use cluster;
  Use connection;
};

class Calls {
 public:
  /// `target`: the target of the calls, for the trace and the complaints.
  Calls(Setting& setting, std::string target, std::shared_ptr<lb::SnapshotCell> cell)
      : setting_(setting),
        target_(std::move(target)),
        cell_(cell),
        router_(std::move(cell), {}, sessions_of(setting)) {}

  struct Plan {
    std::string path;
    bool wait_for_ready = false;
    std::optional<Duration> deadline;
    Duration length{};
    /// The client that makes the call, with its cookie. nullopt: the call has no cookie.
    std::optional<std::uint64_t> client = std::nullopt;
  };

  /// Adds a client that keeps the cookies from responses to its calls of this path.
  std::uint64_t add_client(const std::string& path);

  void remove_client(std::uint64_t client) { clients_.erase(client); }

  struct Client {
    std::string path;
    std::string cookie;  ///< "sim=…"; empty: no session yet.
  };

  const std::map<std::uint64_t, Client>& clients() const { return clients_; }

  void set_cookie(std::uint64_t client, std::string cookie) {
    clients_.at(client).cookie = std::move(cookie);
  }

  /// For each host, the last time at which a call's cookie named it, or a call of a session was
  /// sent to it.
  const std::map<Address, Instant>& wished() const { return wished_; }

  /// Starts a call, and returns its number.
  std::uint64_t start(const Plan& plan);
  void start_slow_read(const std::string& path, Duration pause, Duration hold);

  /// A snapshot was published: all waiting calls pick again soon.
  void published();

  /// Allows calls of the cluster to run on hosts of `child` and of clusters below `child`. Children
  /// of earlier configurations stay allowed, because calls may still run on their hosts.
  void may_reach(const std::string& cluster, const std::string& child) {
    below_[cluster].insert(child);
  }

  const std::map<std::uint64_t, Call>& living() const { return calls_; }

  const std::map<std::uint64_t, SlowRead>& slow_reads() const { return slow_reads_; }

  /// Each cluster reference that calls or slow reads hold, and the number of its holders.
  std::vector<std::pair<const lb::ClusterRef*, std::int64_t>> references() const;

  /// The counts of each cluster that calls were routed to.
  const std::map<std::string, CallCounts>& counts() const { return counts_; }

  /// For each leaf cluster, the number of calls that run on its hosts.
  const std::map<std::string, std::int64_t>& in_flight() const { return in_flight_; }

  /// For each leaf cluster, the number of calls that were begun on its hosts so far, and how they
  /// ended.
  const std::map<std::string, testing::CallLoad>& loads() const { return loads_; }

  /// The number of times that in_flight() has changed so far.
  std::uint64_t moves() const { return moves_; }

  /// The end of a call that probe() started.
  struct Ending {
    CallState state = CallState::kWaiting;
    std::string cluster;
    std::optional<Address> address;
    absl::Status status;
    std::string path;
    std::string cookie;      ///< The cookie that was sent.
    std::string set_cookie;  ///< The Set-Cookie that was received.
  };

  /// Starts a call; its ending is kept until forget_endings().
  std::uint64_t probe(const Plan& plan);

  std::uint64_t probe(const std::string& path, Duration deadline) {
    return probe({path, false, deadline, Duration::zero()});
  }

  const std::map<std::uint64_t, Ending>& endings() const { return endings_; }

  void forget_endings() { endings_.clear(); }

  std::uint64_t started() const { return started_; }

  /// Ends all calls: the data plane is gone.
  void end_all();

 private:
  static lb::SessionsPtr sessions_of(Setting& setting);

  void pick(Call& call);
  void look(Call& call);
  void note_wishes(const Call& call);
  void check_set_cookie(const Call& call);
  void end_receipt(Call& call, CallState how);
  bool stops_reporting(const Address& host);
  void run(Call& call);
  void end(std::uint64_t number, CallState how);
  void ask_again();
  void finish_slow_read(std::uint64_t number, Duration hold);
  bool may_serve(const std::string& cluster, const std::string& owner) const;
  void check_connection(const std::string& cluster, const Connection* connection);

  std::string name_of(std::uint64_t call) const;

  Setting& setting_;
  std::string target_;
  std::shared_ptr<lb::SnapshotCell> cell_;
  lb::Router router_;
  std::uint64_t started_ = 0;
  bool again_ordered_ = false;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::uint64_t, SlowRead> slow_reads_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t next_client_ = 1;
  std::map<Address, Instant> wished_;
  std::map<std::string, std::set<std::string>> below_;
  std::map<std::string, CallCounts> counts_;
  std::map<Address, Instant> silent_until_;  ///< Hosts that stopped reporting their load.
  std::map<std::string, std::int64_t> in_flight_;
  std::map<std::string, testing::CallLoad> loads_;
  std::uint64_t moves_ = 0;
  std::set<std::uint64_t> probes_;
  std::map<std::uint64_t, Ending> endings_;
};

}  // namespace signalbox::sim
