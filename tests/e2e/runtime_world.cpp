// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/runtime_world.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/lb_endpoints_yaml.hpp"
#include "tests/support/discovery_record.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::test {
namespace {

const char kConfig[] = "type.googleapis.com/envoy.config.";
const char kExtensions[] = "type.googleapis.com/envoy.extensions.";

// A TCP socket that is bound to a free port of 127.0.0.1.
int bound_socket(std::string& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  REQUIRE(::bind(fd, generic, length) == 0);
  REQUIRE(::getsockname(fd, generic, &length) == 0);
  address = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  return fd;
}

// Whether a new connection to `address` is still under way after a moment.
bool hangs(const std::string& address, std::vector<int>& sockets) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockets.push_back(fd);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) return false;
  pollfd connected{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&connected, 1, /*timeout=*/50) == 0;
}

}  // namespace

std::string listener_yaml(const std::string& name,
                          const std::string& routes,
                          const std::string& filters,
                          const std::string& more) {
  return absl::StrCat("  - {\"@type\": ",
                      kConfig,
                      "listener.v3.Listener, name: ",
                      name,
                      ", api_listener: {api_listener: {\"@type\": ",
                      kExtensions,
                      "filters.network.http_connection_manager.v3.HttpConnectionManager, "
                      "rds: {route_config_name: ",
                      routes,
                      ", config_source: {ads: {}}}, http_filters: [",
                      filters,
                      "{name: router, typed_config: {\"@type\": ",
                      kExtensions,
                      "filters.http.router.v3.Router}}]",
                      more,
                      "}}}\n");
}

std::string routes_yaml(const std::string& name,
                        const std::string& cluster,
                        const std::string& more) {
  return absl::StrCat("  - {\"@type\": ",
                      kConfig,
                      "route.v3.RouteConfiguration, name: ",
                      name,
                      ", virtual_hosts: [{name: all, domains: [\"*\"], routes: [{match: {prefix: "
                      "\"\"}, route: {cluster: ",
                      cluster,
                      more,
                      "}}]}]}\n");
}

std::string cluster_yaml(const std::string& name,
                         const std::string& service,
                         const std::string& more) {
  const std::string service_name = service.empty() ? "" : absl::StrCat(", service_name: ", service);
  return absl::StrCat("  - {\"@type\": ",
                      kConfig,
                      "cluster.v3.Cluster, name: ",
                      name,
                      ", type: EDS, eds_cluster_config: {eds_config: {ads: {}}",
                      service_name,
                      "}",
                      more,
                      "}\n");
}

std::string aggregate_yaml(const std::string& name,
                           const std::vector<std::string>& clusters,
                           const std::string& more) {
  return absl::StrCat("  - {\"@type\": ",
                      kConfig,
                      "cluster.v3.Cluster, name: ",
                      name,
                      ", cluster_type: {name: envoy.clusters.aggregate, typed_config: {\"@type\": ",
                      kExtensions,
                      "clusters.aggregate.v3.ClusterConfig, clusters: [",
                      absl::StrJoin(clusters, ", "),
                      "]}}",
                      more,
                      "}\n");
}

std::string dns_yaml(const std::string& name, const std::string& host, int port) {
  return absl::StrCat("  - {\"@type\": ",
                      kConfig,
                      "cluster.v3.Cluster, name: ",
                      name,
                      ", type: LOGICAL_DNS, load_assignment: {cluster_name: ",
                      name,
                      ", endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: "
                      "{address: ",
                      host,
                      ", port_value: ",
                      port,
                      "}}}}]}]}}\n");
}

std::string endpoints_yaml(const std::string& service,
                           const std::vector<std::vector<std::string>>& priorities) {
  std::vector<std::string> localities;
  localities.reserve(priorities.size());
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    localities.push_back(absl::StrCat("{locality: {region: r, zone: z",
                                      i,
                                      "}, load_balancing_weight: 1, priority: ",
                                      i,
                                      ", lb_endpoints: [",
                                      lb_endpoints_yaml(priorities[i]),
                                      "]}"));
  }
  return absl::StrCat("  - {\"@type\": ",
                      kConfig,
                      "endpoint.v3.ClusterLoadAssignment, ",
                      "cluster_name: ",
                      service,
                      ", endpoints: [",
                      absl::StrJoin(localities, ", "),
                      "]}\n");
}

std::string simple_yaml(const std::string& target,
                        const std::string& cluster,
                        const std::vector<std::string>& addresses) {
  return absl::StrCat(listener_yaml(target, target),
                      routes_yaml(target, cluster),
                      cluster_yaml(cluster),
                      endpoints_yaml(cluster, {addresses}));
}

