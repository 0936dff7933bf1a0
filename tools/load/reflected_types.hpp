// SPDX-License-Identifier: Apache-2.0
//
// ReflectedTypes — collects the descriptors of a service from answers of server reflection.
//
//   service ─▶ [question] ─▶ ServerReflectionRequest ─▶ endpoint
//   protoset ◀─ [protoset] ◀─ [take] ◀─ ServerReflectionResponse
//
// The first question is for the file that declares the service. The server may send the imported
// files with it; each file that is still missing has a question of its own.
//
// An endpoint is not trusted: the number and the size of its files are limited.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include <google/protobuf/descriptor.pb.h>

namespace signalbox::tools {

class ReflectedTypes {
 public:
  static constexpr std::size_t kMostFiles = 10'000;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  /// `service`: "orders.v1.Orders".
  explicit ReflectedTypes(std::string service) : service_(std::move(service)) {}

  /// The bytes of the next request; nullopt: no file is missing.
  std::optional<std::string> question() const;

  /// Takes the bytes of the answer to question(). An error is a sentence about the server.
  absl::Status take(const std::string& answer);

  /// The bytes of a FileDescriptorSet with all files, each after the files that it imports. Files
  /// that import each other in a circle have any order. Precondition: question() is nullopt.
  std::string protoset() const;

 private:
  std::string asked() const;
  absl::Status add(const std::string& file);

  std::string service_;
  std::map<std::string, google::protobuf::FileDescriptorProto> files_;  // By name.
  std::map<std::string, std::string> missing_;  // Each missing file, and a file that imports it.
  std::size_t bytes_ = 0;
};

}  // namespace signalbox::tools
