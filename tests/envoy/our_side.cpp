// SPDX-License-Identifier: Apache-2.0
//
// signalbox_envoy_side: runs signalbox for a driver that compares the answers with Envoy's.
//
//   stdin: commands, a line of JSON each ─▶ [runtime over a resource file] ─▶ stdout: answers
//
//   {"do": "start", "resources": FILE, "transport": "assumed" | "tcp" | "grpc", "envoy_cookies": B}
//   {"do": "count", "target": T, "picks": N}
//     → {"backends": {ADDRESS: N…}, "failed": N, "error"}
//   {"do": "pick", "target": T, "calls": [{"path": P, "headers": [[NAME, VALUE]…]}…]}
//     → {"picks": [{"backend", "cluster", "set_cookie", "error"}…]}
//   {"do": "serve", "backends": N}
//     → {"backends": [ADDRESS…]}
//   {"do": "call", "target": "xds:///…" | ADDRESS, "cookie": C}
//     → {"backend", "set_cookie", "error"}
//
// A pick has a "backend" only if it is complete, and a "cluster" only if a route took its call.
// "serve" starts gRPC servers, and "call" makes a gRPC call.
//
// "start" replaces the runtime and its targets. The program ends when its stdin ends. Exit status:
// 0 all commands were answered, 1 a command was wrong or failed.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "signalbox/runtime.hpp"
#include "tests/envoy/grpc_side.hpp"
#include "tools/child_process.hpp"

namespace signalbox::test {
namespace {

using nlohmann::json;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr int kSettlingPicks = 100;

struct Headers final : HeaderSource {
  explicit Headers(const json& call) {
    if (call.contains("headers")) call["headers"].get_to(values);
  }

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view)> visit) const override {
    for (const auto& [key, value] : values) {
      if (key == name) visit(value);
    }
  }

  std::vector<std::pair<std::string, std::string>> values;
};

EndpointTransport transport_of(const std::string& word) {
  if (word == "tcp") return EndpointTransport::kTcp;
  return word == "grpc" ? EndpointTransport::kGrpc : EndpointTransport::kAssumed;
}

// Sets Envoy's form of cookies if the options have a field `form`.
template <typename CookieOptions>
void write_envoy_form(CookieOptions& options) {
  if constexpr (requires { options.form; }) options.form = decltype(options.form)::kEnvoy;
}

class OurSide {
 public:
  json answer(const json& command) {
    const std::string what = command.at("do");
    if (what == "start") return start(command);
    if (what == "count") return count(command);
    if (what == "pick") return pick(command);
    if (what == "serve") return serve(command);
    if (what == "call") return call(command);
    throw std::invalid_argument("unknown command " + what);
  }

 private:
  json start(const json& command) {
    routers_.clear();
    channels_.clear();
    runtime_.reset();
    RuntimeOptions options;
    options.bootstrap_json = json{{"signalbox.resources", command.at("resources")}}.dump();
    options.transport = transport_of(command.at("transport"));
    options.seed = 1;
    if (command.value("envoy_cookies", false)) write_envoy_form(options.session_cookies);
    auto runtime = Runtime::start(std::move(options));
    if (!runtime.ok()) throw std::runtime_error(runtime.status().ToString());
    runtime_ = *std::move(runtime);
    return json::object();
  }

  json count(const json& command) {
    const Router& router = router_of(command.at("target"));
    // These picks are not counted. They start the priorities that they are drawn to.
    for (int i = 0; i < kSettlingPicks; ++i)
      ended(router, ++seed_);
    std::map<std::string, int> backends;
    int failed = 0;
    std::string error;
    for (int i = command.at("picks"); i > 0; --i) {
      const Pick pick = ended(router, ++seed_);
      if (pick.outcome() == PickOutcome::kComplete) {
        ++backends[pick.connection()->address().str()];
      } else if (++failed == 1) {
        error = pick.status().ToString();
      }
    }
    return {{"backends", backends}, {"failed", failed}, {"error", error}};
  }

  json pick(const json& command) {
    const Router& router = router_of(command.at("target"));
    json picks = json::array();
    for (const json& wanted : command.at("calls")) {
      const std::string path = wanted.at("path");
      const Headers headers(wanted);
      const Pick pick = ended(router, ++seed_, path, &headers);
      json told{{"set_cookie", pick.set_cookie()}, {"error", ""}};
      if (pick.cluster() != nullptr) told["cluster"] = pick.cluster()->name().str();
      if (pick.outcome() == PickOutcome::kComplete)
        told["backend"] = pick.connection()->address().str();
      else
        told["error"] = pick.status().ToString();
      picks.push_back(std::move(told));
    }
    return {{"picks", std::move(picks)}};
  }

  json serve(const json& command) {
    json addresses = json::array();
    for (int i = command.at("backends"); i > 0; --i) {
      backends_.push_back(std::make_unique<GrpcBackend>());
      addresses.push_back(backends_.back()->address());
    }
    return {{"backends", std::move(addresses)}};
  }

  json call(const json& command) {
    const std::string target = command.at("target");
    auto& channel = channels_[target];
    if (channel == nullptr)
      channel = target.starts_with("xds:") ? runtime_->channel(target) : plain_channel(target);
    const Answer answer = call_once(*channel, command.at("cookie"), kPatience);
    return {
        {"backend", answer.backend}, {"set_cookie", answer.set_cookie}, {"error", answer.error}};
  }

  // Waits until the pick is complete or has failed.
  static Pick ended(const Router& router,
                    std::uint64_t seed,
                    absl::string_view path = "/",
                    const HeaderSource* headers = nullptr) {
    return router.pick_until({.path = path, .headers = headers, .seed = seed},
                             Router::Clock::now() + kPatience);
  }

  const Router& router_of(const std::string& target) {
    auto& router = routers_[target];
    if (router == nullptr) {
      auto made = runtime_->router(target);
      if (!made.ok()) throw std::runtime_error(made.status().ToString());
      router = *std::move(made);
    }
    return *router;
  }

  std::vector<std::unique_ptr<GrpcBackend>> backends_;
  std::unique_ptr<Runtime> runtime_;
  std::map<std::string, std::shared_ptr<Router>> routers_;
  std::map<std::string, std::shared_ptr<grpc::ChannelInterface>> channels_;
  std::uint64_t seed_ = 0;
};

int run() {
  tools::die_with_parent(::getppid());
  OurSide side;
  std::string line;
  while (std::getline(std::cin, line)) {
    const json answer = side.answer(json::parse(line));
    // An error text may hold bytes that are not UTF-8, and JSON allows only UTF-8.
    std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace signalbox::test

int main() {
  try {
    return signalbox::test::run();
  } catch (const std::exception& error) {
    std::cerr << "signalbox_envoy_side: " << error.what() << "\n";
    return 1;
  }
}
