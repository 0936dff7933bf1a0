// SPDX-License-Identifier: Apache-2.0
#include "tools/load/hdr_log.hpp"

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <zlib.h>

#include "tools/load/bins.hpp"

namespace signalbox::tools {
namespace {

// Version 2 of the encoding: counts as ZigZag LEB128.
constexpr std::uint32_t kCookie = 0x1c849313;
constexpr std::uint32_t kCompressedCookie = 0x1c849314;  // The V2 encoding, compressed by zlib.
// Significant decimal digits. Two digits cut each power of two from 256 on into 128 buckets.
constexpr std::uint32_t kDigits = 2;

void append_big_endian(std::string& to, std::uint64_t value, unsigned bytes) {
  while (bytes-- > 0)
    to.push_back(static_cast<char>((value >> (8 * bytes)) & 0xff));
}

// LEB128 with at most 9 bytes: the ninth one has 8 bits of the value.
void append_zigzag(std::string& to, std::int64_t value) {
  auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (int i = 0; i < 8 && rest >= 0x80; ++i) {
    to.push_back(static_cast<char>((rest & 0x7f) | 0x80));
    rest >>= 7;
  }
  to.push_back(static_cast<char>(rest));
}

// A row of n empty buckets is written as -n, and a single one as 0. Empty buckets at the end are
// left out.
std::string encode_counts(std::span<const std::uint64_t> counts) {
  std::string text;
  std::int64_t empty = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) {
      ++empty;
      continue;
    }
    if (empty > 0) append_zigzag(text, empty == 1 ? 0 : -empty);
    empty = 0;
    append_zigzag(text, static_cast<std::int64_t>(count));
  }
  return text;
}

std::string deflated(absl::string_view text) {
  uLongf size = compressBound(text.size());
  std::string to(size, '\0');
  // compress() fails only if memory runs out or `to` is too small. compressBound() gives a
  // sufficient size.
  compress(reinterpret_cast<Bytef*>(to.data()),
           &size,
           reinterpret_cast<const Bytef*>(text.data()),
           text.size());
  to.resize(size);
  return to;
}

}  // namespace

std::string encode_hdr(const LatencyHistogram& histogram) {
  const std::string counts = encode_counts(histogram.counts());
  std::string plain;
  append_big_endian(plain, kCookie, 4);
  append_big_endian(plain, counts.size(), 4);
  append_big_endian(plain, 0, 4);  // The field normalizingIndexOffset.
  append_big_endian(plain, kDigits, 4);
  append_big_endian(plain, 1, 8);  // The field lowestDiscernibleValue.
  append_big_endian(plain, LatencyHistogram::kHighest, 8);
  // The field integerToDoubleValueConversionRatio.
  append_big_endian(plain, std::bit_cast<std::uint64_t>(1.0), 8);
  plain += counts;
  const std::string compressed = deflated(plain);
  std::string framed;
  append_big_endian(framed, kCompressedCookie, 4);
  append_big_endian(framed, compressed.size(), 4);
  return absl::Base64Escape(framed + compressed);
}

std::string hdr_log(const LoadReport& report) {
  const double start = static_cast<double>(report.started_unix_ms) / 1e3;
  std::string text = absl::StrFormat(
      "#[Latencies in nanoseconds, from when a call was due, by signalbox load %s]\n"
      "#[Histogram log format version 1.3]\n"
      "#[StartTime: %.3f (seconds since epoch), %s]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
      report.signalbox_version,
      start,
      absl::FormatTime(
          "%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(report.started_unix_ms), absl::UTCTimeZone()));
  std::vector<std::vector<LoadBin>> seconds;
  std::size_t longest = 0;
  for (const LoadSide& side : report.sides) {
    seconds.push_back(wider_bins(side.bins, kBinsInSecond));
    longest = std::max(longest, seconds.back().size());
  }
  // Readers expect the lines in the order of their times.
  for (std::size_t second = 0; second < longest; ++second) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      if (second >= seconds[i].size()) continue;
      const LoadBin& bin = seconds[i][second];
      absl::StrAppendFormat(&text,
                            "Tag=%s,%.3f,1.000,%.6f,%s\n",
                            report.sides[i].name,
                            start + static_cast<double>(second),
                            static_cast<double>(bin.max_ns) / 1e6,
                            encode_hdr(histogram_of(bin)));
    }
  }
  return text;
}

}  // namespace signalbox::tools
