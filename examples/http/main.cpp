// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 client that routes with the Pick API: a data plane with connections of its own.
//
//   a path on stdin ─▶ Router::pick_until ─▶ GET to the picked address ─▶ "STATUS BODY" on stdout
//                          ▲                        │ no connection: pick again
//                          └────────────────────────┘
//
// All requests belong to one session, with a cookie jar, until the line "new" on stdin begins
// another session. cpp-httplib does HTTP. At the end of stdin, the program prints how many requests
// ended with which code. It exits with 1 if a request had no response.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <httplib.h>

#include "signalbox/cookie_jar.hpp"
#include "signalbox/runtime.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRequestTime = std::chrono::seconds(10);
constexpr auto kNews = std::chrono::milliseconds(100);
constexpr auto kLeastTime = std::chrono::milliseconds(1);

struct Response {
  int status;  // 0: the connection broke, or the time was over.
  std::string body;
  bool is_served = true;  // False: no backend sent a response.
};

// Gives routes and filters the request's headers. Only `cookie` may be present.
struct CookieHeader : signalbox::HeaderSource {
  explicit CookieHeader(std::string header) : cookie(std::move(header)) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override {
    if (name == "cookie" && !cookie.empty()) visit(cookie);
  }

  const std::string cookie;
};

// `address`: "1.2.3.4:80" or "[::1]:80".
httplib::Client client_of(const std::string& address) {
  const auto colon = address.rfind(':');
  auto host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return httplib::Client(host, std::stoi(address.substr(colon + 1)));
}

// cpp-httplib limits the connecting and each read, so the deadline is also checked after each read
// of the body. A server that sends its headers slowly can exceed the deadline.
httplib::Result get(httplib::Client client,
                    const std::string& path,
                    const httplib::Headers& headers,
                    Clock::time_point deadline,
                    std::string& body) {
  // Not negative, which cpp-httplib takes for no limit.
  const auto left = std::max<Clock::duration>(deadline - Clock::now(), kLeastTime);
  client.set_connection_timeout(left);
  client.set_read_timeout(left);
  return client.Get(path, headers, [&](const char* data, std::size_t size) {
    body.append(data, size);
    return Clock::now() < deadline;
  });
}

// The cookies that the pick sets for its session, and those that the server sets.
std::vector<std::string> set_cookies_of(const signalbox::Pick& pick,
                                        const httplib::Result& answer) {
  std::vector<std::string> set_cookies;
  if (!pick.set_cookie().empty()) set_cookies.push_back(pick.set_cookie());
  if (!answer) return set_cookies;
  const auto [begin, end] = answer->headers.equal_range("Set-Cookie");
  for (auto header = begin; header != end; ++header)
    set_cookies.push_back(header->second);
  return set_cookies;
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

Response request(const signalbox::Router& router,
                 signalbox::CookieJar& jar,
                 const std::string& path) {
  const CookieHeader headers(jar.cookie_header(path));
  const signalbox::CallArgs call{.path = path, .headers = &headers, .seed = signalbox::next_seed()};
  const auto cookies =
      headers.cookie.empty() ? httplib::Headers() : httplib::Headers{{"Cookie", headers.cookie}};
  const auto began = Clock::now();
  for (Clock::time_point deadline = began + kRequestTime;;) {
    signalbox::Pick pick = router.pick_until(call, deadline, signalbox::OnFail::kWait);
    if (pick.outcome() != signalbox::PickOutcome::kComplete)
      return {503, absl::StrCat("no backend in time: ", pick.status().message()), false};
    deadline = std::min(deadline, began + pick.timeout().value_or(kRequestTime));
    // The example makes a client for each request. A real program keeps one for each address.
    std::string body;
    const auto answer =
        get(client_of(pick.connection()->address().str()), path, cookies, deadline, body);
    if (answer.error() == httplib::Error::Connection ||
        answer.error() == httplib::Error::ConnectionTimeout) {
      router.wait(pick, Clock::now() + kNews);  // The endpoint is gone; a new picker comes soon.
      if (Clock::now() < deadline) continue;
      router.unserved(pick);
      return {503, "no backend in time: no attempt to connect succeeded", false};
    }
    router.started(pick);
    for (const std::string& set_cookie : set_cookies_of(pick, answer)) {
      if (const auto taken = jar.save(set_cookie); !taken.ok()) std::cerr << taken << '\n';
    }
    router.finished(pick, code_of(answer ? answer->status : 0));
    if (!answer)
      return {0, absl::StrCat("no response: ", httplib::to_string(answer.error())), false};
    return {answer->status, std::move(body)};
  }
}

}  // namespace

int main() {
  signalbox::RuntimeOptions options;
  options.transport = signalbox::EndpointTransport::kTcp;   // The backends speak no gRPC.
  const auto runtime = signalbox::Runtime::start(options);  // The bootstrap: from the environment.
  if (!runtime.ok()) {
    std::cerr << "http_client: " << runtime.status() << '\n';
    return 1;
  }
  const auto router = *(*runtime)->router("xds:///shop");  // A literal, so the name is valid.
  bool is_all_served = true;
  auto jar = std::make_unique<signalbox::CookieJar>();
  for (std::string path; std::getline(std::cin, path);) {
    if (path == "new") {
      jar = std::make_unique<signalbox::CookieJar>();
      continue;
    }
    if (!path.starts_with('/')) {
      std::cerr << "http_client: a path begins with \"/\", this one does not: " << path << '\n';
      is_all_served = false;
      continue;
    }
    const Response response = request(*router, *jar, path);
    std::cout << response.status << ' ' << response.body << std::endl;
    is_all_served &= response.is_served;
  }
  std::istringstream metrics((*runtime)->metrics_text());
  for (std::string line; std::getline(metrics, line);) {
    if (line.starts_with("signalbox_rpcs_") || line.starts_with("signalbox_calls_total"))
      std::cout << line << '\n';
  }
  return is_all_served ? 0 : 1;
}
