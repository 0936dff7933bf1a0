// SPDX-License-Identifier: Apache-2.0
//
// Responses for the ADS fuzzer. Valid resources of one type differ only in their name and a number.
//
//   SentResponse ─▶ [encode] ─▶ bytes ─▶ the real parser ─▶ Resource ─▶ [content_of] ─▶ the number

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "messages/resource.hpp"

namespace signalbox::fuzz {

struct SentResource {
  enum class Form : std::uint8_t {
    kValid,
    kInvalid,  ///< Refused; the error names the resource.
    kUnnamed,  ///< Refused; its name cannot be read.
  };

  std::string name;
  Form form = Form::kValid;
  int content = 0;  ///< The number in the resource, from 0 to kContents - 1.
};

inline constexpr int kContents = 4;

struct SentError {
  std::string name;
  absl::StatusCode code = absl::StatusCode::kNotFound;
};

struct SentResponse {
  ResourceType type = ResourceType::kListener;
  std::string version;
  std::string nonce;
  std::vector<SentResource> resources;
  std::vector<SentError> errors;
};

/// A serialised DiscoveryResponse.
std::string encode(const SentResponse& response);

int content_of(const Resource& resource);

}  // namespace signalbox::fuzz
