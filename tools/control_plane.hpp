// SPDX-License-Identifier: Apache-2.0
//
// A real control plane: an ADS server over gRPC for `signalbox serve`, the demo and the tests.
//
//   client ◀─ gRPC stream ─▶ [ControlPlane] ◀─▶ DiscoveryServer (what to answer)
//
// The gRPC service has the official name of ADS. It is a generic service over bytes, because a
// service generated from signalbox's protobuf packages would have their prefix in its name. The
// address may have port 0; the bound port is kept over stop() and start_again(), so that clients
// find it again. An address in use is an error (gRPC by itself would share the port in silence).
//
// stop() and start_again() are for one thread at a time. Every other function may be called from
// any thread, at any time. One mutex guards the state that they all share. No function blocks while
// it holds the mutex.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include "xds/discovery_server.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::tools {

using xds::DiscoveryRecord;

class AdsStream;
class AdsService;

/// Makes the reactor of a call of a method other than ADS. Null ends the call UNIMPLEMENTED.
using OtherMethods = std::function<grpc::ServerGenericBidiReactor*(const std::string& method)>;

class ControlPlane {
 public:
  /// Listens on `host:port`. INVALID_ARGUMENT if `address` has another form; UNAVAILABLE, with the
  /// address, if the port cannot be bound. `others`: empty: ADS is the only method.
  static absl::StatusOr<std::unique_ptr<ControlPlane>> start(const std::string& address,
                                                             OtherMethods others = nullptr);

  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// `host:port` with the port that was bound.
  std::string address() const;

  void set_resources(const std::vector<xds::ResourceBytes>& resources);
  void update(const std::vector<xds::ResourceBytes>& resources);
  void remove(absl::string_view type_url, absl::string_view name);

  /// Cuts every stream and frees the port; resources and records stay.
  void stop();
  /// Listens again on the same port. Precondition: stopped.
  absl::Status start_again();

  DiscoveryRecord record() const;
  /// Waits until the predicate holds; false if it does not hold within `at_most`.
  bool wait_for(const std::function<bool(const DiscoveryRecord&)>& predicate,
                std::chrono::milliseconds at_most) const;

 private:
  friend class AdsStream;
  friend class AdsService;

  ControlPlane(const std::string& address, OtherMethods others);
  absl::Status listen();
  void send(const xds::OutgoingResponses& responses);

  const std::string host_;
  const OtherMethods others_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  xds::DiscoveryServer core_;
  std::map<xds::StreamId, AdsStream*> streams_;
  int port_;
  // A generic service belongs to one server, so each start makes a new one.
  std::unique_ptr<grpc::CallbackGenericService> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace signalbox::tools
