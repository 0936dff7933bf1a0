// SPDX-License-Identifier: Apache-2.0
#include "tools/replay_report.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "channel/admin/status_json.hpp"
#include "messages/log_line.hpp"

namespace signalbox::tools {
namespace {

using channel::TimelineEntry;
using OrderedJson = nlohmann::ordered_json;

std::string subject_of(const TimelineEntry& entry) {
  return entry.subject.empty() ? entry.target : absl::StrCat(entry.target, " ", entry.subject);
}

// Outputs of `replay --json` are less than half as deep. Functions of the JSON library call
// themselves for each level.
constexpr int kDeepest = 50;

// How deeply objects and arrays are nested in a JSON text.
int depth_of(absl::string_view json) {
  int depth = 0;
  int deepest = 0;
  bool is_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (is_text && c == '\\') {
      ++at;
    } else if (c == '"') {
      is_text = !is_text;
    } else if (!is_text && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!is_text && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return deepest;
}

constexpr int kMilliseconds = 3;  // The digits of a time in lines.
constexpr int kNanoseconds = 9;

std::string line_of(const TimelineEntry& entry, std::size_t width, int digits = kMilliseconds) {
  const double seconds = std::chrono::duration<double>(entry.at).count();
  return absl::StrFormat("%10.*f  %-8s  %-*s  %s",
                         digits,
                         seconds,
                         entry.kind,
                         static_cast<int>(width),
                         one_line(subject_of(entry)),
                         one_line(entry.text));
}

std::string with_reason(std::string text, const absl::Status& why) {
  if (!why.ok()) absl::StrAppend(&text, ": ", one_line(why.message()));
  return text + "\n";
}

void add_priority(std::string& text, const ClusterStatus& cluster, std::size_t index) {
  const PriorityStatus& priority = cluster.priorities[index];
  const bool is_active = cluster.active == index;
  const absl::string_view state =
      priority.started ? absl::string_view(to_string(priority.state)) : "not started";
  absl::StrAppend(&text,
                  with_reason(absl::StrCat(is_active ? "  * " : "    ",
                                           "priority ",
                                           index,
                                           priority.name.empty() ? "" : " ",
                                           priority.name,
                                           ": ",
                                           state),
                              priority.reason));
  for (const LocalityStatus& locality : priority.localities) {
    for (const EndpointStatus& endpoint : locality.endpoints) {
      for (const AddressStatus& address : endpoint.addresses) {
        absl::StrAppend(
            &text,
            with_reason(absl::StrCat("        ",
                                     address.address.str(),
                                     ": ",
                                     absl::AsciiStrToUpper(channel::to_word(address.state))),
                        address.reason));
      }
    }
  }
}

absl::Status no_output(const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": not the output of `signalbox replay --json`"));
}

absl::StatusOr<std::vector<TimelineEntry>> entries_of(const OrderedJson& json,
                                                      const std::string& name) {
  const auto wrong = [&] { return no_output(name); };
  if (!json.is_object() || !json.contains("entries") || !json["entries"].is_array()) return wrong();
  for (const char* field : {"recorded", "events", "until_ns"}) {
    if (!json.contains(field)) return wrong();
  }
  std::vector<TimelineEntry> entries;
  for (const auto& entry : json["entries"]) {
    if (!entry.is_object() || !entry.contains("at_ns") || !entry["at_ns"].is_number_integer())
      return wrong();
    for (const char* field : {"kind", "target", "subject", "text"}) {
      if (!entry.contains(field) || !entry[field].is_string()) return wrong();
    }
    entries.push_back({Duration(entry["at_ns"].get<std::int64_t>()),
                       entry["kind"].get<std::string>(),
                       entry["target"].get<std::string>(),
                       entry["subject"].get<std::string>(),
                       entry["text"].get<std::string>()});
  }
  return entries;
}

// Only if all of these are equal, a difference is one of the builds.
struct Basis {
  const char* place;
  const char* other;  // What differs if it is not equal.
};

constexpr Basis kBases[] = {{"/recorded", "another recording"},
                            {"/events", "other events of the recording (is FILE.old missing?)"},
                            {"/until_ns", "another --until"},
                            {"/explanation/method", "another --explain"},
                            {"/explanation/target", "another --target"},
                            {"/explanation/seed", "another --seed"},
                            {"/headers_hash", "other --header or --cookie"}};

absl::Status compare_bases(const OrderedJson& here,
                           const OrderedJson& there,
                           const std::string& name) {
  const auto at = [](const OrderedJson& json, const char* place) {
    const OrderedJson::json_pointer pointer(place);
    return json.contains(pointer) ? json[pointer] : OrderedJson();
  };
  for (const Basis& basis : kBases) {
    const OrderedJson own = at(here, basis.place);
    const OrderedJson other = at(there, basis.place);
    if (own == other) continue;
    return absl::InvalidArgumentError(absl::StrCat(name,
                                                   ": cannot be compared, it is of ",
                                                   basis.other,
                                                   ": ",
                                                   basis.place,
                                                   " is ",
                                                   one_line(other.dump()),
                                                   " there and ",
                                                   one_line(own.dump()),
                                                   " here"));
  }
  return absl::OkStatus();
}

std::string difference_text(const std::string& what,
                            const std::string& here,
                            const std::string& name,
                            const std::string& there) {
  return absl::StrCat(what, " differs:\n  here: ", here, "\n  ", name, ": ", there, "\n");
}

std::optional<std::string> different_entry(const std::vector<TimelineEntry>& entries,
                                           const std::vector<TimelineEntry>& others,
                                           const std::string& name) {
  const auto at = [](const auto& list, std::size_t index, int digits = kMilliseconds) {
    return index < list.size() ? line_of(list[index], 0, digits) : "      (nothing more)";
  };
  for (std::size_t i = 0; i < std::max(entries.size(), others.size()); ++i) {
    std::string line = at(entries, i);
    std::string other_line = at(others, i);
    const bool is_same_time =
        i < entries.size() && i < others.size() && entries[i].at == others[i].at;
    if (line == other_line) {
      if (is_same_time) continue;
      line = at(entries, i, kNanoseconds);
      other_line = at(others, i, kNanoseconds);
    }
    return difference_text(absl::StrCat("entry ", i + 1), line, name, other_line);
  }
  return std::nullopt;
}

// Adds each single value in `value`, with its place: /targets/0/state "READY". The version in the
// state is left out, because it is that of the build.
void add_values(const OrderedJson& value,
                const std::string& place,
                std::vector<std::string>& values) {
  if (place == "/version") return;
  if (value.is_primitive() || value.empty()) {
    const char* const space = place.empty() ? "" : " ";
    return values.push_back(one_line(absl::StrCat(place, space, value.dump())));
  }
  for (const auto& [key, inner] : value.items())
    add_values(inner, absl::StrCat(place, "/", key), values);
}

std::vector<std::string> values_of(const OrderedJson& output, const char* part) {
  std::vector<std::string> values;
  if (output.contains(part)) add_values(output[part], "", values);
  return values;
}

std::optional<std::string> different_value(const std::string& part,
                                           const std::vector<std::string>& values,
                                           const std::vector<std::string>& others,
                                           const std::string& name) {
  const auto [value, other] = std::ranges::mismatch(values, others);
  if (value == values.end() && other == others.end()) return std::nullopt;
  return difference_text(part,
                         value == values.end() ? "(nothing)" : *value,
                         name,
                         other == others.end() ? "(nothing)" : *other);
}

}  // namespace