std::vector<xds::ResourceBytes> resources(const std::string& yaml) {
  if (yaml.empty()) return {};
  auto parsed =
      xds::parse_resources_text("resources:\n" + yaml, xds::Format::kYaml, "resources.yaml");
  INFO(parsed.status().ToString());
  REQUIRE(parsed.ok());
  return *std::move(parsed);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto found = text.find(what);
  REQUIRE(found != std::string::npos);
  return text.replace(found, what.size(), by);
}

std::unique_ptr<ControlPlane> start_plane(const std::string& yaml) {
  auto plane = ControlPlane::start("127.0.0.1:0");
  INFO(plane.status().ToString());
  REQUIRE(plane.ok());
  (*plane)->set_resources(resources(yaml));
  return *std::move(plane);
}

std::string bootstrap_for(const std::string& server,
                          const std::string& node_id,
                          const std::vector<std::string>& server_features) {
  const nlohmann::json insecure{{"type", "insecure"}};
  const nlohmann::json only{{"server_uri", server},
                            {"channel_creds", nlohmann::json::array({insecure})},
                            {"server_features", server_features}};
  return nlohmann::json{{"xds_servers", nlohmann::json::array({only})}, {"node", {{"id", node_id}}}}
      .dump();
}

RuntimeOptions options_for(const std::string& server, const std::string& node_id) {
  RuntimeOptions options;
  options.bootstrap_json = bootstrap_for(server, node_id);
  options.initial_backoff = std::chrono::milliseconds(50);
  options.max_backoff = std::chrono::milliseconds(500);
  options.seed = 7;
  return options;
}

RuntimeOptions data_error_options(const std::string& server, bool fails_on_data_errors) {
  RuntimeOptions options = options_for(server);
  if (fails_on_data_errors)
    options.bootstrap_json = bootstrap_for(server, kNodeId, {"fail_on_data_errors"});
  return options;
}

std::unique_ptr<Runtime> start_runtime(RuntimeOptions options) {
  auto runtime = Runtime::start(std::move(options));
  INFO(runtime.status().ToString());
  REQUIRE(runtime.ok());
  return *std::move(runtime);
}

bool all_acked(const DiscoveryRecord& record, absl::string_view type_url) {
  const auto* type = newest(record, type_url);
  return type != nullptr && !type->acked_nonce.empty() && type->acked_nonce == type->sent_nonce;
}

RefusingAddress::RefusingAddress() : fd_(bound_socket(address_)) {}

RefusingAddress::~RefusingAddress() {
  ::close(fd_);
}

BlackHole::BlackHole() : fd_(bound_socket(address_)) {
  REQUIRE(::listen(fd_, 0) == 0);
  for (int i = 0; i < 16; ++i) {
    if (hangs(address_, fill_)) return;
  }
  FAIL("the backlog does not fill up");
}

BlackHole::~BlackHole() {
  for (const int fd : fill_)
    ::close(fd);
  ::close(fd_);
}

namespace {

// An address of the loopback network that no other test process uses. When a backend ends, a server
// of another test may get its port, but not on this address.
std::string own_loopback() {
  const auto id = static_cast<std::uint32_t>(getpid());
  return absl::StrCat("127.", 64 + (id >> 16U) % 64, ".", (id >> 8U) % 256, ".", id % 256, ":0");
}

std::vector<std::string> backend_arguments(const std::string& cluster,
                                           const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      SIGNALBOX_PROGRAM, "backend", "--name", cluster, "--cluster", cluster};
  if (std::ranges::find(more, "--listen") == more.end()) {
    arguments.insert(arguments.end(), {"--listen", own_loopback()});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

BackendProcess::BackendProcess(const std::string& cluster, const std::vector<std::string>& more)
    : process(start_program(backend_arguments(cluster, more))) {
  const auto line = process.read_line(kPatience);
  INFO(line.status().ToString() << " " << process.captured_errors());
  REQUIRE(line.ok());
  address = nlohmann::json::parse(*line)["address"];
}

std::unique_ptr<grpc::Server> start_server(grpc::Service& service,
                                           std::string& address,
                                           const std::function<void(grpc::ServerBuilder&)>& more) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  if (more != nullptr) more(builder);
  auto server = builder.BuildAndStart();
  REQUIRE(server != nullptr);
  address = absl::StrCat("127.0.0.1:", port);
  return server;
}

HoldingBackend::HoldingBackend(std::string cluster, int max_streams)
    : service_(std::move(cluster)),
      server_(start_server(service_, address_, [max_streams](grpc::ServerBuilder& builder) {
        if (max_streams > 0)
          builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, max_streams);
      })) {}

