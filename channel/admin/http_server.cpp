// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_server.hpp"

#include <string>
#include <utility>

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

MHD_Result send(MHD_Connection* connection, AdminResponse response) {
  MHD_Response* out = MHD_create_response_from_buffer(
      response.body.size(), response.body.data(), MHD_RESPMEM_MUST_COPY);
  if (out == nullptr) return MHD_NO;
  MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  MHD_add_response_header(out, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
  MHD_add_response_header(out, "X-Content-Type-Options", "nosniff");
  if (response.status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(out, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
  const MHD_Result result =
      MHD_queue_response(connection, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return result;
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
  const auto has = [&](const char* name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name) != nullptr;
  };
  // Browsers send one of these headers with requests of a page.
  request.has_origin = has(MHD_HTTP_HEADER_ORIGIN) || has("Sec-Fetch-Site");
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, &request.query);
  return send(connection, static_cast<const HttpServer*>(server)->respond(std::move(request)));
}

}  // namespace

std::unique_ptr<HttpServer> HttpServer::start(int listener, Handler handler) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(std::move(handler)));
  server->daemon_ =
      MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET,
                       /*port=*/0,
                       nullptr,
                       nullptr,
                       &handle,
                       server.get(),
                       MHD_OPTION_CONNECTION_LIMIT,
                       kMaxConnections,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                       kMaxConnectionBytes,
                       MHD_OPTION_CONNECTION_TIMEOUT,
                       kIdleSeconds,
                       MHD_OPTION_STRICT_FOR_CLIENT,
                       1,
                       MHD_OPTION_END);
  if (server->daemon_ == nullptr) {
    ::close(listener);
    return nullptr;
  }
  // MHD_add_connection closes the descriptor when it fails.
  server->door_.emplace(listener, [daemon = server->daemon_](const AcceptedConnection& connection) {
    MHD_add_connection(daemon,
                       connection.descriptor,
                       reinterpret_cast<const sockaddr*>(&connection.peer),
                       connection.peer_size);
  });
  return server->door_->is_open() ? std::move(server) : nullptr;
}

// The door ends first, because it adds connections to the daemon.
HttpServer::~HttpServer() {
  door_.reset();
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

}  // namespace signalbox::channel
