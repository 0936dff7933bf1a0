// SPDX-License-Identifier: Apache-2.0
//
// Runtime — signalbox inside your server: start it once, ask it for channels and routers.
//
//   auto runtime = signalbox::Runtime::start();               // bootstrap from the environment
//   if (!runtime.ok()) return runtime.status();
//   auto stub = orders::v1::Orders::NewStub((*runtime)->channel("xds:///orders"));
//
// The bootstrap is gRPC's own: GRPC_XDS_BOOTSTRAP (a path) or GRPC_XDS_BOOTSTRAP_CONFIG (the JSON
// itself). All channels of a runtime share one ADS stream, and their connections.
//
// Thread-safe. Several runtimes may live in one process. Destroying a runtime stops its threads
// and actors; calls in flight run to their end, calls that wait fail UNAVAILABLE, and so does
// every later call on a channel or router that is still held.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "signalbox/router.hpp"

namespace signalbox {

struct RuntimeOptions {
  /// Where the bootstrap is: a file, or the JSON itself; neither: the environment.
  std::optional<std::string> bootstrap_path;
  std::optional<std::string> bootstrap_json;

  /// How long a resource may take to come before it counts as absent (gRFC A57).
  std::chrono::nanoseconds resource_timeout = std::chrono::seconds(15);
  /// How long a priority may take to connect before the next one is tried (gRFC A56).
  std::chrono::nanoseconds failover_timeout = std::chrono::seconds(10);

  /// Back-off of connections to endpoints (gRPC's connection-backoff).
  std::chrono::nanoseconds initial_backoff = std::chrono::seconds(1);
  std::chrono::nanoseconds max_backoff = std::chrono::seconds(120);

  /// Of connections to endpoints; unset: insecure.
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials;
  grpc::ChannelArguments channel_arguments;

  /// The largest xDS response that is accepted, in bytes.
  int max_xds_message_bytes = 64 << 20;

  /// Resolves "host:port" of LOGICAL_DNS clusters to "ip:port" texts; unset: getaddrinfo. May
  /// block. Called on a thread of the runtime.
  std::function<absl::StatusOr<std::vector<std::string>>(const std::string& name)> name_lookup;

  /// Of the actors' scheduler.
  std::size_t scheduler_threads = 2;
  /// Seed of all chance of the control plane (jitter, shuffles); unset: from the system.
  std::optional<std::uint64_t> seed;
};

class Runtime {
 public:
  /// An error names the variable or path, the field, and what was found.
  static absl::StatusOr<std::unique_ptr<Runtime>> start(RuntimeOptions options = {});

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// A drop-in gRPC channel for "xds:///name" or "xds://authority/name"; never null. What is
  /// wrong with the target, every call on the channel says.
  std::shared_ptr<grpc::ChannelInterface> channel(const std::string& target);

  /// The Pick API for the same targets.
  absl::StatusOr<std::shared_ptr<Router>> router(const std::string& target);

  /// All metrics of this runtime, for the embedding server's own exposer or as text.
  std::shared_ptr<prometheus::Collectable> metrics() const;
  std::string metrics_text() const;

  /// Serves /metrics on "host:port" until the runtime ends; port 0 takes a free one. The port.
  absl::StatusOr<int> serve_metrics(const std::string& address);

  /// Calls that were bound to a connection that died before they were sent, and picked again.
  std::int64_t repicked() const;

 private:
  struct State;
  explicit Runtime(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace signalbox
