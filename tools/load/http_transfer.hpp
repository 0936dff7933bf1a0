// SPDX-License-Identifier: Apache-2.0
//
// HttpTransfer — one HTTP request at a time, as libcurl knows it: a handle that is used again and
// again.
//
//   HttpRequest, headers, body ─▶ [HttpTransfer] ─▶ CurlLoop ─▶ status, Set-Cookie
//
// No proxy of the environment is asked, no redirect is followed, and bodies of responses are read
// and dropped. No request is sent twice. libcurl would send a request again, also a POST, when a
// connection that it had used before ends without an answer. Then the report would not show the
// calls that a killed server had.

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include <curl/curl.h>

#include "tools/load/http_request.hpp"

namespace signalbox::tools {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

class HttpTransfer {
 public:
  /// `request`, `headers` and `body` must live as long as the transfer. A header `host` takes the
  /// place of the request's host.
  HttpTransfer(const HttpRequest& request, const HeaderList& headers, const std::string& body);
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  /// Prepares the next request. `address`: "127.0.0.1:80", "[::1]:80". `host`: another Host than
  /// the request's, or empty; ignored if the transfer's headers have a `host`. `more`: headers of
  /// this request alone; a `cookie` is added to that of the transfer's headers.
  void prepare(absl::string_view address,
               std::chrono::milliseconds timeout,
               const std::string& host,
               const HeaderList& more);

  CURL* easy() const { return easy_.get(); }

  /// Whether the connection was lost after the request had been sent, without an answer. libcurl's
  /// result is then CURLE_COULDNT_CONNECT, because it may not connect again.
  bool was_lost() const { return was_lost_; }

  /// The status of the response; 0: none came.
  int status() const;

  /// The values of all Set-Cookie headers of the response.
  const std::vector<std::string>& set_cookies() const { return set_cookies_; }

 private:
  using List = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

  void set_verb();
  List list_of(const std::string& host, const HeaderList& more) const;
  static curl_socket_t open_socket(void* transfer, curlsocktype what, curl_sockaddr* address);
  static std::size_t on_header(char* line, std::size_t size, std::size_t count, void* transfer);

  const HttpRequest& request_;
  const HeaderList& headers_;
  const std::string& body_;
  std::unique_ptr<CURL, void (*)(CURL*)> easy_;
  List usual_;  // The headers of a request without headers of its own.
  List own_;
  bool was_lost_ = false;
  std::vector<std::string> set_cookies_;
};

}  // namespace signalbox::tools
