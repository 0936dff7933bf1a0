// SPDX-License-Identifier: Apache-2.0
//
// The world around a runtime in the tests of its public API: a control plane, backends, calls.
//
//   yaml ─▶ resources() ─▶ ControlPlane ◀─ ADS ─ Runtime ─ call(s) ─┬▶ BackendProcess
//                                                                   └▶ HoldingBackend
//
// No code here sleeps or has a fixed port. Each wait takes at most kPatience, which only a failure
// uses up.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>

#include "signalbox/runtime.hpp"
#include "tests/support/process.hpp"
#include "tools/control_plane.hpp"
#include "tools/proto/orders.grpc.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::test {

using tools::ControlPlane;
using tools::DiscoveryRecord;
using Stub = demo::v1::Orders::Stub;

// --- resources, as YAML list items --------------------------------------------

/// A listener `name` that gets its routes from the route configuration `routes`. `filters`: filters
/// before the router, each followed by a comma. `more`: further fields of the
/// HttpConnectionManager, each preceded by a comma.
std::string listener_yaml(const std::string& name,
                          const std::string& routes,
                          const std::string& filters = "",
                          const std::string& more = "");
/// All calls go to `cluster`. `more`: further fields of the action, each preceded by a comma.
std::string routes_yaml(const std::string& name,
                        const std::string& cluster,
                        const std::string& more = "");
/// An EDS cluster; with round robin, if `more` names no policy. `more`: further fields, each
/// preceded by a comma.
std::string cluster_yaml(const std::string& name,
                         const std::string& service = "",
                         const std::string& more = "");
std::string aggregate_yaml(const std::string& name,
                           const std::vector<std::string>& clusters,
                           const std::string& more = "");
std::string dns_yaml(const std::string& name, const std::string& host, int port);
/// One locality for each priority; endpoints are `ip:port` texts.
std::string endpoints_yaml(const std::string& service,
                           const std::vector<std::vector<std::string>>& priorities);
/// The listener and routes of `target` lead to `cluster`, an EDS cluster with these endpoints.
std::string simple_yaml(const std::string& target,
                        const std::string& cluster,
                        const std::vector<std::string>& addresses);

std::vector<xds::ResourceBytes> resources(const std::string& yaml);

/// `text` with the first `what` replaced. `text` must contain `what`.
std::string replaced(std::string text, const std::string& what, const std::string& by);

// --- control plane and runtime ------------------------------------------------

inline const std::string kNodeId = "node-of-the-test";

std::unique_ptr<ControlPlane> start_plane(const std::string& yaml);
std::string bootstrap_for(const std::string& server,
                          const std::string& node_id = kNodeId,
                          const std::vector<std::string>& server_features = {});
RuntimeOptions options_for(const std::string& server, const std::string& node_id = kNodeId);
/// As options_for(). `fails_on_data_errors`: whether a deleted or refused resource removes the last
/// good one (A88).
RuntimeOptions data_error_options(const std::string& server, bool fails_on_data_errors);
std::unique_ptr<Runtime> start_runtime(RuntimeOptions options);

/// Whether the client has acknowledged the newest response of this type on the newest open stream.
bool all_acked(const DiscoveryRecord& record, absl::string_view type_url);

/// An address that refuses connections. No other socket gets the address during this object's life.
class RefusingAddress {
 public:
  RefusingAddress();
  ~RefusingAddress();
  RefusingAddress(const RefusingAddress&) = delete;
  RefusingAddress& operator=(const RefusingAddress&) = delete;

  const std::string& address() const { return address_; }

 private:
  std::string address_;
  int fd_ = -1;
};

/// An address that neither accepts nor refuses connections: its backlog is full.
class BlackHole {
 public:
  BlackHole();
  ~BlackHole();
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;

  const std::string& address() const { return address_; }

 private:
  std::string address_;
  int fd_ = -1;
  std::vector<int> fill_;
};

// --- backends -----------------------------------------------------------------

/// A `signalbox backend` process. Its replies name `cluster`.
struct BackendProcess {
  /// `more`: further arguments.
  explicit BackendProcess(const std::string& cluster, const std::vector<std::string>& more = {});

  tools::ChildProcess process;
  std::string address;
};

/// Starts a server of `service` in this process and sets `address` to its address.
/// `more` may change the builder last.
std::unique_ptr<grpc::Server> start_server(
    grpc::Service& service,
    std::string& address,
    const std::function<void(grpc::ServerBuilder&)>& more = nullptr);

/// A backend in this process. It holds calls for the item "hold" until the test releases them.
class HoldingBackend {
 public:
  /// `max_streams`: the most calls on a connection at a time; 0: no limit.
  explicit HoldingBackend(std::string cluster, int max_streams = 0);
  ~HoldingBackend();

  const std::string& address() const { return address_; }

  std::size_t held() const { return service_.held(); }

  void release() { service_.release(); }

 private:
  class Service final : public demo::v1::Orders::CallbackService {
   public:
    explicit Service(std::string cluster) : cluster_(std::move(cluster)) {}

    grpc::ServerUnaryReactor* Place(grpc::CallbackServerContext* context,
                                    const demo::v1::PlaceRequest* request,
                                    demo::v1::PlaceReply* reply) override;
    std::size_t held() const;
    void release();

   private:
    const std::string cluster_;
    mutable std::mutex mutex_;
    std::vector<grpc::ServerUnaryReactor*> held_;
  };

  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// --- calls --------------------------------------------------------------------

struct CallOptions {
  std::string item = "item";
  std::uint32_t work_us = 0;
  bool wait_for_ready = false;
  std::chrono::milliseconds timeout = kPatience;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct Answer {
  grpc::Status status;
  std::string cluster;  ///< The backend's name, from its reply.
  std::string peer;
  std::string connection;  ///< The client's address of the connection, as the backend sees it.

  bool ok() const { return status.ok(); }

  std::string text() const;
};

Answer call(Stub& stub, const CallOptions& options = {});
Answer call(const std::shared_ptr<grpc::ChannelInterface>& channel,
            const CallOptions& options = {});

/// Makes calls until a call fails. Its status must be UNAVAILABLE. Returns its error text.
std::string wait_for_failure(const std::shared_ptr<grpc::ChannelInterface>& channel);

/// Calls that run on gRPC's threads, through the callback API.
class Calls {
 public:
  explicit Calls(const std::shared_ptr<grpc::ChannelInterface>& channel);
  ~Calls();  ///< Waits for all calls.

  void start(int count, const CallOptions& options);
  std::size_t running() const;
  /// Waits for all calls and returns their answers. Fails the test when a call does not end.
  std::vector<Answer> finish();

 private:
  const std::unique_ptr<Stub> stub_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
  std::vector<Answer> answers_;
};

/// Threads that call in a loop until they are stopped.
class Traffic {
 public:
  Traffic(std::shared_ptr<grpc::ChannelInterface> channel, int threads);
  ~Traffic();

  /// Stops the threads. Returns the error texts of all failed calls.
  std::vector<std::string> finish();

  std::size_t completed() const { return completed_; }

 private:
  std::atomic<bool> ending_{false};
  std::atomic<std::size_t> completed_{0};
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::vector<std::thread> threads_;
};

// --- metrics ------------------------------------------------------------------

/// The sum of the series of `name` that have all these labels; nullopt: there is no such series.
std::optional<double> metric(const Runtime& runtime,
                             const std::string& name,
                             const std::vector<std::string>& labels = {});

}  // namespace signalbox::test