HoldingBackend::~HoldingBackend() {
  release();
  server_->Shutdown(std::chrono::system_clock::now());
}

grpc::ServerUnaryReactor* HoldingBackend::Service::Place(grpc::CallbackServerContext* context,
                                                         const demo::v1::PlaceRequest* request,
                                                         demo::v1::PlaceReply* reply) {
  reply->set_cluster(cluster_);
  reply->set_connection(context->peer());
  auto* const reactor = context->DefaultReactor();
  if (request->item() == "hold") {
    const std::lock_guard lock(mutex_);
    held_.push_back(reactor);
  } else {
    reactor->Finish(grpc::Status::OK);
  }
  return reactor;
}

std::size_t HoldingBackend::Service::held() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void HoldingBackend::Service::release() {
  std::vector<grpc::ServerUnaryReactor*> held;
  {
    const std::lock_guard lock(mutex_);
    held.swap(held_);
  }
  for (auto* const reactor : held)
    reactor->Finish(grpc::Status::OK);
}

std::string Answer::text() const {
  return absl::StrCat("code ", static_cast<int>(status.error_code()), ", ", status.error_message());
}

Answer call(Stub& stub, const CallOptions& options) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options.timeout);
  context.set_wait_for_ready(options.wait_for_ready);
  for (const auto& [name, value] : options.headers)
    context.AddMetadata(name, value);
  demo::v1::PlaceRequest request;
  request.set_item(options.item);
  request.set_work_us(options.work_us);
  demo::v1::PlaceReply reply;
  const grpc::Status status = stub.Place(&context, request, &reply);
  return {status, reply.cluster(), context.peer(), reply.connection()};
}

Answer call(const std::shared_ptr<grpc::ChannelInterface>& channel, const CallOptions& options) {
  Stub stub(channel);
  return call(stub, options);
}

namespace {

struct RunningCall {
  grpc::ClientContext context;
  demo::v1::PlaceRequest request;
  demo::v1::PlaceReply reply;
};

}  // namespace

std::string wait_for_failure(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  Answer answer;
  CHECK(eventually([&] {
    answer = call(channel);
    return !answer.ok();
  }));
  INFO(answer.text());
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  return answer.status.error_message();
}

Calls::Calls(const std::shared_ptr<grpc::ChannelInterface>& channel)
    : stub_(demo::v1::Orders::NewStub(channel)) {}

Calls::~Calls() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return running_ == 0; });
}

void Calls::start(int count, const CallOptions& options) {
  for (int i = 0; i < count; ++i) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    auto* const one = new RunningCall;
    one->context.set_deadline(std::chrono::system_clock::now() + options.timeout);
    one->context.set_wait_for_ready(options.wait_for_ready);
    for (const auto& [name, value] : options.headers)
      one->context.AddMetadata(name, value);
    one->request.set_item(options.item);
    one->request.set_work_us(options.work_us);
    stub_->async()->Place(
        &one->context, &one->request, &one->reply, [this, one](const grpc::Status& status) {
          Answer answer{status, one->reply.cluster(), one->context.peer(), one->reply.connection()};
          delete one;
          const std::lock_guard lock(mutex_);
          answers_.push_back(std::move(answer));
          --running_;
          changed_.notify_all();
        });
  }
}

std::size_t Calls::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

std::vector<Answer> Calls::finish() {
  std::unique_lock lock(mutex_);
  REQUIRE(changed_.wait_for(lock, kPatience, [this] { return running_ == 0; }));
  return std::exchange(answers_, {});
}

Traffic::Traffic(std::shared_ptr<grpc::ChannelInterface> channel, int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, channel] {
      Stub stub(channel);
      while (!ending_) {
        const Answer answer = call(stub);
        ++completed_;
        if (answer.ok()) continue;
        const std::lock_guard lock(mutex_);
        failures_.push_back(answer.text());
      }
    });
  }
}

Traffic::~Traffic() {
  finish();
}

std::vector<std::string> Traffic::finish() {
  ending_ = true;
  for (std::thread& thread : threads_)
    thread.join();
  threads_.clear();
  return std::exchange(failures_, {});
}

std::optional<double> metric(const Runtime& runtime,
                             const std::string& name,
                             const std::vector<std::string>& labels) {
  std::optional<double> sum;
  std::istringstream text(runtime.metrics_text());
  for (std::string line; std::getline(text, line);) {
    if (!absl::StartsWith(line, name + "{") && !absl::StartsWith(line, name + " ")) continue;
    const auto has = [&](const std::string& label) { return absl::StrContains(line, label); };
    if (!std::all_of(labels.begin(), labels.end(), has)) continue;
    sum = sum.value_or(0) + std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

}  // namespace signalbox::test
