// SPDX-License-Identifier: Apache-2.0
//
// LoadBook — the counts of all clusters with load reports, and which part of the counts was
// reported.
//
//   cluster_impl ─▶ open() ─▶ ClusterCounts ─▶ counters of localities and drops, for picks, calls
//   load_reporter ─▶ read() ─▶ LoadReading ─▶ report ─▶ settle(number), when it was sent
//
//   unreported = counted − reported          settle: reported = what the reading had seen
//
// A reading (LoadReading) that is never settled changes no counts: the next reading has its counts
// again. So when a stream ends before its report was sent, the next report contains these counts,
// once.
//
// A cluster is in use while a policy or a call holds its counts. A cluster or locality that is no
// longer in use is dropped once its last counts are settled. A cluster that is not in use, and that
// the server does not ask for, is dropped at the next reading. Unused clusters of a server, and
// unused localities and categories of a cluster, are bounded (kMostUnused).
//
// The policies of all targets share the book, so that a cluster has one report. Thread-safe; never
// on the path of calls.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "messages/counting/drop_counts.hpp"
#include "messages/counting/load_counts.hpp"
#include "messages/ids.hpp"
#include "messages/load_reporting.hpp"

namespace signalbox {

/// The counts of one {cluster, EDS service}. Repeated calls of a member function with an equal
/// argument return the same counter, as long as the counter is held. An unused counter is dropped
/// when its last counts are settled, or to keep the bound (kMostUnused).
class ClusterCounts {
 public:
  /// If a new locality finds more unused ones than this, the cluster drops all of them that have no
  /// unreported counts. If too many are left, it drops one more, with its counts. Categories of
  /// drops alike.
  static constexpr std::size_t kMostUnused = 1000;

  /// The counter of a locality. A report leaves the locality out if none of its calls is in
  /// progress, and if since the last report no call began or ended and no metric value came.
  LocalityCountsPtr locality(const LocalityName& name) const;

  EventCountPtr drops(const std::string& category) const;

  EventCountPtr breaker_drops() const { return breaker_drops_; }

 private:
  friend class LoadBook;

  struct Locality {
    LocalityCountsPtr counts = std::make_shared<const LocalityCounts>();
    LocalityTotals reported = {};
    LocalityTotals seen = {};  // The totals of the last reading.
    // True: at the last reading, no policy and no call held the counter. This was checked before
    // the totals were read.
    bool was_unused = false;
  };

  struct Drops {
    EventCountPtr count = std::make_shared<const EventCount>();
    std::int64_t reported = 0;
    std::int64_t seen = 0;
    bool was_unused = false;
  };

  LocalityLoad unreported(const LocalityName& name, Locality& locality, LoadReading& reading) const;
  ClusterLoad read(LoadReading& reading) const;
  void settle() const;
  // Whether a policy or a call holds one of the counters.
  bool is_held() const;
  // Whether there are unreported counts.
  bool is_owed() const;
  static bool owes_calls(const Locality& locality);
  static bool owes_drops(const Drops& drops);

  mutable std::mutex mutex_;
  mutable std::map<LocalityName, Locality> localities_;
  mutable std::map<std::string, Drops> drops_;
  const EventCountPtr breaker_drops_ = std::make_shared<const EventCount>();
  mutable std::int64_t breaker_reported_ = 0;
  mutable std::int64_t breaker_seen_ = 0;
};

using ClusterCountsPtr = std::shared_ptr<const ClusterCounts>;

class LoadBook {
 public:
  /// While a server has more unused clusters than this, the book drops one of them for each new
  /// cluster, those without unreported counts first.
  static constexpr std::size_t kMostUnused = ClusterCounts::kMostUnused;

  /// Called when a cluster of `server` comes into use, because a report may then be due. Runs
  /// inside open(), on its caller's thread, without a lock. Must not block.
  using Waker = std::function<void(ServerId server)>;

  /// `servers`: the servers that take load reports.
  explicit LoadBook(std::set<ServerId> servers) : servers_(std::move(servers)) {}

  /// Sets the function that open() calls; empty: open() calls none.
  void wake_by(Waker waker);

  /// Returns the counts of the cluster; repeated calls return the same object while it is in use.
  /// Null: the server takes no reports. `now` is the time from which a new entry counts.
  ClusterCountsPtr open(ServerId server,
                        const ClusterName& cluster,
                        const std::string& service,
                        Instant now);

  /// Returns the unreported counts of the selected clusters. Only the newest reading of a server
  /// can be settled.
  LoadReading read(ServerId server, const LoadSelection& selection, Instant now);

  /// Whether a cluster with load reports to the server is in use.
  bool is_in_use(ServerId server) const;

  /// Whether there are unreported counts for the server, of clusters in use or not.
  bool is_owed(ServerId server) const;

  /// Marks the counts of the reading as reported. Does nothing if `number` is not the number of the
  /// server's newest reading.
  void settle(ServerId server, std::uint64_t number);

  /// The number of clusters in the book.
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<const ClusterCounts> counts;
    Instant since;  // The end of the last settled reading; before the first: when it was made.
    bool is_in_reading = false;
    bool was_unused = false;  // No policy and no call held its counts at the last reading.
  };

  struct Server {
    std::map<std::pair<ClusterName, std::string>, Entry> clusters;
    std::uint64_t reading = 0;
    Instant read_at;
  };

  static bool is_unused(const Entry& entry);
  static void bound_unused(Server& server);

  const std::set<ServerId> servers_;
  mutable std::mutex mutex_;
  std::map<ServerId, Server> by_server_;
  std::uint64_t readings_ = 0;
  Waker waker_;
};

}  // namespace signalbox
