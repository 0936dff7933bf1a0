// SPDX-License-Identifier: Apache-2.0
//
// LoadServer — a scripted server of load reports (LRS), on the port of a ControlPlane.
//
//   runtime ─▶ StreamLoadStats ─▶ [LoadServer] ─▶ what it was told to say, and its books
//
// It adds up all reports, as a control plane would. The sum over all reports of one {cluster, EDS
// service, zone} must equal the calls. Otherwise a call was lost or counted twice.
//
// The LoadServer must outlive the ControlPlane on which it serves.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_ads_transport.hpp"
#include "actors/io/grpc_bytes.hpp"
#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"
#include "tests/support/process.hpp"
#include "tools/control_plane.hpp"

namespace signalbox::test {

/// The sum of a metric, and the calls that had it.
struct MetricBook {
  std::uint64_t calls = 0;
  double total = 0;
};

/// The sums of the reports of one locality, or of all localities.
struct LoadBooks {
  std::uint64_t issued = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t in_progress = 0;  ///< Not a sum: the number in the last locality that was read.
  std::map<std::string, MetricBook> metrics = {};
};

class LoadServer {
 public:
  using Request = envoy::service::load_stats::v3::LoadStatsRequest;

  /// `response`: a LoadStatsResponse in text format; empty: the server answers nothing.
  explicit LoadServer(std::string response) : response_(std::move(response)) {}

  LoadServer(const LoadServer&) = delete;
  LoadServer& operator=(const LoadServer&) = delete;

  /// The argument of ControlPlane::start() that adds the LRS method.
  tools::OtherMethods methods() {
    return [this](const std::string& method) -> grpc::ServerGenericBidiReactor* {
      if (method != actors::kLrsMethod) return nullptr;
      return new Stream(*this);
    };
  }

  /// From now on the server sends `response`, on open streams at once and on later streams.
  void say(std::string response) {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    for (Stream* stream : streams_)
      stream->say(response_);
  }

  /// Streams that were opened so far.
  int opened() const {
    const std::lock_guard lock(mutex_);
    return opened_;
  }

  /// Streams that are open.
  std::size_t open() const {
    const std::lock_guard lock(mutex_);
    return streams_.size();
  }

  /// All requests, the first ones of streams included.
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  /// Requests with `clusters` clusters, except the first of each stream.
  int reports(int clusters) const {
    int count = 0;
    for (const Request& request : requests()) {
      if (!request.has_node() && request.cluster_stats_size() == clusters) ++count;
    }
    return count;
  }

  /// The sums over all reports of `cluster` and `zone`. Empty `cluster` or `zone`: over all of
  /// them.
  LoadBooks books(const std::string& cluster = "", const std::string& zone = "") const {
    LoadBooks books;
    each_cluster(cluster, [&](const auto& stats) {
      for (const auto& one : stats.upstream_locality_stats()) {
        if (!zone.empty() && one.locality().zone() != zone) continue;
        books.issued += one.total_issued_requests();
        books.succeeded += one.total_successful_requests();
        books.failed += one.total_error_requests();
        books.in_progress = one.total_requests_in_progress();
        for (const auto& metric : one.load_metric_stats())
          add(metric, books.metrics[metric.metric_name()]);
        if (one.has_cpu_utilization()) add(one.cpu_utilization(), books.metrics["cpu"]);
        if (one.has_mem_utilization()) add(one.mem_utilization(), books.metrics["mem"]);
        if (one.has_application_utilization())
          add(one.application_utilization(), books.metrics["application"]);
      }
    });
    return books;
  }

  /// Dropped calls over all reports, by category. Key "": all drops, with or without a category.
  std::map<std::string, std::uint64_t> drops(const std::string& cluster) const {
    std::map<std::string, std::uint64_t> drops;
    each_cluster(cluster, [&](const auto& stats) {
      drops[""] += stats.total_dropped_requests();
      for (const auto& category : stats.dropped_requests())
        drops[category.category()] += category.dropped_count();
    });
    return drops;
  }

  /// Waits until at least `ended` ended calls are reported. True if exactly so many are reported.
  bool wait_for(std::uint64_t ended, const std::string& cluster = "") const {
    return eventually([&] {
             const LoadBooks all = books(cluster);
             return all.succeeded + all.failed >= ended;
           }) &&
           books(cluster).succeeded + books(cluster).failed == ended;
  }

 private:
  // The server's mutex guards the fields, and is held where an operation is started. gRPC never
  // calls back from within the function that starts an operation.
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(LoadServer& server) : server_(server) {
      const std::lock_guard lock(server_.mutex_);
      server_.streams_.push_back(this);
      ++server_.opened_;
      StartRead(&incoming_);
    }

    // Precondition: the mutex is held.
    void say(const std::string& text) {
      if (text.empty() || is_over_) return;
      envoy::service::load_stats::v3::LoadStatsResponse response;
      if (!::google::protobuf::TextFormat::ParseFromString(text, &response)) return;
      outgoing_.push_back(actors::to_buffer(response.SerializeAsString()));
      if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
    }

    void OnReadDone(bool ok) override {
      const std::lock_guard lock(server_.mutex_);
      if (!ok) return end();
      Request request;
      request.ParseFromString(actors::to_bytes(incoming_));
      const bool is_first = request.has_node();
      server_.requests_.push_back(std::move(request));
      if (is_first) say(server_.response_);
      StartRead(&incoming_);
    }

    void OnWriteDone(bool ok) override {
      const std::lock_guard lock(server_.mutex_);
      outgoing_.pop_front();
      if (!ok) outgoing_.clear();
      if (!outgoing_.empty()) return StartWrite(&outgoing_.front());
      if (is_over_) Finish(grpc::Status::OK);
    }

    void OnDone() override {
      {
        const std::lock_guard lock(server_.mutex_);
        std::erase(server_.streams_, this);
      }
      delete this;
    }

   private:
    // gRPC requires that the write in progress ends before Finish().
    void end() {
      is_over_ = true;
      if (outgoing_.empty()) Finish(grpc::Status::OK);
    }

    LoadServer& server_;
    bool is_over_ = false;
    grpc::ByteBuffer incoming_;
    std::deque<grpc::ByteBuffer> outgoing_;  // The first of them is being written.
  };

  template <typename Stats>
  static void add(const Stats& stats, MetricBook& book) {
    book.calls += stats.num_requests_finished_with_metric();
    book.total += stats.total_metric_value();
  }

  void each_cluster(
      const std::string& name,
      const std::function<void(const envoy::config::endpoint::v3::ClusterStats&)>& visit) const {
    for (const Request& request : requests()) {
      for (const auto& stats : request.cluster_stats()) {
        if (name.empty() || stats.cluster_name() == name) visit(stats);
      }
    }
  }

  mutable std::mutex mutex_;
  std::string response_;
  std::vector<Stream*> streams_;
  std::vector<Request> requests_;
  int opened_ = 0;
};

}  // namespace signalbox::test
