// SPDX-License-Identifier: Apache-2.0
//
// The world around a runtime in the tests of its public API: a control plane, backends, calls.
//
//   yaml ─▶ resources() ─▶ ControlPlane ◀─ ADS ─ Runtime ─ call(s) ─┬▶ BackendProcess
//                                                                   └▶ HoldingBackend
//
// Nothing here sleeps or has a fixed port. Each wait has kPatience, which only a failure uses up.

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

/// A listener `name` whose routes come as the route configuration `routes`. `filters`: those before
/// the router, each with a comma behind it. `more`: further fields of the HttpConnectionManager,
/// each with a comma before it.
std::string listener_yaml(const std::string& name,
                          const std::string& routes,
                          const std::string& filters = "",
                          const std::string& more = "");
/// All calls go to `cluster`. `more`: further fields of the action, each with a comma before it.
std::string routes_yaml(const std::string& name,
                        const std::string& cluster,
                        const std::string& more = "");
/// EDS, round robin. `more`: further fields, each with a comma before it.
std::string cluster_yaml(const std::string& name,
                         const std::string& service = "",
                         const std::string& more = "");
std::string aggregate_yaml(const std::string& name,
                           const std::vector<std::string>& clusters,
                           const std::string& more = "");
std::string dns_yaml(const std::string& name, const std::string& host, int port);
/// One locality for each priority; `ip:port` texts.
std::string endpoints_yaml(const std::string& service,
                           const std::vector<std::vector<std::string>>& priorities);
/// Listener and routes `target` to `cluster`, which is EDS with these endpoints.
std::string simple_yaml(const std::string& target,
                        const std::string& cluster,
                        const std::vector<std::string>& addresses);

std::vector<xds::ResourceBytes> resources(const std::string& yaml);

/// `text` with the first `what` in it, which must be there, replaced.
std::string replaced(std::string text, const std::string& what, const std::string& by);

// --- control plane and runtime ------------------------------------------------

inline const std::string kNodeId = "node-of-the-test";

std::unique_ptr<ControlPlane> start_plane(const std::string& yaml);
std::string bootstrap_for(const std::string& server,
                          const std::string& node_id = kNodeId,
                          const std::vector<std::string>& server_features = {});
RuntimeOptions options_for(const std::string& server, const std::string& node_id = kNodeId);
/// As options_for(); whether a resource that is deleted or refused takes the last good one away
/// (A88).
RuntimeOptions data_error_options(const std::string& server, bool fails_on_data_errors);
std::unique_ptr<Runtime> start_runtime(RuntimeOptions options);

/// Some client of the plane has told that it took the newest version of this type.
bool all_acked(const DiscoveryRecord& record, absl::string_view type_url);

/// An address that refuses connections, and that nobody else gets, as long as this lives.
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

/// An address where connections are neither taken nor refused: a full backlog.
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

/// `signalbox backend` as a process. Its replies name `cluster`.
struct BackendProcess {
  /// `more`: further arguments.
  explicit BackendProcess(const std::string& cluster, const std::vector<std::string>& more = {});

  tools::ChildProcess process;
  std::string address;
};

/// A server of `service` in this process, at an `address` of its own.
std::unique_ptr<grpc::Server> start_server(grpc::Service& service, std::string& address);

/// A backend in this process, which holds the calls for the item "hold" until it is told.
class HoldingBackend {
 public:
  explicit HoldingBackend(std::string cluster);
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
  std::string cluster;  ///< As the backend says.
  std::string peer;
  std::string connection;  ///< Our end of it, as the backend sees it.

  bool ok() const { return status.ok(); }

  std::string text() const;
};

Answer call(Stub& stub, const CallOptions& options = {});
Answer call(const std::shared_ptr<grpc::ChannelInterface>& channel,
            const CallOptions& options = {});

/// Calls until a call fails, which is UNAVAILABLE then; what it says.
std::string wait_for_failure(const std::shared_ptr<grpc::ChannelInterface>& channel);

/// Calls that run beside the test, through the callback API.
class Calls {
 public:
  explicit Calls(const std::shared_ptr<grpc::ChannelInterface>& channel);
  ~Calls();  ///< Waits for all.

  void start(int count, const CallOptions& options);
  std::size_t running() const;
  /// The answers of all, once they have come. Fails the test where some never do.
  std::vector<Answer> finish();

 private:
  const std::unique_ptr<Stub> stub_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
  std::vector<Answer> answers_;
};

/// Threads that call one after another, until they are told to end.
class Traffic {
 public:
  Traffic(std::shared_ptr<grpc::ChannelInterface> channel, int threads);
  ~Traffic();

  /// The texts of those that failed.
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

/// The sum of the series of `name` whose line has all of these; nothing: there is no such series.
std::optional<double> metric(const Runtime& runtime,
                             const std::string& name,
                             const std::vector<std::string>& labels = {});

}  // namespace signalbox::test
