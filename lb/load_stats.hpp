// SPDX-License-Identifier: Apache-2.0
//
// LoadStore — the load of clusters that report it, by locality and by drop category (LRS: gRFC A27,
// A32, A37).
//
//   cluster_impl ─▶ of(cluster) ─▶ LoadCounts ─▶ counts, kept by trackers and pickers
//                                  └─▶ take() ─▶ ClusterLoad: since the last take
//
// All who serve a {cluster, EDS service} share its counts. Counting is lock-free and striped; the
// rest is thread-safe, and not for the path of calls. What nobody counts any more is forgotten
// once it has been taken.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "messages/counting/call_tracker.hpp"
#include "messages/counting/drop_counts.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"

namespace signalbox::lb {

struct LocalityLoad {
  std::uint64_t in_progress = 0;  ///< Now; all others: since the last report.
  std::uint64_t issued = 0;
  std::uint64_t succeeded = 0;  ///< Ended OK.
  std::uint64_t errored = 0;    ///< Ended otherwise.

  friend bool operator==(const LocalityLoad&, const LocalityLoad&) = default;
};

/// Localities and categories without anything to tell are left out.
struct ClusterLoad {
  ClusterName cluster;
  std::string service_name;  ///< Of EDS; empty for LOGICAL_DNS.
  std::map<LocalityName, LocalityLoad> localities;
  std::map<std::string, std::uint64_t> dropped;  ///< By category.
  std::uint64_t total_dropped = 0;               ///< Those without a category, too.

  friend bool operator==(const ClusterLoad&, const ClusterLoad&) = default;
};

/// The calls of one locality. One that never reached an endpoint was not issued.
class LocalityCounts {
 public:
  void begun() const { counters_.add(kBegun, 1); }

  void ended(const CallEnd& end) const;

 private:
  friend class LoadCounts;

  enum Counter : std::size_t { kBegun, kSucceeded, kErrored, kUnsent, kCounters };

  StripedCounters<kCounters> counters_;
};

/// Counts the calls that name it.
class LocalityTracker final : public CallTracker {
 public:
  explicit LocalityTracker(std::shared_ptr<const LocalityCounts> counts)
      : counts_(std::move(counts)) {}

  void begun() const noexcept override { counts_->begun(); }

  void ended(const CallEnd& end) const noexcept override { counts_->ended(end); }

 private:
  const std::shared_ptr<const LocalityCounts> counts_;
};

/// One cluster. Each call returns the same counts for the same name.
class LoadCounts {
 public:
  std::shared_ptr<const LocalityCounts> locality(const LocalityName& name);

  EventCountPtr drops(const std::string& category);

  /// Calls dropped for no category's sake: by the circuit breaker.
  EventCountPtr uncategorised_drops() const { return uncategorised_.count; }

  /// What was counted since the last time. The names are left to the store.
  ClusterLoad take();

 private:
  struct Locality {
    std::shared_ptr<const LocalityCounts> counts = std::make_shared<const LocalityCounts>();
    LocalityLoad reported;  ///< Sums of all reports; in_progress: nothing.
  };

  struct Drops {
    EventCountPtr count = std::make_shared<const EventCount>();
    std::int64_t reported = 0;

    std::uint64_t take();
  };

  static LocalityLoad take(Locality& locality);

  std::mutex mutex_;
  std::map<LocalityName, Locality> localities_;
  std::map<std::string, Drops> drops_;
  Drops uncategorised_;
};

class LoadStore {
 public:
  std::shared_ptr<LoadCounts> of(const ClusterName& cluster, const std::string& service_name);

  /// What was counted since the last time, of every cluster that somebody serves or has served.
  std::vector<ClusterLoad> take();

 private:
  std::mutex mutex_;
  std::map<std::pair<ClusterName, std::string>, std::shared_ptr<LoadCounts>> clusters_;
};

}  // namespace signalbox::lb