std::string timeline_text(const std::vector<TimelineEntry>& entries) {
  constexpr std::size_t kWidest = 64;
  std::size_t width = 0;
  for (const TimelineEntry& entry : entries)
    width = std::max(width, std::min(kWidest, subject_of(entry).size()));
  std::string text;
  for (const TimelineEntry& entry : entries)
    absl::StrAppend(&text, line_of(entry, width), "\n");
  return text;
}

std::string state_text(const RuntimeStatus& status) {
  std::string text;
  for (const TargetStatus& target : status.targets) {
    absl::StrAppend(&text,
                    with_reason(absl::StrCat(target.name,
                                             ": ",
                                             absl::string_view(to_string(target.state)),
                                             target.ready ? ", ready" : ", not ready"),
                                target.failure));
    for (const ClusterStatus& cluster : target.clusters) {
      const std::string above =
          cluster.aggregate.empty() ? "" : absl::StrCat(" of ", cluster.aggregate.str());
      absl::StrAppend(
          &text,
          with_reason(absl::StrCat("  cluster ", cluster.name.str(), above), cluster.failure));
      for (std::size_t index = 0; index < cluster.priorities.size(); ++index)
        add_priority(text, cluster, index);
    }
  }
  return text.empty() ? "no target is in use\n" : text;
}

OrderedJson entries_json(const std::vector<TimelineEntry>& entries) {
  OrderedJson list = OrderedJson::array();
  for (const TimelineEntry& entry : entries) {
    list.push_back({{"at_ns", entry.at.count()},
                    {"kind", entry.kind},
                    {"target", entry.target},
                    {"subject", entry.subject},
                    {"text", one_line(entry.text)}});
  }
  return list;
}

std::string unmatched_text(std::uint64_t unmatched) {
  if (unmatched == 0) return "";
  return absl::StrCat(
      "\nunmatched: ",
      unmatched,
      "; so often the actors asked for something that the recording does not have.\n"
      "More than a few say that the replay went another way than the process.\n");
}

absl::StatusOr<std::optional<std::string>> first_difference(const OrderedJson& here,
                                                            absl::string_view other,
                                                            const std::string& name) {
  if (depth_of(other) > kDeepest) return no_output(name);
  const auto there = OrderedJson::parse(other, nullptr, /*allow_exceptions=*/false);
  const auto others = entries_of(there, name);
  if (!others.ok()) return others.status();
  if (auto status = compare_bases(here, there, name); !status.ok()) return status;
  const auto entries = entries_of(here, "this replay");
  if (!entries.ok()) return entries.status();
  auto difference = different_entry(*entries, *others, name);
  for (const char* part : {"state", "explanation", "unmatched"}) {
    if (!difference)
      difference = different_value(part, values_of(here, part), values_of(there, part), name);
  }
  return difference;
}

}  // namespace signalbox::tools
