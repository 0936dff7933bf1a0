// SPDX-License-Identifier: Apache-2.0
//
// ResponseParser — parses one DiscoveryResponse part by part.
//
//   bytes ─▶ [ResponseParser] ─▶ go_on() … go_on() ─▶ DecodedResponse ─▶ ads_session
//              │  the envelope is read as views: protobuf makes no objects of unparsed entries
//              └▶ parse_resource, one resource after the other
//
// A response of many megabytes takes seconds to parse. The caller can do other work between two
// parts. A part ends at the end of a resource, so a large resource makes a long part.
//
// Invariants
//   P1  The limits on counts and memory are applied before objects are built: max_resources,
//       max_clusters, max_decoded_memory.
//   P2  A resource beyond a limit is refused by name if its name can be read. So the client does
//       not treat its old resource of that name as deleted. Resources beyond max_resources are
//       refused without their names, which are not read.
//   P3  The number of errors is limited: the first errors are kept, further errors are counted.
//   P4  Once ParseOptions::abandoned is set, the long lists of a resource are not read further.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/decoded_response.hpp"
#include "xds/parse/known_resources.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/parse/regex_budget.hpp"

namespace signalbox::xds {

/// Bytes of resources in one part; each resource counts some bytes in addition to its own.
inline constexpr std::size_t kPartSize = std::size_t{256} << 10U;

class ResponseParser {
 public:
  /// `bytes` and `known`, which may be null, outlive the parser. Resources of `known` are not
  /// parsed again.
  ResponseParser(absl::string_view bytes,
                 ParseOptions options,
                 KnownResources* known,
                 std::size_t part_size = kPartSize);

  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Parses the next part of the resources, about `part_size` bytes. Returns nullopt while
  /// resources are left, and always once the parsing was abandoned. The call that parses the last
  /// resource returns the result; the constructor's `known` then has the valid resources of this
  /// response. Each name occurs once in the result: a name that occurs twice in the response is an
  /// error of that resource.
  /// Returns an error if neither ACK nor NACK is possible: RESOURCE_EXHAUSTED for too many bytes,
  /// INVALID_ARGUMENT for no DiscoveryResponse, UNIMPLEMENTED for an unsupported type.
  std::optional<absl::StatusOr<DecodedResponse>> go_on();

 private:
  absl::Status begin();
  absl::Status read_envelope();
  absl::Status undecodable_response() const;
  void read_error(absl::string_view bytes);

  void parse(std::size_t index);
  ReceivedResource parse_entry(const AnyView& any, std::size_t index);
  void add(ReceivedResource resource);
  void add_unnamed(absl::string_view error);
  void refuse_rest();
  void shorten(ReceivedResource& resource);
  std::string nack_detail() const;
  DecodedResponse take();

  absl::string_view bytes_;
  ParseOptions options_;
  KnownResources* known_;
  const std::size_t part_size_;
  std::optional<ResponseBudget> budget_;

  bool begun_ = false;
  /// The resources of the response as views; at most max_resources.
  std::vector<AnyView> entries_;
  std::size_t entry_count_ = 0;
  std::size_t next_ = 0;
  std::vector<absl::string_view> errors_;  ///< The resource_errors; at most max_resources.

  DecodedResponse response_;
  absl::flat_hash_map<std::string, std::size_t> places_;
  std::size_t kept_text_ = 0;
};

/// A ResponseParser that owns all its arguments. `known` may be null.
Decoding decode_in_parts(std::string bytes,
                         ParseOptions options,
                         std::shared_ptr<KnownResources> known,
                         std::size_t part_size = kPartSize);

}  // namespace signalbox::xds
