// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/psm/flags.hpp"

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include <unistd.h>

namespace signalbox::psm {
namespace {

using grpc::testing::ClientConfigureRequest;

struct Flag {
  std::string name;
  std::string meaning;
  std::function<absl::Status(const std::string& value)> set;
  bool is_switch = false;  ///< "--name" alone means "--name=true".
};

using Flags = std::vector<Flag>;

absl::Status wrong(absl::string_view required, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("must be ", required, ", found \"", found, "\""));
}

Flag text_flag(std::string name, std::string meaning, std::string& to) {
  return {std::move(name), std::move(meaning), [&to](const std::string& value) {
            to = value;
            return absl::OkStatus();
          }};
}

template <typename Number>
Flag number_flag(std::string name, std::string meaning, int least, int most, Number& to) {
  return {std::move(name), std::move(meaning), [&to, least, most](const std::string& value) {
            int number = 0;
            if (!absl::SimpleAtoi(value, &number) || number < least || number > most)
              return wrong(absl::StrCat("a number from ", least, " to ", most), value);
            to = static_cast<Number>(number);
            return absl::OkStatus();
          }};
}

Flag switch_flag(std::string name, std::string meaning, bool& to) {
  return {std::move(name),
          std::move(meaning),
          [&to](const std::string& value) {
            if (!absl::SimpleAtob(value, &to)) return wrong("true or false", value);
            return absl::OkStatus();
          },
          /*is_switch=*/true};
}

// A flag of the ecosystem's programs that these programs know and cannot obey.
Flag refused_flag(std::string name, std::string why) {
  return {std::move(name),
          absl::StrCat("only false: ", why),
          [why](const std::string& value) {
            bool is_on = false;
            if (!absl::SimpleAtob(value, &is_on)) return wrong("true or false", value);
            if (!is_on) return absl::OkStatus();
            return absl::UnimplementedError(absl::StrCat("must be false: ", why));
          },
          /*is_switch=*/true};
}

absl::Status parse(const std::vector<std::string>& arguments, const Flags& flags) {
  for (const std::string& argument : arguments) {
    if (!absl::StartsWith(argument, "--"))
      return absl::InvalidArgumentError(
          absl::StrCat("\"", argument, "\": a flag has the form --name=value"));
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto known = std::find_if(
        flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
    if (known == flags.end()) {
      const std::string names = absl::StrJoin(
          flags, ", ", [](std::string* out, const Flag& flag) { *out += "--" + flag.name; });
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": no such flag; there are ", names));
    }
    if (equals == std::string::npos && !known->is_switch)
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": has no value"));
    const absl::Status set =
        known->set(equals == std::string::npos ? "true" : argument.substr(equals + 1));
    if (!set.ok()) return {set.code(), absl::StrCat("--", name, ": ", set.message())};
  }
  return absl::OkStatus();
}

std::string help(absl::string_view program, const Flags& flags) {
  std::string text = absl::StrCat("usage: ", program, " [--name=value]...\n");
  for (const Flag& flag : flags)
    absl::StrAppend(&text, "  --", flag.name, ": ", flag.meaning, "\n");
  return text;
}

absl::StatusOr<RpcType> rpc_type(absl::string_view name) {
  if (name == "EmptyCall") return ClientConfigureRequest::EMPTY_CALL;
  if (name == "UnaryCall") return ClientConfigureRequest::UNARY_CALL;
  return wrong("EmptyCall or UnaryCall", name);
}

absl::Status add_rpcs(const std::string& text, std::vector<RpcConfig>& rpcs) {
  rpcs.clear();
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const auto type = rpc_type(name);
    if (!type.ok()) return type.status();
    rpcs.push_back({.type = *type, .metadata = {}});
  }
  return absl::OkStatus();
}

// `text`: "EmptyCall:key:value,UnaryCall:key:value". A value may have colons. As in the ecosystem's
// programs, the metadata of a method that is not called has no effect.
absl::Status add_metadata(const std::string& text, std::vector<RpcConfig>& rpcs) {
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(entry, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[1].empty()) return wrong("METHOD:KEY:VALUE", entry);
    const auto type = rpc_type(parts[0]);
    if (!type.ok()) return type.status();
    for (RpcConfig& rpc : rpcs) {
      if (rpc.type == *type) rpc.metadata.emplace_back(parts[1], parts[2]);
    }
  }
  return absl::OkStatus();
}

