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

// The body of a response. The HTTP library destroys it when the response ends.
struct Body {
  std::string text;
  std::atomic<std::size_t>* waiting;  // HttpServer::waiting_bytes(), which outlives the daemons.
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
  // The library calls destroy_body() when the response ends.
  Body* const body =
      std::make_unique<Body>(Body{std::move(response.body), &server.waiting_bytes()}).release();
  body->waiting->fetch_add(body->text.size());
  MHD_Response* out = MHD_create_response_from_buffer_with_free_callback_cls(
      body->text.size(), body->text.data(), &destroy_body, body);
  if (out == nullptr) {
    destroy_body(body);
    return MHD_NO;
  }
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

// The library calls this when a connection begins, and when it ends. `count`: the number of
// connections of its lane.
void count_end(void* count,
               MHD_Connection* /*connection*/,
               void** /*state*/,
               MHD_ConnectionNotificationCode event) {
  if (event == MHD_CONNECTION_NOTIFY_CLOSED)
    static_cast<std::atomic<unsigned>*>(count)->fetch_sub(1);
}

// The library calls this when it has sent a response, or has given up sending it.
void count_idle(void* server,
                MHD_Connection* /*connection*/,
                void** /*state*/,
                MHD_RequestTerminationCode why) {
  if (why == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED) static_cast<HttpServer*>(server)->idled();
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

bool HttpServer::start(Lane& lane) {
  lane.daemon =
      MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET,
                       /*port=*/0,
                       nullptr,
                       nullptr,
                       &handle,
                       this,
                       // This limit is never reached: enter() admits at most kMaxConnections, and
                       // responds 503 to further connections.
                       MHD_OPTION_CONNECTION_LIMIT,
                       2 * kMaxConnections,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                       kMaxConnectionBytes,
                       MHD_OPTION_CONNECTION_TIMEOUT,
                       options_.idle_seconds,
                       MHD_OPTION_STRICT_FOR_CLIENT,
                       1,
                       MHD_OPTION_NOTIFY_CONNECTION,
                       &count_end,
                       &lane.connections,
                       MHD_OPTION_NOTIFY_COMPLETED,
                       &count_idle,
                       this,
                       MHD_OPTION_END);
  return lane.daemon != nullptr;
}

// Called on the thread of the HttpDoor.
void HttpServer::enter(Lane& lane, const AcceptedConnection& connection) const {
  if (lane.connections.load() >= kMaxConnections) {
    options_.hit(AdminLimit::kHttpRequests);
    HttpDoor::turn_away(connection,
                        "503 Service Unavailable",
                        absl::StrCat("busy: ", kMaxConnections, " requests are under way"));
    return;
  }
  lane.connections.fetch_add(1);
  // When MHD_add_connection fails, it closes the descriptor itself.
  const MHD_Result entered = MHD_add_connection(lane.daemon,
                                                connection.descriptor,
                                                reinterpret_cast<const sockaddr*>(&connection.peer),
                                                connection.peer_size);
  if (entered != MHD_YES) lane.connections.fetch_sub(1);
}

std::unique_ptr<HttpServer> HttpServer::start(int listener,
                                              Handler handler,
                                              HttpServerOptions options) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(std::move(handler), std::move(options)));
  const std::string& quick_path = server->options_.quick_path;
  const bool has_lanes =
      server->start(server->slow_) && (quick_path.empty() || server->start(server->quick_));
  if (!has_lanes) {
    ::close(listener);
    return nullptr;
  }
  server->door_.emplace(
      listener,
      [me = server.get()](const AcceptedConnection& connection, absl::string_view headers) {
        const std::string& path = me->options_.quick_path;
        const bool is_quick = !path.empty() && path_of_request(headers) == path;
        me->enter(is_quick ? me->quick_ : me->slow_, connection);
      },
      HttpDoorLimits(),
      server->options_.hit);
  return server->door_->is_open() ? std::move(server) : nullptr;
}

AdminResponse HttpServer::respond(AdminRequest request) {
  AdminResponse response;
  if (waiting_bytes_.load() < kMaxWaitingBytes) response = handler_(std::move(request));
  const std::size_t waiting = waiting_bytes_.load();
  const bool fits = waiting == 0 || waiting + response.body.size() <= kMaxWaitingBytes;
  if (waiting < kMaxWaitingBytes && fits) return response;
  options_.hit(AdminLimit::kHttpUnreadBytes);
  return {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
          .body = absl::StrCat(
              "busy: ", waiting, " bytes of other responses wait for their readers\n")};
}

// The door ends first, because it adds connections to the daemons.
HttpServer::~HttpServer() {
  door_.reset();
  for (Lane* lane : {&quick_, &slow_}) {
    if (lane->daemon != nullptr) MHD_stop_daemon(lane->daemon);
  }
}

}  // namespace signalbox::channel
