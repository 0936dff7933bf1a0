// SPDX-License-Identifier: Apache-2.0
//
// The backends and the EDS resource of tests of load reports (LRS).
//
//   two_zones() ─▶ EDS: zone z0, zone z1 ─▶ Runtime ─ calls ─▶ [Backend]: calls(), by backend

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <grpcpp/grpcpp.h>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {

/// Makes a cluster's load reported to the server that sent the cluster. For cluster_yaml().
inline const char* const kSelf = ", lrs_server: {self: {}}";

/// A backend that fails calls for an item that begins with "fail".
class Backend {
 public:
  Backend() : server_(start_server(service_, address_)) {}

  ~Backend() { server_->Shutdown(std::chrono::system_clock::now()); }

  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& address() const { return address_; }

  std::uint64_t calls() const { return service_.calls; }

 private:
  struct Service final : demo::v1::Orders::Service {
    grpc::Status Place(grpc::ServerContext* /*context*/,
                       const demo::v1::PlaceRequest* request,
                       demo::v1::PlaceReply* /*reply*/) override {
      ++calls;
      if (!absl::StartsWith(request->item(), "fail")) return grpc::Status::OK;
      return {grpc::StatusCode::FAILED_PRECONDITION, "as ordered"};
    }

    std::atomic<std::uint64_t> calls{0};
  };

  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

/// An EDS resource with the zones z0 and z1 in one priority.
inline std::string two_zones(const std::string& service,
                             const std::vector<std::string>& here,
                             const std::vector<std::string>& there) {
  return replaced(endpoints_yaml(service, {here, there}), "priority: 1", "priority: 0");
}

}  // namespace signalbox::test