Flag code_flag(std::string name, std::string meaning, grpc::StatusCode& to) {
  return {std::move(name), std::move(meaning), [&to](const std::string& value) {
            for (int code = 0; code <= static_cast<int>(grpc::StatusCode::UNAUTHENTICATED);
                 ++code) {
              if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) != value) continue;
              to = static_cast<grpc::StatusCode>(code);
              return absl::OkStatus();
            }
            return wrong("the name of a gRPC status code", value);
          }};
}

// The values of flags that are used when all flags are known.
struct ClientTexts {
  std::string metadata;
  bool secure_mode = false;
};

Flags client_flags(ClientFlags& to, ClientTexts& texts) {
  constexpr int kMost = 1'000'000;
  return {
      text_flag("server", "the target of the RPCs: xds:///NAME; must be set", to.server),
      number_flag(
          "stats_port", "the port of all services; 0: any free port", 0, 65535, to.stats_port),
      number_flag("qps", "RPCs per second, for each channel and each method", 1, 10'000, to.qps),
      number_flag("num_channels", "the number of channels to the server", 1, 1000, to.num_channels),
      {"rpc",
       "the methods to call, such as EmptyCall,UnaryCall",
       [&to](const std::string& value) { return add_rpcs(value, to.rpcs); }},
      text_flag("metadata", "headers of RPCs: METHOD:KEY:VALUE,…", texts.metadata),
      code_flag("expect_status", "the status that counts as a success", to.expect_status),
      switch_flag("fail_on_failed_rpc",
                  "end with status 1 when an RPC fails after the first success",
                  to.fail_on_failed_rpc),
      number_flag("rpc_timeout_sec", "the deadline of RPCs, in seconds", 1, kMost, to.rpc_timeout),
      switch_flag("print_response", "print the outcome of each RPC", to.print_response),
      number_flag("request_payload_size",
                  "bytes in the request of a UnaryCall",
                  0,
                  kMost,
                  to.request_payload_size),
      number_flag("response_payload_size",
                  "bytes in the response of a UnaryCall",
                  0,
                  kMost,
                  to.response_payload_size),
      switch_flag("secure_mode",
                  "has no effect: signalbox uses TLS whenever a cluster asks for it",
                  texts.secure_mode),
      refused_flag("enable_csm_observability",
                   "signalbox exports its own metrics, not those of CSM"),
      text_flag("listen_address", "the address of --stats_port", to.listen_address),
  };
}

Flags server_flags(ServerFlags& to, int& maintenance_port) {
  return {
      number_flag("port", "the port of all services; 0: any free port", 0, 65535, to.port),
      number_flag("maintenance_port",
                  "has no effect, because there is no --secure_mode",
                  0,
                  65535,
                  maintenance_port),
      text_flag("server_id", "SimpleResponse.server_id", to.server_id),
      text_flag(
          "host_name_override", "the name in answers, instead of the machine's", to.host_name),
      refused_flag("secure_mode", "signalbox is a client and has no xDS servers"),
      refused_flag("enable_csm_observability", "signalbox is a client and has no xDS servers"),
      text_flag("listen_address", "the address of --port", to.listen_address),
  };
}

std::string machine_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace

absl::StatusOr<ClientFlags> parse_client_flags(const std::vector<std::string>& arguments) {
  ClientFlags flags;
  ClientTexts texts;
  if (auto parsed = parse(arguments, client_flags(flags, texts)); !parsed.ok()) return parsed;
  if (!absl::StartsWith(flags.server, "xds:")) {
    const absl::Status status = wrong("a target such as xds:///name", flags.server);
    return absl::Status(status.code(), absl::StrCat("--server: ", status.message()));
  }
  const absl::Status added = add_metadata(texts.metadata, flags.rpcs);
  if (!added.ok()) return absl::Status(added.code(), absl::StrCat("--metadata: ", added.message()));
  return flags;
}

absl::StatusOr<ServerFlags> parse_server_flags(const std::vector<std::string>& arguments) {
  ServerFlags flags;
  int maintenance_port = 0;
  auto parsed = parse(arguments, server_flags(flags, maintenance_port));
  if (!parsed.ok()) return parsed;
  if (flags.host_name.empty()) flags.host_name = machine_name();
  return flags;
}

std::string client_help() {
  ClientFlags flags;
  ClientTexts texts;
  return help("signalbox-interop-client", client_flags(flags, texts));
}

std::string server_help() {
  ServerFlags flags;
  int maintenance_port = 0;
  return help("signalbox-interop-server", server_flags(flags, maintenance_port));
}

}  // namespace signalbox::psm
