// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 client that routes with the Pick API: a data plane with connections of its own.
//
//   a path on stdin ─▶ Router::pick_until ─▶ GET to the picked address ─▶ "STATUS BODY" on stdout
//                          ▲                        │ nobody takes the connection: pick again
//                          └────────────────────────┘
//
// HTTP is cpp-httplib's.
//
// At the end of stdin it says how many requests ended with which code.
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>

#include <httplib.h>

#include "signalbox/runtime.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRequestTime = std::chrono::minutes(1);
constexpr auto kNews = std::chrono::milliseconds(100);

struct Response {
  int status = 0;  // 0: the connection broke.
  std::string body;
};

// "1.2.3.4:80", "[::1]:80".
httplib::Client client_of(const std::string& address) {
  const auto colon = address.rfind(':');
  auto host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return httplib::Client(host, std::stoi(address.substr(colon + 1)));
}

// gRPC's mapping of HTTP statuses: what outlier detection and metrics understand.
int code_of(int http_status) {
  switch (http_status) {
    case 0:
    case 429:
    case 502:
    case 503:
    case 504:
      return 14;  // UNAVAILABLE
    case 400:
      return 13;  // INTERNAL
    case 401:
      return 16;  // UNAUTHENTICATED
    case 403:
      return 7;  // PERMISSION_DENIED
    case 404:
      return 12;  // UNIMPLEMENTED
    default:
      return http_status >= 200 && http_status < 300 ? 0 : 2;  // OK, UNKNOWN
  }
}

Response request(const signalbox::Router& router, const std::string& path) {
  const signalbox::CallArgs call{.path = path, .seed = signalbox::next_seed()};
  const auto deadline = Clock::now() + kRequestTime;
  while (Clock::now() < deadline) {
    signalbox::Pick pick = router.pick_until(call, deadline, signalbox::OnFail::kWait);
    if (pick.outcome() != signalbox::PickOutcome::kComplete)
      return {503, std::string(pick.status().message())};
    // A client for each request keeps this short; yours keeps one for each address.
    const auto answer = client_of(pick.connection()->address().str()).Get(path);
    if (answer.error() == httplib::Error::Connection) {
      router.wait(pick, Clock::now() + kNews);  // It has gone; the runtime will know in a moment.
      continue;
    }
    router.started(pick);
    const Response response = answer ? Response{answer->status, answer->body} : Response{};
    router.finished(pick, code_of(response.status));
    return response;
  }
  return {504, "nobody took the connection"};
}

}  // namespace

int main() {
  signalbox::RuntimeOptions options;
  options.transport = signalbox::EndpointTransport::kTcp;  // The backends speak no gRPC.
  const auto runtime = signalbox::Runtime::start(options);
  if (!runtime.ok()) {
    std::cerr << runtime.status() << '\n';
    return 1;
  }
  const auto router = (*runtime)->router("xds:///shop");
  if (!router.ok()) {
    std::cerr << router.status() << '\n';
    return 1;
  }
  for (std::string path; std::getline(std::cin, path);) {
    const Response response = request(**router, path);
    std::cout << response.status << ' ' << response.body << std::endl;
  }
  std::istringstream metrics((*runtime)->metrics_text());
  for (std::string line; std::getline(metrics, line);) {
    if (line.starts_with("signalbox_rpcs_completed_total{")) std::cout << line << '\n';
  }
  return 0;
}
