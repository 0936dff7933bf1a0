// SPDX-License-Identifier: Apache-2.0
//
// The :authority of calls, as a backend sees it: its source, and the settings that change it (gRFC
// A81).
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

// Sets the environment variable kSwitch during this object's life. A runtime reads it with each
// response of a trusted server.
class RewriteSwitch {
 public:
  explicit RewriteSwitch(const char* value) { ::setenv(kSwitch, value, 1); }

  ~RewriteSwitch() { ::unsetenv(kSwitch); }

  RewriteSwitch(const RewriteSwitch&) = delete;
  RewriteSwitch& operator=(const RewriteSwitch&) = delete;

 private:
  static constexpr const char* kSwitch = "GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE";
};

// Replies with the :authority of the call.
class AuthorityBackend {
 public:
  AuthorityBackend() {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }

  int port() const { return port_; }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  class Service final : public demo::v1::Orders::Service {
    grpc::Status Place(grpc::ServerContext* context,
                       const demo::v1::PlaceRequest* /*request*/,
                       demo::v1::PlaceReply* reply) override {
      const grpc::string_ref seen = context->ExperimentalGetAuthority();
      reply->set_cluster(std::string(seen.data(), seen.size()));
      return grpc::Status::OK;
    }
  };

  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

const char* const kTrusted = "trusted_xds_server";
const char* const kRewrite = ", auto_host_rewrite: true";

// One endpoint; `hostname` empty: the endpoint has none.
std::string yaml_for(const std::string& address,
                     const std::string& hostname,
                     const std::string& action = kRewrite) {
  std::string endpoints = endpoints_yaml("orders", {{address}});
  if (!hostname.empty()) {
    absl::StrReplaceAll(
        {{"{endpoint: {", absl::StrCat("{endpoint: {hostname: \"", hostname, "\", ")}}, &endpoints);
  }
  return listener_yaml("orders", "orders") + routes_yaml("orders", "orders", action) +
         cluster_yaml("orders") + endpoints;
}

struct World {
  World(const std::string& yaml,
        const std::vector<std::string>& features,
        const grpc::ChannelArguments& arguments = {})
      : plane(start_plane(yaml)) {
    RuntimeOptions options = options_for(plane->address());
    options.channel_arguments = arguments;
    options.bootstrap_json = bootstrap_for(plane->address(), kNodeId, features);
    runtime = start_runtime(std::move(options));
  }

  std::string seen() const {
    const Answer answer = call(runtime->channel("xds:///orders"));
    INFO(answer.text());
    REQUIRE(answer.ok());
    return answer.cluster;
  }

  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
};

}  // namespace

TEST_CASE("runtime authority: the endpoint's hostname, where all agree to it",
          "[e2e][runtime][A81]") {
  struct Row {
    const char* when;
    const char* variable;
    std::vector<std::string> features;
    const char* action;
    const char* hostname;
    bool rewritten;
  };

  const auto row = GENERATE(values<Row>({
      {"all do", "true", {kTrusted}, kRewrite, "h.example", true},
      {"the variable does not", "false", {kTrusted}, kRewrite, "h.example", false},
      {"the bootstrap does not", "true", {"xds_v3"}, kRewrite, "h.example", false},
      {"the route does not", "true", {kTrusted}, "", "h.example", false},
      {"the endpoint has none", "true", {kTrusted}, kRewrite, "", false},
  }));
  const RewriteSwitch on(row.variable);
  const AuthorityBackend backend;
  const World world(yaml_for(backend.address(), row.hostname, row.action), row.features);
  INFO(row.when);
  CHECK(world.seen() == (row.rewritten ? "h.example" : "orders"));
}

