// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"

namespace signalbox::tools {

int run_version(const VersionOptions& options) {
  const std::string protobuf = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  if (options.json) {
    std::cout << nlohmann::json{{"version", SIGNALBOX_VERSION},
                                {"grpc", grpc::Version()},
                                {"protobuf", protobuf},
                                {"compiler", __VERSION__},
                                {"build", SIGNALBOX_BUILD_TYPE}}
                     .dump(2)
              << "\n";
  } else {
    std::cout << "signalbox " << SIGNALBOX_VERSION << "\n"
              << "gRPC " << grpc::Version() << ", protobuf " << protobuf << ", compiler "
              << __VERSION__ << ", " << SIGNALBOX_BUILD_TYPE << "\n";
  }
  return kExitOk;
}

}  // namespace signalbox::tools
