// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_server.hpp"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace signalbox::channel {

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::start(absl::string_view address,
                                                                AdminSources sources,
                                                                LimitHit hit) {
  const auto parsed = parse_admin_address(address);
  if (!parsed.ok()) return parsed.status();
  auto listener = AdminListener::open(*parsed);
  if (!listener.ok()) return listener.status();
  auto server = std::unique_ptr<AdminServer>(new AdminServer(*std::move(listener)));
  const bool over_network = std::holds_alternative<LoopbackAddress>(server->listener_.address());
  server->http_ =
      HttpServer::start(server->listener_.release(),
                        [over_network, sources = std::move(sources)](AdminRequest request) {
                          request.over_network = over_network;
                          return answer(request, sources);
                        },
                        {.quick_path = "/ready", .hit = std::move(hit)});
  if (server->http_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("admin address ", server->address(), ": the HTTP server does not start"));
  }
  return server;
}

}  // namespace signalbox::channel
