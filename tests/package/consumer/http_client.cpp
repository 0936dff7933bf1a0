// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 client that routes with the Pick API: a data plane with connections of its own.
//
//   a path on stdin ─▶ Router::pick_until ─▶ GET to the picked address ─▶ "STATUS BODY" on stdout
//                          ▲                        │ nobody takes the connection: pick again
//                          └────────────────────────┘
//
// At the end of stdin it says how many requests ended with which code.
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "signalbox/runtime.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRequestTime = std::chrono::minutes(1);
constexpr auto kNews = std::chrono::milliseconds(100);

struct Response {
  int status = 0;  // 0: the connection broke.
  std::string body;
};

// A connection to "host:port"; -1: nobody takes it.
int connect_to(const std::string& address) {
  const auto colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* to = nullptr;
  const auto host = address.substr(0, colon), port = address.substr(colon + 1);
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &to) != 0) return -1;
  const int socket = ::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = ::connect(socket, to->ai_addr, to->ai_addrlen) == 0;
  ::freeaddrinfo(to);
  if (connected) return socket;
  ::close(socket);
  return -1;
}

// As small as HTTP can be; yours has its own.
Response get(int socket, const std::string& host, const std::string& path) {
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(socket, buffer, sizeof(buffer), 0)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  std::istringstream words(text);
  std::string version;
  Response response;
  words >> version >> response.status;
  const auto body = text.find("\r\n\r\n");
  if (body != std::string::npos) response.body = text.substr(body + 4);
  return response;
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
    const std::string address = pick.connection()->address().str();
    const int socket = connect_to(address);
    if (socket < 0) {
      router.wait(pick, Clock::now() + kNews);  // It has gone; the runtime will know in a moment.
      continue;
    }
    router.started(pick);
    const Response response = get(socket, address, path);
    ::close(socket);
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
