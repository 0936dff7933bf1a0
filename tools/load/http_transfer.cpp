// SPDX-License-Identifier: Apache-2.0
#include "tools/load/http_transfer.hpp"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <sys/socket.h>

namespace signalbox::tools {
namespace {

std::size_t drop_body(char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

bool has(const HeaderList& headers, absl::string_view name) {
  return std::ranges::any_of(headers, [name](const auto& header) { return header.first == name; });
}

}  // namespace

HttpTransfer::HttpTransfer(const HttpRequest& request,
                           const HeaderList& headers,
                           const std::string& body)
    : request_(request),
      headers_(headers),
      body_(body),
      easy_(curl_easy_init(), &curl_easy_cleanup),
      usual_(list_of("", {})),
      own_(nullptr, &curl_slist_free_all) {
  CURL* const curl = easy_.get();
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &HttpTransfer::open_socket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &drop_body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &HttpTransfer::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  set_verb();
}

void HttpTransfer::set_verb() {
  CURL* const curl = easy_.get();
  const std::string& verb = request_.verb;
  if (verb == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    return;
  }
  if (!body_.empty() || verb == "POST" || verb == "PUT" || verb == "PATCH") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body_.data());
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, verb.c_str());
}

// The headers in libcurl's form: "name;" makes libcurl send an empty header, and "name:" makes it
// send no such header.
HttpTransfer::List HttpTransfer::list_of(const std::string& host, const HeaderList& more) const {
  List list(nullptr, &curl_slist_free_all);
  const auto append = [&list](const std::string& line) {
    list = List(curl_slist_append(list.release(), line.c_str()), &curl_slist_free_all);
  };
  const auto add = [&append](const std::string& name, const std::string& value) {
    append(value.empty() ? absl::StrCat(name, ";") : absl::StrCat(name, ": ", value));
  };
  if (!has(headers_, "host")) add("host", host.empty() ? request_.host : host);
  std::string cookies;
  for (const HeaderList* const headers : {&headers_, &more}) {
    for (const auto& [name, value] : *headers) {
      if (name != "cookie") {
        add(name, value);
      } else {
        absl::StrAppend(&cookies, cookies.empty() ? "" : "; ", value);
      }
    }
  }
  if (!cookies.empty()) add("cookie", cookies);
  // Without these two lines libcurl would add these headers to a request with a body.
  append("expect:");
  if (!has(headers_, "content-type")) append("content-type:");
  return list;
}

void HttpTransfer::prepare(absl::string_view address,
                           std::chrono::milliseconds timeout,
                           const std::string& host,
                           const HeaderList& more) {
  CURL* const curl = easy_.get();
  set_cookies_.clear();
  was_lost_ = false;
  curl_easy_setopt(curl, CURLOPT_URL, absl::StrCat("http://", address, request_.path).c_str());
  // libcurl takes 0 for no timeout.
  curl_easy_setopt(
      curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(1, timeout.count())));
  const bool is_usual = host.empty() && more.empty();
  own_ = is_usual ? List(nullptr, &curl_slist_free_all) : list_of(host, more);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, is_usual ? usual_.get() : own_.get());
}

int HttpTransfer::status() const {
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

// libcurl's callback for a new connection. The request size is 0 until a transfer has sent bytes.
// If it is more, libcurl wants to send the request again: the connection was lost, and none is
// opened.
curl_socket_t HttpTransfer::open_socket(void* transfer, curlsocktype, curl_sockaddr* address) {
  auto& me = *static_cast<HttpTransfer*>(transfer);
  long sent = 0;
  curl_easy_getinfo(me.easy_.get(), CURLINFO_REQUEST_SIZE, &sent);
  me.was_lost_ = sent > 0;
  if (me.was_lost_) return CURL_SOCKET_BAD;
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t HttpTransfer::on_header(char* line,
                                    std::size_t size,
                                    std::size_t count,
                                    void* transfer) {
  constexpr absl::string_view kSetCookie = "set-cookie:";
  absl::string_view header(line, size * count);
  if (absl::StartsWithIgnoreCase(header, kSetCookie)) {
    header.remove_prefix(kSetCookie.size());
    static_cast<HttpTransfer*>(transfer)->set_cookies_.emplace_back(
        absl::StripAsciiWhitespace(header));
  }
  return size * count;
}

}  // namespace signalbox::tools
