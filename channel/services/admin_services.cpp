// SPDX-License-Identifier: Apache-2.0
//
// Runtime::add_admin_services. It is in a library of its own, signalbox::admin_services, so that
// other programs need not link the services and their generated code.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "channel/services/channelz_service.hpp"
#include "channel/services/csds_service.hpp"
#include "channel/services/health_service.hpp"
#include "channel/services/worker.hpp"
#include "signalbox/runtime.hpp"

namespace signalbox {
namespace {

/// The services of one server. The worker is declared first, so that it is destroyed after the
/// services, which use it.
struct AddedServices {
  explicit AddedServices(const LimitHit& hit) : worker(hit) {}

  channel::Worker worker;
  std::unique_ptr<channel::CsdsService> csds;
  std::unique_ptr<channel::ChannelzService> channelz;
  std::unique_ptr<channel::HealthService> health;
};

using Plugins = std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>;

// Copies the names of a ServerBuilder's plugins into `names`, and removes the plugins.
class PluginNames final : public grpc::ServerBuilderOption {
 public:
  explicit PluginNames(std::vector<std::string>& names) : names_(names) {}

  void UpdateArguments(grpc::ChannelArguments* /*args*/) override {}

  void UpdatePlugins(Plugins* plugins) override {
    for (const auto& plugin : *plugins)
      names_.push_back(plugin->name());
    plugins->clear();
  }

 private:
  std::vector<std::string>& names_;
};

// Whether every server of the process gets gRPC's own channelz service. gRPC has no function that
// tells this. But a ServerBuilder shows its plugins to its options, and channelz is such a plugin:
// so a server is built, which listens nowhere, only to read the names of the plugins.
bool has_channelz_already() {
  std::vector<std::string> names;
  grpc::ServerBuilder builder;
  builder.SetOption(std::make_unique<PluginNames>(names));
  const auto queue = builder.AddCompletionQueue();  // gRPC builds no server without one.
  auto server = builder.BuildAndStart();
  if (server != nullptr) server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
  return std::ranges::find(names, "channelz_service") != names.end();
}

absl::Status check(const AdminServices& services) {
  if (services.channelz && has_channelz_already()) {
    return absl::FailedPreconditionError(
        "channelz: the process has gRPC's channelz already "
        "(grpc::channelz::experimental::InitChannelzService); leave one of the two out, this one "
        "by AdminServices::channelz = false");
  }
  if (services.health && grpc::DefaultHealthCheckServiceEnabled()) {
    return absl::FailedPreconditionError(
        "health: the process has gRPC's health service already "
        "(grpc::EnableDefaultHealthCheckService); leave one of the two out, this one by "
        "AdminServices::health = false");
  }
  return {};
}

}  // namespace

absl::Status Runtime::add_admin_services(grpc::ServerBuilder& builder, AdminServices services) {
  if (auto status = check(services); !status.ok()) return status;
  const LimitHit hit = count_limits(kGrpcLimits);
  const auto added = std::make_shared<AddedServices>(hit);
  if (services.csds) {
    added->csds =
        std::make_unique<channel::CsdsService>(added->worker, [this] { return dump(); }, hit);
    builder.RegisterService(added->csds.get());
  }
  if (services.channelz) {
    added->channelz =
        std::make_unique<channel::ChannelzService>(added->worker, [this] { return status(); });
    builder.RegisterService(added->channelz.get());
  }
  if (services.health) {
    added->health = std::make_unique<channel::HealthService>(
        [this](const std::string& target) { return ready(target); },
        [this] { return readiness(); },
        hit);
    builder.RegisterService(added->health.get());
  }
  keep(added);
  return absl::OkStatus();
}

}  // namespace signalbox
