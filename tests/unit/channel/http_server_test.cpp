// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_server.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "channel/admin/admin_listener.hpp"
#include "tests/support/http_peer.hpp"
#include "tests/support/process.hpp"

namespace signalbox::channel {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// Records the limits that a server reports.
class Hits {
 public:
  LimitHit counter() {
    return [this](AdminLimit limit) {
      const std::lock_guard lock(mutex_);
      hits_.push_back(limit);
    };
  }

  std::vector<AdminLimit> all() const {
    const std::lock_guard lock(mutex_);
    return hits_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<AdminLimit> hits_;
};

struct Served {
  int port = 0;
  std::unique_ptr<HttpServer> server;
};

Served serve(HttpServer::Handler handler, HttpServerOptions options) {
  auto listener = AdminListener::open(LoopbackAddress{"127.0.0.1", 0});
  REQUIRE(listener.ok());
  const int port = std::get<LoopbackAddress>(listener->address()).port;
  auto server = HttpServer::start(listener->release(), std::move(handler), std::move(options));
  REQUIRE(server != nullptr);
  return {port, std::move(server)};
}

std::string request(const char* path) {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

}  // namespace

TEST_CASE("http server: 64 requests of a lane are under way at a time, and the next one gets 503",
          "[channel][http]") {
  Hits hits;
  std::promise<void> gate;
  const auto served = serve(
      [open = gate.get_future().share()](const AdminRequest&) -> AdminResponse {
        open.wait();
        return {.body = "served\n"};
      },
      {.quick_path = "/ready", .hit = hits.counter()});
  const char* path = GENERATE("/metrics", "/ready");
  std::vector<std::unique_ptr<HttpPeer>> peers;
  for (int i = 0; i < 65; ++i) {
    peers.push_back(std::make_unique<HttpPeer>(served.port));
    REQUIRE(peers.back()->send(request(path)));
  }
  // While the first request is being answered, only the client of the refused request gets bytes.
  const auto is_refused = [](const auto& peer) {
    return peer->has_byte(std::chrono::milliseconds(0));
  };
  CHECK(test::eventually([&] { return std::ranges::any_of(peers, is_refused); }));
  CHECK(std::ranges::count_if(peers, is_refused) == 1);
  gate.set_value();
  int busy = 0;
  for (const auto& peer : peers) {
    const std::string answer = peer->receive();
    if (answer.starts_with("HTTP/1.1 200 ")) continue;
    CHECK_THAT(answer, StartsWith("HTTP/1.1 503 ") && Contains("busy: 64 requests are under way"));
    ++busy;
  }
  CHECK(busy == 1);
  CHECK(hits.all() == std::vector{AdminLimit::kHttpRequests});
  // A request may count for a moment after its client has the answer.
  CHECK(test::eventually(
      [&] { return ask(served.port, request(path)).starts_with("HTTP/1.1 200 "); }));
}

TEST_CASE("http server: a client that reads nothing of its response is cut off, and is counted",
          "[channel][http]") {
  CHECK(HttpServerOptions().idle_seconds == 10);
  constexpr std::size_t kPage = std::size_t{32} << 20U;  // More than the buffers of the sockets.
  Hits hits;
  const auto served = serve(
      [](const AdminRequest& asked) -> AdminResponse {
        return {.body = std::string(asked.path == "/large" ? kPage : 1, 'x')};
      },
      {.hit = hits.counter(), .idle_seconds = 1});
  HttpPeer deaf(served.port);
  REQUIRE(deaf.send(request("/large")));
  CHECK(test::eventually([&] { return !hits.all().empty(); }));
  CHECK(hits.all() == std::vector{AdminLimit::kHttpIdle});
  CHECK(deaf.receive().size() < kPage);
  CHECK_THAT(ask(served.port, request("/small")), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("http server: limits of connections that send no request are counted",
          "[channel][http]") {
  Hits hits;
  const auto served =
      serve([](const AdminRequest&) { return AdminResponse(); }, {.hit = hits.counter()});
  const auto count = [&](AdminLimit limit) {
    const auto all = hits.all();
    return std::ranges::count(all, limit);
  };
  const std::string answer = ask(served.port, "GET /" + std::string(20'000, 'a'));
  CHECK_THAT(answer, StartsWith("HTTP/1.1 431 "));
  CHECK(count(AdminLimit::kHttpHeaders) == 1);
  std::vector<std::unique_ptr<HttpPeer>> silent;
  for (int i = 0; i < 257; ++i)
    silent.push_back(std::make_unique<HttpPeer>(served.port));
  // 256 connections may wait; one more closes the oldest. The others are closed when their time is
  // over, which may happen before all have connected.
  CHECK(test::eventually(
      [&] { return count(AdminLimit::kHttpWaiting) + count(AdminLimit::kHttpSilent) == 257; }));
  CHECK(count(AdminLimit::kHttpSilent) >= 1);
}

}  // namespace signalbox::channel
