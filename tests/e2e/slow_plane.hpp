// SPDX-License-Identifier: Apache-2.0
//
// SlowPlane — a control plane that takes a fixed time for each resource of a response.
//
//   client ─▶ request ─▶ [SlowPlane] ─▶ wait: resources × work_of_resource ─▶ response
//
// A response has those resources of the plane that its request names. SlowPlane sends the response
// before it reads the stream's next request. Which requests get a response:
//   no nonce             yes: the request cannot be matched with an earlier response
//   an old nonce         no, as in real control planes: another request follows
//   the newest nonce     only if the names differ from those of the last request

#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_bytes.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/resource_file.hpp"

namespace signalbox::test {

class SlowPlane {
 public:
  SlowPlane(const std::vector<xds::ResourceBytes>& resources,
            std::chrono::milliseconds work_of_resource)
      : service_(*this), work_(work_of_resource) {
    for (const xds::ResourceBytes& resource : resources)
      world_[resource.type_url][resource.name] = resource.bytes;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  ~SlowPlane() { server_->Shutdown(std::chrono::system_clock::now()); }

  SlowPlane(const SlowPlane&) = delete;
  SlowPlane& operator=(const SlowPlane&) = delete;

  const std::string& address() const { return address_; }

  int requests() const { return requests_; }

 private:
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(SlowPlane& plane) : plane_(plane) { StartRead(&incoming_); }

    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      ++plane_.requests_;
      envoy::service::discovery::v3::DiscoveryRequest request;
      request.ParseFromString(actors::to_bytes(incoming_));
      std::set<std::string> names(request.resource_names().begin(), request.resource_names().end());
      std::string& newest = newest_[request.type_url()];
      const std::string& nonce = request.response_nonce();
      if (!nonce.empty() && nonce != newest) return StartRead(&incoming_);
      std::set<std::string>& before = names_[request.type_url()];
      const bool asks = nonce.empty() || names != before;
      before = names;
      if (!asks) return StartRead(&incoming_);
      envoy::service::discovery::v3::DiscoveryResponse response;
      response.set_type_url(request.type_url());
      response.set_version_info("1");
      newest = absl::StrCat("n", ++nonces_);
      response.set_nonce(newest);
      const auto& resources = plane_.world_.at(request.type_url());
      for (const std::string& name : names) {
        const auto found = resources.find(name);
        if (found == resources.end()) continue;
        auto* any = response.add_resources();
        any->set_type_url(request.type_url());
        any->set_value(found->second);
      }
      outgoing_ = actors::to_buffer(response.SerializeAsString());
      alarm_.Set(std::chrono::system_clock::now() + plane_.work_ * response.resources_size(),
                 [this](bool) { StartWrite(&outgoing_); });
    }

    void OnWriteDone(bool /*ok*/) override { StartRead(&incoming_); }

    void OnDone() override { delete this; }

   private:
    SlowPlane& plane_;
    std::map<std::string, std::set<std::string>> names_;  // By type URL.
    std::map<std::string, std::string> newest_;           // The last nonce by type URL.
    int nonces_ = 0;
    grpc::Alarm alarm_;
    grpc::ByteBuffer incoming_;
    grpc::ByteBuffer outgoing_;
  };

  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(SlowPlane& plane) : plane_(plane) {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* /*context*/) override {
      return new Stream(plane_);
    }

   private:
    SlowPlane& plane_;
  };

  Service service_;
  const std::chrono::milliseconds work_;
  std::map<std::string, std::map<std::string, std::string>> world_;
  std::string address_;
  std::atomic<int> requests_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace signalbox::test
