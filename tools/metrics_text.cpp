// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics_text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "messages/log_line.hpp"

namespace signalbox::tools {
namespace {

bool is_name_character(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
}

// Takes a name from the beginning of the text; empty: there is none.
std::string take_name(absl::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_name_character(text[length]))
    ++length;
  std::string name(text.substr(0, length));
  text.remove_prefix(length);
  return name;
}

// Takes a quoted value with its escapes: \\, \" and \n.
std::optional<std::string> take_value(absl::string_view& text) {
  if (!absl::ConsumePrefix(&text, "\"")) return std::nullopt;
  std::string value;
  while (!text.empty() && text.front() != '"') {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      if (text.empty()) return std::nullopt;
      c = text.front() == 'n' ? '\n' : text.front();
      text.remove_prefix(1);
    }
    value += c;
  }
  if (!absl::ConsumePrefix(&text, "\"")) return std::nullopt;
  return value;
}

bool take_labels(absl::string_view& text, std::map<std::string, std::string>& labels) {
  if (!absl::ConsumePrefix(&text, "{")) return true;
  while (!absl::ConsumePrefix(&text, "}")) {
    std::string name = take_name(text);
    if (name.empty() || !absl::ConsumePrefix(&text, "=")) return false;
    auto value = take_value(text);
    if (!value) return false;
    labels.emplace(std::move(name), *std::move(value));
    if (!absl::ConsumePrefix(&text, ",") && !absl::StartsWith(text, "}")) return false;
  }
  return true;
}

// SimpleAtod knows the infinities and NaN in Prometheus' spelling.
std::optional<MetricSample> sample_of(absl::string_view line) {
  MetricSample sample;
  sample.name = take_name(line);
  if (sample.name.empty() || !take_labels(line, sample.labels)) return std::nullopt;
  const std::vector<absl::string_view> rest = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (rest.empty() || rest.size() > 2 || !absl::SimpleAtod(rest.front(), &sample.value))
    return std::nullopt;
  return sample;
}

}  // namespace

absl::StatusOr<std::vector<MetricSample>> parse_metrics_text(absl::string_view text) {
  std::vector<MetricSample> samples;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    auto sample = sample_of(line);
    if (!sample)
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, " is no sample of a metric: '", one_line(line.substr(0, 80)), "'"));
    samples.push_back(*std::move(sample));
  }
  return samples;
}

std::optional<int> metric_value(absl::string_view text,
                                absl::string_view name,
                                const std::string& label,
                                absl::string_view value) {
  const auto samples = parse_metrics_text(text);
  if (!samples.ok()) return std::nullopt;
  const auto found = std::ranges::find_if(*samples, [&](const MetricSample& sample) {
    const auto labelled = sample.labels.find(label);
    return sample.name == name && labelled != sample.labels.end() && labelled->second == value;
  });
  if (found == samples->end()) return std::nullopt;
  return static_cast<int>(found->value);
}

}  // namespace signalbox::tools
