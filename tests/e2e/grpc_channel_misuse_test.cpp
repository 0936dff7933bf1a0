// SPDX-License-Identifier: Apache-2.0
//
// Wrong use of the public API gets an error or has no effect. It does not crash the process.
#include <atomic>

#include <catch2/catch.hpp>
#include <grpc/support/log.h>

#include "signalbox/runtime.hpp"
#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

// A runtime with a control plane that does not exist.
std::unique_ptr<Runtime> lonely_runtime() {
  RuntimeOptions options;
  options.bootstrap_json =
      R"({"xds_servers": [{"server_uri": "127.0.0.1:1",
          "channel_creds": [{"type": "insecure"}]}], "node": {"id": "node-7"}})";
  auto runtime = Runtime::start(std::move(options));
  REQUIRE(runtime.ok());
  return *std::move(runtime);
}

// Counts the errors that gRPC logs while this object lives, instead of printing them.
class LoggedErrors {
 public:
  LoggedErrors() {
    count_ = 0;
    gpr_set_log_function([](gpr_log_func_args* logged) {
      if (logged->severity == GPR_LOG_SEVERITY_ERROR) ++count_;
    });
  }

  ~LoggedErrors() { gpr_set_log_function(nullptr); }

  LoggedErrors(const LoggedErrors&) = delete;
  LoggedErrors& operator=(const LoggedErrors&) = delete;

  int count() const { return count_; }

 private:
  static inline std::atomic<int> count_ = 0;
};

}  // namespace

TEST_CASE("runtime: gRPC logs no error of its own for a target that is none", "[runtime][misuse]") {
  const std::string target = GENERATE("", "orders", "http://orders", "xds:", "xds://orders");
  CAPTURE(target);
  const LoggedErrors errors;
  auto runtime = lonely_runtime();
  const auto channel = runtime->channel(target);
  grpc::ClientContext context;
  EchoReply reply;
  CHECK_FALSE(Echo::NewStub(channel)->Unary(&context, {}, &reply).ok());
  CHECK(errors.count() == 0);
}

TEST_CASE("runtime: a target that is none fails every call with a text that names it",
          "[runtime][misuse]") {
  const std::string target =
      GENERATE("", "orders", "dns:///orders", "http://orders", "xds:", "xds://orders");
  CAPTURE(target);
  auto runtime = lonely_runtime();
  const auto channel = runtime->channel(target);
  REQUIRE(channel != nullptr);
  const auto stub = Echo::NewStub(channel);
  for (const Api api : {Api::kSync, Api::kAsync, Api::kCallback}) {
    INFO(to_string(api));
    grpc::ClientContext context;
    EchoReply reply;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    const auto status = call(*stub, api, context, {}, reply);
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK_THAT(status.error_message(), Contains("target \"" + target + "\""));
  }
  CHECK(channel->GetState(true) == GRPC_CHANNEL_TRANSIENT_FAILURE);
  CHECK_FALSE(channel->WaitForStateChange(GRPC_CHANNEL_TRANSIENT_FAILURE,
                                          std::chrono::system_clock::now()));
  CHECK_FALSE(runtime->router(target).ok());
  runtime = nullptr;
  CHECK(channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE);
}

TEST_CASE("router: wrong use is answered, also after the runtime's end", "[router][misuse]") {
  auto runtime = lonely_runtime();
  const auto router = *runtime->router("xds:///orders");
  const auto other = *runtime->router("xds:///others");
  Pick fresh;
  Pick pick = router->pick({});
  CHECK(pick.outcome() != PickOutcome::kComplete);
  const auto past = std::chrono::steady_clock::now() - std::chrono::hours(1);
  router->wait(pick, past);
  router->on_change(pick, nullptr);
  router->repick(fresh, {.path = ""});
  other->repick(pick, {.path = "no path at all"});
  for (const int code : {0, 0, -1, 1'000}) {
    router->started(pick);
    router->finished(pick, code);
    Pick none;
    router->finished(none, code);
  }
  CHECK_FALSE(runtime->serve_metrics("").ok());
  CHECK_FALSE(runtime->serve_metrics("nowhere").ok());
  CHECK_FALSE(runtime->serve_metrics("127.0.0.1:99999").ok());

  runtime = nullptr;
  CHECK_FALSE(router->wait(pick, std::chrono::steady_clock::now() + std::chrono::hours(1)));
  bool told = false;
  router->on_change(pick, [&] { told = true; });
  CHECK(told);
  router->repick(pick, {.path = "/orders/Place"});
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK_THAT(std::string(pick.status().message()), Contains("shut down"));
}

TEST_CASE("runtime: options that make no sense are errors or harmless", "[runtime][misuse]") {
  RuntimeOptions options;
  SECTION("no bootstrap file") {
    options.bootstrap_path = "";
    CHECK_FALSE(Runtime::start(std::move(options)).ok());
  }
  SECTION("an empty bootstrap") {
    options.bootstrap_json = "";
    CHECK_FALSE(Runtime::start(std::move(options)).ok());
  }
  SECTION("interceptors that are null are left out") {
    const auto runtime = lonely_runtime();
    Runtime::Interceptors interceptors;
    interceptors.push_back(nullptr);
    const auto stub = Echo::NewStub(runtime->channel("no target", std::move(interceptors)));
    grpc::ClientContext context;
    EchoReply reply;
    CHECK(stub->Unary(&context, {}, &reply).error_code() == grpc::StatusCode::UNAVAILABLE);
  }
}

}  // namespace signalbox::test
