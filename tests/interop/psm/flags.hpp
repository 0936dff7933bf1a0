// SPDX-License-Identifier: Apache-2.0
//
// The command lines of the interop client and server: --name=value, as the ecosystem's test drivers
// pass them. A flag that stands twice has its last value.
//
//   argv ─▶ parse_client_flags, parse_server_flags ─▶ flags, or an error that names flag and value

#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include <grpcpp/support/status.h>

#include "tests/interop/psm/grpc_testing.pb.h"

namespace signalbox::psm {

using RpcType = grpc::testing::ClientConfigureRequest::RpcType;

/// How the client sends RPCs of one method.
struct RpcConfig {
  RpcType type = grpc::testing::ClientConfigureRequest::UNARY_CALL;
  std::vector<std::pair<std::string, std::string>> metadata;

  friend bool operator==(const RpcConfig&, const RpcConfig&) = default;
};

struct ClientFlags {
  std::string server;  ///< Always an xds: target.
  int stats_port = 50052;
  int qps = 1;  ///< RPCs per second, for each channel and each method.
  int num_channels = 1;
  std::vector<RpcConfig> rpcs{{}};  ///< From --rpc and --metadata.
  grpc::StatusCode expect_status = grpc::StatusCode::OK;
  bool fail_on_failed_rpc = false;
  std::chrono::seconds rpc_timeout{30};
  bool print_response = false;
  int request_payload_size = 0;
  int response_payload_size = 0;
  std::string listen_address = "0.0.0.0";
};

struct ServerFlags {
  int port = 8080;
  std::string server_id = "signalbox-interop-server";
  std::string host_name;  ///< From --host_name_override, else the machine's name.
  std::string listen_address = "0.0.0.0";
};

absl::StatusOr<ClientFlags> parse_client_flags(const std::vector<std::string>& arguments);
absl::StatusOr<ServerFlags> parse_server_flags(const std::vector<std::string>& arguments);

/// One line for each flag, with its meaning: the text of --help.
std::string client_help();
std::string server_help();

}  // namespace signalbox::psm
