// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as one entry that a response repeats many times: measures what the response costs.
//
//   place, entry ─▶ 256 KiB of entries at that place of a response ─▶ decode_response ─▶ C1, C2
//
// Inputs are short: the repetition makes a small cost visible. The first "0000" of the entry counts
// up from repetition to repetition, modulo 10,000, so that patterns and names differ.
//
//   C1  Decoding uses at most 12 bytes of memory for each byte of the response, plus 4 MiB.
//   C2  It makes at most one allocation for each byte. Their number stands for the time.

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include <google/protobuf/stubs/logging.h>

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/counted_memory.hpp"
#include "tests/support/decode_response.hpp"
#include "tests/support/parse_options.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fuzz {
namespace {

using xds::kClusterLoadAssignmentTypeUrl;
using xds::kClusterTypeUrl;
using xds::kListenerTypeUrl;
using xds::kRouteConfigurationTypeUrl;

const ::google::protobuf::LogSilencer silence;

constexpr std::size_t kSize = std::size_t{256} << 10U;
constexpr std::size_t kSlack = std::size_t{4} << 20U;
constexpr std::size_t kBytesPerByte = 12;

std::string varint(std::size_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U)
    bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

std::string field(unsigned number, const std::string& content) {
  return static_cast<char>(number * 8 + 2) + varint(content.size()) + content;
}

std::string repeated(std::string entry) {
  if (entry.empty()) entry = std::string("\x12\x00", 2);
  const std::size_t digits = entry.find("0000");
  std::string all;
  for (std::size_t i = 0; all.size() < kSize; ++i) {
    if (digits != std::string::npos)
      entry.replace(digits, 4, absl::StrCat(absl::Dec(i % 10'000, absl::kZeroPad4)));
    all += entry;
  }
  return all;
}

std::string any(absl::string_view type_url, const std::string& value) {
  return field(2, field(1, std::string(type_url)) + field(2, value));
}

std::string resource(absl::string_view type_url, const std::string& rest) {
  return field(4, std::string(type_url)) + any(type_url, field(1, "name") + rest);
}

std::string response(unsigned place, const std::string& entry) {
  const std::string cds = field(4, std::string(kClusterTypeUrl));
  switch (place % 11) {
    case 0:
      return cds + repeated(entry);
    case 1:
      return cds + repeated(field(2, entry));
    case 2:
      return cds + repeated(any(kClusterTypeUrl, entry));
    case 3:
      return resource(kListenerTypeUrl, repeated(entry));
    case 4:
      return resource(kRouteConfigurationTypeUrl, repeated(entry));
    case 5:
      return resource(kClusterTypeUrl, repeated(entry));
    case 6:
      return resource(kClusterLoadAssignmentTypeUrl, repeated(entry));
    case 7:  // The fields of a virtual host.
      return resource(kRouteConfigurationTypeUrl, field(2, field(2, "*") + repeated(entry)));
    case 8:  // The routes of a virtual host.
      return resource(kRouteConfigurationTypeUrl,
                      field(2, field(2, "*") + repeated(field(3, entry))));
    case 9:  // The match of a route.
      return resource(kRouteConfigurationTypeUrl,
                      field(2, field(2, "*") + field(3, field(1, repeated(entry)))));
    default:  // The fields of a locality.
      return resource(kClusterLoadAssignmentTypeUrl, field(2, repeated(entry)));
  }
}

void check(const std::string& bytes) {
  xds::ParseOptions options = xds::all_parse_options();
  options.limits.max_decoded_memory = 4 * bytes.size();
  options.limits.max_regexes = 64;
  options.limits.max_regexes_memory = std::size_t{1} << 20U;
  options.limits.max_resources = 1000;
  // The first call also allocates objects that live as long as the process, whatever the bytes are.
  // So only the second call is counted.
  (void)xds::decode_response(bytes, options);
  const testing::CountedMemory counted;
  (void)xds::decode_response(bytes, options);
  const std::size_t most = kBytesPerByte * bytes.size() + kSlack;
  SIGNALBOX_FUZZ_EXPECT(
      counted.most() <= most, "C1", absl::StrCat(counted.most(), " of ", bytes.size()));
  SIGNALBOX_FUZZ_EXPECT(counted.allocations() <= bytes.size(),
                        "C2",
                        absl::StrCat(counted.allocations(), " of ", bytes.size()));
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace signalbox::fuzz;
  const auto text = text_of(data, size);
  const unsigned place = size == 0 ? 0 : data[0];
  check(response(place, std::string(size == 0 ? text : text.substr(1))));
  return 0;
}
