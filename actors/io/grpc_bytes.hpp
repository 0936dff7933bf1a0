// SPDX-License-Identifier: Apache-2.0
//
// Conversions between bytes and the messages of generic stubs.

#pragma once

#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

namespace signalbox::actors {

inline std::string to_bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

inline grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace signalbox::actors
