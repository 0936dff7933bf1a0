// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "messages/build_facts.hpp"
#include "tools/commands.hpp"

namespace signalbox::tools {

namespace {

std::string protobuf_version() {
  return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
}

}  // namespace

std::string version_text() {
  return absl::StrCat("signalbox ",
                      build_version(),
                      "\ngRPC ",
                      grpc::Version(),
                      ", protobuf ",
                      protobuf_version(),
                      ", compiler ",
                      __VERSION__,
                      ", ",
                      build_type());
}

int run_version(const VersionOptions& options) {
  if (options.json) {
    std::cout << nlohmann::json{{"version", std::string(build_version())},
                                {"grpc", grpc::Version()},
                                {"protobuf", protobuf_version()},
                                {"compiler", __VERSION__},
                                {"build", std::string(build_type())}}
                     .dump(2)
              << "\n";
  } else {
    std::cout << version_text() << "\n";
  }
  return kExitOk;
}

}  // namespace signalbox::tools
