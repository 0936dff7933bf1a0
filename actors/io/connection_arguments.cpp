// SPDX-License-Identifier: Apache-2.0
#include "actors/io/connection_arguments.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include <grpc/grpc.h>

namespace signalbox::actors {
namespace {

constexpr int kShortestBackoffMs = 100;  // The shortest back-off that gRPC permits.
constexpr int kWindowBytes = 1 << 20;

struct Argument {
  const char* name;
  int value;
};

// The arguments that make a channel exactly one connection, and one argument that saves CPU time.
// check_arguments() refuses these arguments when the user sets them.
std::array<Argument, 8> ours(Duration timeout) {
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const int backoff = static_cast<int>(std::clamp<std::int64_t>(limit, 1'000, 3'600'000));
  return {{
      {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
      {GRPC_ARG_ENABLE_RETRIES, 0},
      {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
      {GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX},
      // A failed subchannel of gRPC stays in memory until its first back-off is over, even after
      // its channel was abandoned. So the first back-off is as short as gRPC permits. The longer
      // back-offs must not end an attempt before signalbox's own time limit does.
      {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kShortestBackoffMs},
      {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, backoff},
      {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, backoff},
      // gRPC's authority filter costs a twentieth of a call's CPU time, and only adds the
      // authority. Signalbox sets each call's authority itself, so the filter is disabled.
      {GRPC_ARG_DISABLE_CLIENT_AUTHORITY_FILTER, 1},
  }};
}

// Finds the argument `name`; null: it is not set. If a name is set twice, gRPC uses the first
// value.
const grpc_arg* find(const grpc::ChannelArguments& arguments, absl::string_view name) {
  const grpc_channel_args all = arguments.c_channel_args();
  const std::span<const grpc_arg> each(all.args, all.num_args);
  const auto found =
      std::ranges::find_if(each, [&](const grpc_arg& one) { return one.key == name; });
  return found == each.end() ? nullptr : &*found;
}

// Swaps the argument that was added last with the first argument of the same name. gRPC uses the
// first one, so the added argument replaces what the user set.
void put_first(const grpc::ChannelArguments& arguments) {
  const grpc_channel_args all = arguments.c_channel_args();
  const std::span<grpc_arg> each(all.args, all.num_args);
  const absl::string_view name = each.back().key;
  std::swap(*std::ranges::find_if(each, [&](const grpc_arg& one) { return one.key == name; }),
            each.back());
}

void set(const char* name, int value, grpc::ChannelArguments& arguments) {
  arguments.SetInt(name, value);
  put_first(arguments);
}

// The authority without its port. An authority with several colons counts as an IPv6 address: it is
// returned whole, also if it has a port, such as "[::1]:80".
absl::string_view host_in(absl::string_view authority) {
  const std::size_t colon = authority.find(':');
  const bool has_port =
      colon != absl::string_view::npos && authority.find(':', colon + 1) == absl::string_view::npos;
  return has_port ? authority.substr(0, colon) : authority;
}

// Whether `host` is a DNS name. A host with only digits after its last dot is no DNS name, but an
// IPv4 address in one of its many spellings.
bool is_dns_name(absl::string_view host) {
  constexpr std::size_t kLongest = 253;
  const auto may_be_in_it = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  if (host.size() > kLongest || !std::ranges::all_of(host, may_be_in_it)) return false;
  absl::ConsumeSuffix(&host, ".");
  const std::size_t dot = host.rfind('.');
  const absl::string_view last = dot == absl::string_view::npos ? host : host.substr(dot + 1);
  return !std::ranges::all_of(
      last, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// MAX_PINGS_WITHOUT_DATA is 0, which means no limit. By default gRPC sends only two pings while a
// connection carries no data.
void set_keepalive(const Keepalive& keepalive, grpc::ChannelArguments& arguments) {
  const auto milliseconds = [](std::chrono::milliseconds time) {
    return static_cast<int>(std::clamp<std::int64_t>(time.count(), 1, INT_MAX - 1));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive.time), arguments);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive.timeout), arguments);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, keepalive.without_calls ? 1 : 0, arguments);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0, arguments);
}

// The arguments of every connection that the user can replace.
void set_defaults(const grpc::ChannelArguments& said, grpc::ChannelArguments& arguments) {
  const auto set_unless_said = [&](const char* name, int value) {
    if (find(said, name) == nullptr) arguments.SetInt(name, value);
  };
  // Channelz costs a tenth of a call's CPU time, and signalbox counts calls itself. So channelz is
  // off unless the user turns it on.
  set_unless_said(GRPC_ARG_ENABLE_CHANNELZ, 0);
  // gRPC's flow-control windows begin at 64 KiB, and bandwidth probes make them grow. On a new
  // connection with few calls, gRPC sends a probe, which is a ping, for each response. This costs a
  // tenth of the call's CPU time. So the probes are off, and the windows are large from the
  // beginning.
  set_unless_said(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set_unless_said(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

// The arguments that have an effect only if gRPC itself connects, and why. All other arguments of
// gRPC 1.51 have the same effect on a channel on a connected socket, or no effect on any
// connection, because signalbox resolves, balances and reconnects itself.
struct ConnectorArgument {
  const char* name;
  const char* why;
};

constexpr std::array<ConnectorArgument, 7> kConnectorArguments{{
    {GRPC_ARG_SOCKET_MUTATOR, "it changes sockets that gRPC connects"},
    {GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, "gRPC enables it for sockets that gRPC connects"},
    {GRPC_ARG_HTTP_PROXY, "signalbox's sockets use no proxy"},
    {"grpc.http_connect_server", "signalbox's sockets use no proxy"},
    {GRPC_ARG_SERVICE_CONFIG, "a channel on a socket has no service config"},
    {GRPC_ARG_LB_POLICY_NAME, "a channel on a socket has no load balancing"},
    {GRPC_ARG_ENABLE_CHANNELZ, "gRPC's channelz does not show the socket of such a channel"},
}};

// Whether the argument asks for something: 0 switches it off.
bool is_wanted(const grpc_arg* argument) {
  if (argument == nullptr) return false;
  return argument->type != GRPC_ARG_INTEGER || argument->value.integer != 0;
}

// The variable of the environment by which gRPC connects through a proxy; empty: there is none.
absl::string_view proxy_variable() {
  for (const char* const name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return name;
  }
  return "";
}

std::optional<int> number(const grpc::ChannelArguments& arguments, const char* name) {
  const grpc_arg* const found = find(arguments, name);
  if (found == nullptr || found->type != GRPC_ARG_INTEGER) return std::nullopt;
  return found->value.integer;
}

}  // namespace

absl::Status check_arguments(const grpc::ChannelArguments& said) {
  for (const Argument& one : ours({})) {
    if (find(said, one.name) == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("must not set \"", one.name, "\", which signalbox decides itself"));
  }
  return absl::OkStatus();
}

std::string default_authority(const grpc::ChannelArguments& said) {
  const grpc_arg* const found = find(said, GRPC_ARG_DEFAULT_AUTHORITY);
  if (found == nullptr || found->type != GRPC_ARG_STRING) return "";
  return found->value.string;
}

std::string handshake_authority(const std::string& authority) {
  constexpr char kNoName[] = "endpoint.invalid";  // A name that can have no server (RFC 2606).
  return is_dns_name(host_in(authority)) ? authority : kNoName;
}

grpc::ChannelArguments connection_arguments(const grpc::ChannelArguments& said,
                                            const std::optional<Keepalive>& keepalive,
                                            const std::string& authority,
                                            Duration timeout) {
  grpc::ChannelArguments arguments = said;
  for (const auto& [name, value] : ours(timeout))
    set(name, value, arguments);
  if (keepalive) set_keepalive(*keepalive, arguments);
  set_defaults(said, arguments);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, authority);
  put_first(arguments);
  return arguments;
}

grpc::ChannelArguments socket_arguments(const grpc::ChannelArguments& said,
                                        const std::optional<Keepalive>& keepalive) {
  grpc::ChannelArguments arguments = said;
  // Signalbox sets each call's authority itself.
  set(GRPC_ARG_DISABLE_CLIENT_AUTHORITY_FILTER, 1, arguments);
  if (keepalive) set_keepalive(*keepalive, arguments);
  set_defaults(said, arguments);
  return arguments;
}

std::optional<std::chrono::milliseconds> tcp_user_timeout(const grpc::ChannelArguments& arguments) {
  constexpr int kDefaultMs = 20'000;
  const int time = number(arguments, GRPC_ARG_KEEPALIVE_TIME_MS).value_or(INT_MAX);
  if (time <= 0 || time == INT_MAX) return std::nullopt;
  const int timeout = number(arguments, GRPC_ARG_KEEPALIVE_TIMEOUT_MS).value_or(kDefaultMs);
  return std::chrono::milliseconds(timeout > 0 ? timeout : kDefaultMs);
}

std::string why_grpc_must_connect(const grpc::ChannelArguments& said) {
  for (const auto& [name, why] : kConnectorArguments) {
    if (is_wanted(find(said, name)))
      return absl::StrCat("channel_arguments set \"", name, "\", and ", why);
  }
  if (number(said, GRPC_ARG_ENABLE_HTTP_PROXY).value_or(1) == 0) return "";
  const absl::string_view variable = proxy_variable();
  if (variable.empty()) return "";
  return absl::StrCat("the environment sets ",
                      variable,
                      ", and signalbox's sockets use no proxy; if the endpoints need none, set \"",
                      GRPC_ARG_ENABLE_HTTP_PROXY,
                      "\" to 0 in channel_arguments");
}

}  // namespace signalbox::actors
