// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_server.hpp"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <microhttpd.h>
#include <unistd.h>

namespace signalbox::channel {
namespace {

MHD_Result add_argument(void* query, MHD_ValueKind /*kind*/, const char* key, const char* value) {
  static_cast<decltype(AdminRequest::query)*>(query)->emplace(key, value == nullptr ? "" : value);
  return MHD_YES;
}

std::string header(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

// The body of a response, which the HTTP library destroys.
struct Body {
  std::string text;
  std::atomic<std::size_t>* waiting;  // In the server, which outlives the library's daemons.
};

void destroy_body(void* body) {
  const std::unique_ptr<Body> owned(static_cast<Body*>(body));
  owned->waiting->fetch_sub(owned->text.size());
}

constexpr std::array<std::pair<const char*, const char*>, 7> kHeaders{
    {{MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
     {MHD_HTTP_HEADER_CONNECTION, "close"},
     {"X-Content-Type-Options", "nosniff"},
     {"Content-Security-Policy", HttpServer::kContentSecurityPolicy},
     {"X-Frame-Options", "DENY"},
     {"Cross-Origin-Resource-Policy", "same-origin"},
     {"Referrer-Policy", "no-referrer"}}};

MHD_Result send(HttpServer& server, MHD_Connection* connection, AdminResponse response) {
  auto body = std::make_unique<Body>(Body{std::move(response.body), &server.waiting_bytes()});
  body->waiting->fetch_add(body->text.size());
  MHD_Response* out = MHD_create_response_from_buffer_with_free_callback_cls(
      body->text.size(), body->text.data(), &destroy_body, body.get());
  if (out == nullptr) {
    destroy_body(body.release());
    return MHD_NO;
  }
  (void)body.release();  // The response owns it now.
  MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  for (const auto& [name, value] : kHeaders)
    MHD_add_response_header(out, name, value);
  if (response.status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(out, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
  const MHD_Result result =
      MHD_queue_response(connection, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return result;
}

bool is_full(MHD_Daemon* daemon) {
  const MHD_DaemonInfo* info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return info != nullptr && info->num_connections >= HttpServer::kMaxConnections;
}

// Called once the headers are read. No page reads a request's body.
MHD_Result handle(void* server,
                  MHD_Connection* connection,
                  const char* path,
                  const char* method,
                  const char* /*version*/,
                  const char* /*upload*/,
                  std::size_t* /*upload_size*/,
                  void** /*state*/) {
  AdminRequest request;
  request.method = method;
  request.path = path;
  request.host = header(connection, MHD_HTTP_HEADER_HOST);
  const bool has_origin =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN) != nullptr;
  request.is_foreign = is_foreign(has_origin, header(connection, "Sec-Fetch-Site"));
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, &request.query);
  auto& me = *static_cast<HttpServer*>(server);
  return send(me, connection, me.respond(std::move(request)));
}

}  // namespace

MHD_Daemon* HttpServer::start_lane() {
  return MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET,
                          /*port=*/0,
                          nullptr,
                          nullptr,
                          &handle,
                          this,
                          MHD_OPTION_CONNECTION_LIMIT,
                          kMaxConnections,
                          MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          kMaxConnectionBytes,
                          MHD_OPTION_CONNECTION_TIMEOUT,
                          kIdleSeconds,
                          MHD_OPTION_STRICT_FOR_CLIENT,
                          1,
                          MHD_OPTION_END);
}

std::unique_ptr<HttpServer> HttpServer::start(int listener,
                                              Handler handler,
                                              const std::string& quick_path) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(std::move(handler)));
  server->slow_ = server->start_lane();
  if (!quick_path.empty()) server->quick_ = server->start_lane();
  if (server->slow_ == nullptr || (!quick_path.empty() && server->quick_ == nullptr)) {
    ::close(listener);
    return nullptr;
  }
  server->door_.emplace(
      listener,
      [slow = server->slow_, quick = server->quick_, quick_path](
          const AcceptedConnection& connection, absl::string_view headers) {
        const bool is_quick = quick != nullptr && path_of_request(headers) == quick_path;
        MHD_Daemon* const lane = is_quick ? quick : slow;
        if (is_full(lane)) {
          HttpDoor::turn_away(connection,
                              "503 Service Unavailable",
                              absl::StrCat("busy: ", kMaxConnections, " requests are under way"));
          return;
        }
        // MHD_add_connection closes the descriptor when it fails.
        MHD_add_connection(lane,
                           connection.descriptor,
                           reinterpret_cast<const sockaddr*>(&connection.peer),
                           connection.peer_size);
      });
  return server->door_->is_open() ? std::move(server) : nullptr;
}

AdminResponse HttpServer::respond(AdminRequest request) {
  AdminResponse response;
  if (waiting_bytes_.load() < kMaxWaitingBytes) response = handler_(std::move(request));
  const std::size_t waiting = waiting_bytes_.load();
  const bool fits = waiting == 0 || waiting + response.body.size() <= kMaxWaitingBytes;
  if (waiting < kMaxWaitingBytes && fits) return response;
  return {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
          .body = absl::StrCat(
              "busy: ", waiting, " bytes of other responses wait for their readers\n")};
}

// The door ends first, because it adds connections to the daemons.
HttpServer::~HttpServer() {
  door_.reset();
  for (MHD_Daemon* lane : {quick_, slow_}) {
    if (lane != nullptr) MHD_stop_daemon(lane);
  }
}

}  // namespace signalbox::channel
