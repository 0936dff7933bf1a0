// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/load_report.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>

#include "lb/wire_writer.hpp"

namespace signalbox::lb {
namespace {

// The fields of xds.data.orca.v3.OrcaLoadReport.
constexpr std::uint64_t kCpuUtilization = 1;
constexpr std::uint64_t kMemUtilization = 2;
constexpr std::uint64_t kRps = 3;  // Deprecated by kRpsFractional; a whole number.
constexpr std::uint64_t kRequestCost = 4;
constexpr std::uint64_t kUtilization = 5;
constexpr std::uint64_t kRpsFractional = 6;
constexpr std::uint64_t kEps = 7;
constexpr std::uint64_t kNamedMetrics = 8;
constexpr std::uint64_t kApplicationUtilization = 9;

// The only field of xds.service.orca.v3.OrcaLoadReportRequest that is used, and the fields of its
// value, a google.protobuf.Duration.
constexpr std::uint32_t kReportInterval = 1;
constexpr std::uint32_t kSeconds = 1;
constexpr std::uint32_t kNanos = 2;

// The fields of an entry of a map.
constexpr std::uint64_t kKey = 1;
constexpr std::uint64_t kValue = 2;

struct Item {
  std::uint64_t field = 0;
  std::uint64_t type = 0;
  std::uint64_t bits = 0;       // For kVarint, kFixed64 and kFixed32.
  absl::string_view content{};  // For kLengthDelimited.
};

// Reads the fields of one message. Groups count as malformed, because OrcaLoadReport has none.
class Items {
 public:
  explicit Items(absl::string_view bytes) : rest_(bytes) {}

  // nullopt: the message has ended, or its bytes are malformed.
  std::optional<Item> next() {
    std::uint64_t tag = 0;
    if (rest_.empty() || !read_varint(tag)) return std::nullopt;
    Item item{tag >> 3U, tag & 7U};
    std::uint64_t size = 0;
    const bool is_read = item.type == wire_type::kVarint            ? read_varint(item.bits)
                         : item.type == wire_type::kFixed64         ? read_fixed(8, item.bits)
                         : item.type == wire_type::kFixed32         ? read_fixed(4, item.bits)
                         : item.type == wire_type::kLengthDelimited ? read_varint(size)
                                                                    : false;
    if (!is_read || size > rest_.size() || item.field == 0) {
      is_whole_ = false;
      return std::nullopt;
    }
    if (item.type == wire_type::kLengthDelimited) {
      item.content = rest_.substr(0, size);
      rest_.remove_prefix(size);
    }
    return item;
  }

  bool is_whole() const { return is_whole_; }

 private:
  bool read_varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80U) return true;
    }
    is_whole_ = false;
    return false;
  }

  bool read_fixed(std::size_t size, std::uint64_t& value) {
    if (rest_.size() < size) return false;
    for (std::size_t at = 0; at < size; ++at)
      value |= std::uint64_t{static_cast<unsigned char>(rest_[at])} << (8 * at);
    rest_.remove_prefix(size);
    return true;
  }

  absl::string_view rest_;
  bool is_whole_ = true;
};

double to_double(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Whether the metric may have this value. `most`: the greatest allowed value; infinite: there is
// none.
bool is_allowed(double value, double most) {
  return is_load_value(value) && value <= most;
}

constexpr double kAny = INFINITY;
constexpr double kShare = 1;  // The greatest value of a metric that is a fraction of a whole.

std::optional<LoadMetric::Map> map_of(std::uint64_t field) {
  switch (field) {
    case kRequestCost:
      return LoadMetric::Map::kRequestCost;
    case kUtilization:
      return LoadMetric::Map::kUtilization;
    case kNamedMetrics:
      return LoadMetric::Map::kNamedMetrics;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string load_report_request(Duration period) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(period);
  const std::chrono::nanoseconds rest = period - seconds;
  std::string interval;
  // Zeros are left out, as protobuf does it.
  if (seconds.count() != 0)
    append_number(kSeconds, static_cast<std::uint64_t>(seconds.count()), interval);
  if (rest.count() != 0) append_number(kNanos, static_cast<std::uint64_t>(rest.count()), interval);
  std::string request;
  append_text(kReportInterval, interval, request);
  return request;
}

ReceivedLoadReport::ReceivedLoadReport(absl::string_view bytes) {
  is_valid_ = read(bytes);
}

bool ReceivedLoadReport::read(absl::string_view bytes) {
  if (bytes.size() > kMostBytes) return false;
  Items items(bytes);
  std::uint64_t rps = 0;
  while (const auto item = items.next()) {
    const auto map = map_of(item->field);
    const bool is_known = item->field >= kCpuUtilization && item->field <= kApplicationUtilization;
    const std::uint64_t wanted = map.has_value()       ? wire_type::kLengthDelimited
                                 : item->field == kRps ? wire_type::kVarint
                                                       : wire_type::kFixed64;
    if (!is_known) continue;
    if (item->type != wanted) {
      ignores_some_ = true;
    } else if (map.has_value()) {
      if (!take_entry(*map, item->content)) return false;
    } else if (item->field == kRps) {
      rps = item->bits;
    } else {
      take_value(item->field, to_double(item->bits));
    }
  }
  if (report_.qps == 0) report_.qps = static_cast<double>(rps);
  return items.is_whole();
}

void ReceivedLoadReport::take_value(std::uint64_t field, double value) {
  if (!is_allowed(value, field == kMemUtilization ? kShare : kAny)) {
    ignores_some_ = true;
    return;
  }
  switch (field) {
    case kCpuUtilization:
      report_.cpu_utilization = value;
      break;
    case kMemUtilization:
      report_.mem_utilization = value;
      break;
    case kRpsFractional:
      report_.qps = value;
      break;
    case kEps:
      report_.eps = value;
      break;
    default:
      report_.application_utilization = value;
  }
}

// Reads an entry of a map. Of equal keys, the last entry with an allowed value counts. False: the
// entry is malformed, or the report has more than kMostEntries.
bool ReceivedLoadReport::take_entry(LoadMetric::Map map, absl::string_view entry) {
  if (++entries_ > kMostEntries) return false;
  LoadMetric metric{map, {}, 0};
  bool has_wrong_type = false;
  Items items(entry);
  while (const auto item = items.next()) {
    if (item->field == kKey && item->type == wire_type::kLengthDelimited) {
      metric.name = item->content;
    } else if (item->field == kValue && item->type == wire_type::kFixed64) {
      metric.value = to_double(item->bits);
    } else if (item->field == kKey || item->field == kValue) {
      has_wrong_type = true;
    }
  }
  if (!items.is_whole()) return false;
  const double most = map == LoadMetric::Map::kUtilization ? kShare : kAny;
  if (has_wrong_type || !is_allowed(metric.value, most)) {
    ignores_some_ = true;
    return true;
  }
  const auto end = metrics_.begin() + static_cast<std::ptrdiff_t>(report_.metrics.size());
  const auto place = std::find_if(metrics_.begin(), end, [&metric](const LoadMetric& other) {
    return other.map == metric.map && other.name == metric.name;
  });
  *place = metric;
  report_.metrics = {metrics_.begin(), std::max(end, place + 1)};
  return true;
}

}  // namespace signalbox::lb
