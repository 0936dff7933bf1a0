// SPDX-License-Identifier: Apache-2.0
#include "tools/load/drained_resources.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "xds/resource_file.hpp"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

// A member by the API's two spellings; null: there is none.
const Json& member(const Json& object, const char* snake, const char* camel) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  if (const auto found = object.find(snake); found != object.end()) return *found;
  const auto found = object.find(camel);
  return found == object.end() ? kNone : *found;
}

// "ip:port" of an LbEndpoint; empty: the object is no LbEndpoint, or its address has no IP and
// port.
std::string address_of(const Json& lb_endpoint) {
  const Json& address = member(member(lb_endpoint, "endpoint", "endpoint"), "address", "address");
  const Json& socket = member(address, "socket_address", "socketAddress");
  const Json& ip = member(socket, "address", "address");
  const Json& port = member(socket, "port_value", "portValue");
  if (!ip.is_string() || port.is_null()) return "";
  const auto host = ip.get<std::string>();
  return absl::StrCat(absl::StrContains(host, ":") ? absl::StrCat("[", host, "]") : host,
                      ":",
                      port.is_string() ? port.get<std::string>() : port.dump());
}

// Calls `visit` with every LbEndpoint that has an address.
template <class Tree>
void visit_endpoints(Tree& tree, const std::function<void(Tree&, const std::string&)>& visit) {
  if (!tree.is_structured()) return;
  if (const std::string address = address_of(tree); !address.empty()) visit(tree, address);
  for (auto& child : tree)
    visit_endpoints<Tree>(child, visit);
}

}  // namespace

absl::StatusOr<DrainedResources> DrainedResources::parse(absl::string_view text,
                                                         absl::string_view file_name) {
  auto document = xds::parse_file_document(text, xds::format_of(file_name), file_name);
  if (!document.ok()) return document.status();
  return DrainedResources(std::move(document->root));
}

std::vector<std::string> DrainedResources::endpoints() const {
  std::set<std::string> addresses;
  visit_endpoints<const Json>(
      root_, [&](const Json&, const std::string& address) { addresses.insert(address); });
  return {addresses.begin(), addresses.end()};
}

absl::Status DrainedResources::drain(const std::string& address, bool is_draining) {
  const auto known = endpoints();
  if (std::ranges::find(known, address) == known.end())
    return absl::InvalidArgumentError(
        absl::StrCat("no endpoint has the address '",
                     address,
                     "'; there are: ",
                     known.empty() ? std::string("none") : absl::StrJoin(known, ", ")));
  if (is_draining)
    draining_.insert(address);
  else
    draining_.erase(address);
  return absl::OkStatus();
}

void DrainedResources::lead(const std::string& address, const std::string& proxy) {
  proxies_[address] = proxy;
}

std::string DrainedResources::text() const {
  Json root = root_;
  visit_endpoints<Json>(root, [this](Json& lb_endpoint, const std::string& address) {
    if (draining_.contains(address)) {
      lb_endpoint.erase("healthStatus");
      lb_endpoint["health_status"] = "DRAINING";
    }
    const auto proxy = proxies_.find(address);
    if (proxy == proxies_.end()) return;
    const auto colon = proxy->second.rfind(':');
    lb_endpoint["endpoint"]["address"] = {
        {"socket_address",
         {{"address", proxy->second.substr(0, colon)},
          {"port_value", std::stoi(proxy->second.substr(colon + 1))}}}};
  });
  return root.dump();
}

}  // namespace signalbox::tools