TEST_CASE("runtime authority: by default it is the target's, as on gRPC's own channel",
          "[e2e][runtime][authority][A47]") {
  struct Row {
    const char* target;
    const char* listener;
    const char* seen;
  };

  const auto row = GENERATE(values<Row>({
      {"xds:///echo.default.svc:7070", "echo.default.svc:7070", "echo.default.svc:7070"},
      {"xds:///echo%2Edefault.svc%3A7070", "echo.default.svc:7070", "echo.default.svc:7070"},
      {"xds:echo", "echo", "echo"},
      {"xds:///[2001:db8::1]:80", "[2001:db8::1]:80", "[2001:db8::1]:80"},
  }));
  CAPTURE(row.target);
  const AuthorityBackend backend;
  const std::string listener = absl::StrCat("\"", row.listener, "\"");
  const std::string routes = replaced(routes_yaml("orders", "orders"),
                                      "domains: [\"*\"]",
                                      absl::StrCat("domains: [", listener, "]"));
  const World world(listener_yaml(listener, "orders") + routes + cluster_yaml("orders") +
                        endpoints_yaml("orders", {{backend.address()}}),
                    {});
  const Answer ours = call(world.runtime->channel(row.target));
  INFO(ours.text());
  CHECK(ours.cluster == row.seen);

  ::setenv("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap_for(world.plane->address()).c_str(), 1);
  const Answer theirs = call(grpc::CreateChannel(row.target, grpc::InsecureChannelCredentials()));
  ::unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
  INFO(theirs.text());
  CHECK(theirs.cluster == ours.cluster);
}

TEST_CASE("runtime authority: each channel may have its own", "[e2e][runtime][authority]") {
  const AuthorityBackend backend;
  const bool has_default = GENERATE(false, true);
  grpc::ChannelArguments arguments;
  if (has_default) arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "default.example");
  const World world(yaml_for(backend.address(), "", ""), {}, arguments);
  const auto channel_of = [&](const std::string& authority) {
    Runtime::ChannelOptions options;
    options.authority = authority;
    return world.runtime->channel("xds:///orders", std::move(options));
  };
  CHECK(call(channel_of("own.example:80")).cluster == "own.example:80");
  CHECK(call(channel_of("")).cluster == (has_default ? "default.example" : "orders"));

  const Answer wrong = call(channel_of("own\n"));
  CHECK(wrong.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(wrong.status.error_message(),
             Catch::Contains("the default authority: byte 4 of 4 is not printable ASCII"));
}

TEST_CASE("runtime authority: a default one that is no header's value is refused by start()",
          "[e2e][runtime][authority]") {
  RuntimeOptions options = options_for("127.0.0.1:1");
  options.channel_arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "own\n");
  const auto runtime = Runtime::start(std::move(options));
  REQUIRE(runtime.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(runtime.status().message() ==
        "RuntimeOptions::channel_arguments: the default authority: byte 4 of 4 is not printable "
        "ASCII");
}

TEST_CASE("runtime authority: the default one of the channel arguments, unless hostnames are used",
          "[e2e][runtime][A81]") {
  const auto action = GENERATE(values<std::string>({"", kRewrite}));
  const RewriteSwitch on("true");
  const AuthorityBackend backend;
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "default.example");
  const World world(yaml_for(backend.address(), "h.example", action), {kTrusted}, arguments);
  CHECK(world.seen() == (action == kRewrite ? "h.example" : "default.example"));
}

TEST_CASE("runtime: channel arguments that are signalbox's own are refused by name",
          "[e2e][runtime]") {
  const std::string name =
      GENERATE(values<std::string>({GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                                    GRPC_ARG_ENABLE_RETRIES,
                                    GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION,
                                    GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS,
                                    GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                                    GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                                    GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                                    GRPC_ARG_DISABLE_CLIENT_AUTHORITY_FILTER}));
  RuntimeOptions options = options_for("127.0.0.1:1");
  options.channel_arguments.SetInt(name, 1);
  const auto runtime = Runtime::start(std::move(options));
  REQUIRE(runtime.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(runtime.status().message() ==
        absl::StrCat("RuntimeOptions::channel_arguments: must not set \"",
                     name,
                     "\", which signalbox decides itself"));
}

TEST_CASE("runtime authority: what the application sets comes first", "[e2e][runtime][A81]") {
  const RewriteSwitch on("true");
  const AuthorityBackend backend;
  const World world(yaml_for(backend.address(), "h.example"), {kTrusted});
  Stub stub(world.runtime->channel("xds:///orders"));
  grpc::ClientContext context;
  context.set_authority("own.example");
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  demo::v1::PlaceReply reply;
  REQUIRE(stub.Place(&context, {}, &reply).ok());
  CHECK(reply.cluster() == "own.example");
}

TEST_CASE("runtime authority: of a LOGICAL_DNS cluster, the name that is resolved",
          "[e2e][runtime][A81]") {
  const RewriteSwitch on("true");
  const AuthorityBackend backend;
  const World world(listener_yaml("orders", "orders") + routes_yaml("orders", "orders", kRewrite) +
                        dns_yaml("orders", "localhost", backend.port()),
                    {kTrusted});
  CHECK(world.seen() == absl::StrCat("localhost:", backend.port()));
}

TEST_CASE("runtime authority: a call that had to wait has it too, and so has a router's pick",
          "[e2e][runtime][A81]") {
  const RewriteSwitch on("true");
  const AuthorityBackend backend;
  const World world(yaml_for(backend.address(), "h.example"), {kTrusted});
  const auto channel = world.runtime->channel("xds:///orders");
  CHECK(call(channel).cluster == "h.example");  // No connection exists yet.
  CHECK(call(channel).cluster == "h.example");  // A connection exists.

  const auto router = world.runtime->router("xds:///orders");
  REQUIRE(router.ok());
  std::string authority;
  const Pick pick = (*router)->pick({.path = "/o/P", .seed = 1, .authority = &authority});
  CHECK(pick.outcome() == PickOutcome::kComplete);
  CHECK(authority == "h.example");
}

}  // namespace signalbox::test
