// SPDX-License-Identifier: Apache-2.0
#include "tools/load/script.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include <nlohmann/json.hpp>

#include "xds/document.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

struct VerbRow {
  Verb verb;
  absl::string_view name;
  absl::string_view what;  // The text before the words of the act.
  bool is_fault;
  std::optional<Verb> undone;  // The verb of the act that `for` adds.
};

constexpr std::array kVerbs{
    VerbRow{Verb::kKill, "kill", "SIGKILL to ", true, Verb::kRestart},
    VerbRow{Verb::kTerm, "term", "SIGTERM to ", true, Verb::kRestart},
    VerbRow{Verb::kStop, "stop", "SIGSTOP to ", true, Verb::kCont},
    VerbRow{Verb::kCont, "cont", "SIGCONT to ", false, std::nullopt},
    VerbRow{Verb::kRestart, "restart", "start of ", false, std::nullopt},
    VerbRow{Verb::kDrain, "drain", "DRAINING: ", true, Verb::kUndrain},
    VerbRow{Verb::kUndrain, "undrain", "no longer DRAINING: ", false, std::nullopt},
    VerbRow{Verb::kDelay, "delay", "delay of ", true, Verb::kClear},
    VerbRow{Verb::kBandwidth, "bandwidth", "bandwidth of ", true, Verb::kClear},
    VerbRow{Verb::kBlackhole, "blackhole", "blackhole: ", true, Verb::kClear},
    VerbRow{Verb::kReset, "reset", "reset: ", true, Verb::kClear},
    VerbRow{Verb::kClear, "clear", "undisturbed: ", false, std::nullopt},
    VerbRow{Verb::kExec, "exec", "run: ", true, std::nullopt},
    VerbRow{Verb::kMark, "mark", "", false, std::nullopt},
};

const VerbRow& row_of(Verb verb) {
  return *std::ranges::find(kVerbs, verb, &VerbRow::verb);
}

absl::Status wrong(absl::string_view place, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(place, why));
}

// A text or a number, or a list of them.
std::optional<std::vector<std::string>> words_of(const Json& value) {
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  if (value.is_number()) return std::vector<std::string>{value.dump()};
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> words;
  for (const Json& word : value) {
    if (!word.is_string() && !word.is_number()) return std::nullopt;
    words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  }
  return words;
}

absl::StatusOr<std::chrono::nanoseconds> duration_of(const Json& value) {
  absl::Duration duration;
  const bool is_read =
      value.is_string() && absl::ParseDuration(value.get<std::string>(), &duration);
  if (!is_read || duration < absl::ZeroDuration() || duration > absl::Hours(24 * 365))
    return absl::InvalidArgumentError(
        absl::StrCat("expected a duration such as 10s or 1m30s, got ", value.dump()));
  return absl::ToChronoNanoseconds(duration);
}

absl::StatusOr<ScriptProcess> process_of(const Json& value) {
  if (!value.is_object()) return absl::InvalidArgumentError("expected an object");
  ScriptProcess process;
  for (const auto& [key, member] : value.items()) {
    if (key == "command") {
      const auto words = words_of(member);
      if (!words || words->empty() || words->front().empty())
        return absl::InvalidArgumentError("command: expected a list of words");
      process.command = *words;
    } else if (key == "pidfile" && member.is_string() && !member.get<std::string>().empty()) {
      process.pidfile = member.get<std::string>();
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": expected command (a list of words) or pidfile (a path)"));
    }
  }
  if (process.command.empty() == process.pidfile.empty())
    return absl::InvalidArgumentError("expected either command or pidfile");
  return process;
}

// Checks that the script can act on the processes that an act names, and that an act on endpoints
// has --resources.
class Reach {
 public:
  Reach(const Script& script, bool has_resources)
      : script_(script), has_resources_(has_resources) {}

  absl::Status check(const Act& act) const {
    if (act.words.empty() || std::ranges::find(act.words, "") != act.words.end())
      return absl::InvalidArgumentError("expected a name or a list of names");
    switch (act.verb) {
      case Verb::kExec:
      case Verb::kMark:
        return absl::OkStatus();
      case Verb::kDrain:
      case Verb::kUndrain:
      case Verb::kDelay:
      case Verb::kBandwidth:
      case Verb::kBlackhole:
      case Verb::kReset:
      case Verb::kClear:
        if (has_resources_) return absl::OkStatus();
        return absl::InvalidArgumentError("needs --resources: it acts on endpoints of that file");
      default:
        for (const std::string& name : act.words) {
          if (auto status = check_process(act.verb, name); !status.ok()) return status;
        }
        return absl::OkStatus();
    }
  }

 private:
  absl::Status check_process(Verb verb, const std::string& name) const {
    if (name == kControlPlaneName && has_resources_) {
      if (verb != Verb::kTerm) return absl::OkStatus();
      return absl::InvalidArgumentError("the control plane knows kill, stop, cont and restart");
    }
    const auto found = script_.processes.find(name);
    if (found == script_.processes.end()) return unknown(name);
    if (verb == Verb::kRestart && found->second.command.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' has a pidfile and no command, so it cannot be started again"));
    return absl::OkStatus();
  }

  absl::Status unknown(const std::string& name) const {
    std::vector<std::string> names;
    names.reserve(script_.processes.size() + 1);
    for (const auto& [known, process] : script_.processes)
      names.push_back(known);
    if (has_resources_) names.emplace_back(kControlPlaneName);
    return absl::InvalidArgumentError(absl::StrCat(
        "'",
        name,
        "' is no process of this script; ",
        names.empty() ? "there are none" : absl::StrCat("there are: ", absl::StrJoin(names, ", ")),
        ". A script reaches only processes that it starts or that a pidfile of it names"));
  }

  const Script& script_;
  bool has_resources_;
};

Act make_act(Verb verb, std::chrono::nanoseconds at, std::vector<std::string> words) {
  const bool is_command = verb == Verb::kExec;
  const VerbRow& row = row_of(verb);
  Act act;
  act.at = at;
  act.verb = verb;
  act.what = absl::StrCat(row.what, absl::StrJoin(words, is_command ? " " : ", "));
  act.name = absl::StrCat(row.name, " ", absl::StrJoin(words, is_command ? " " : "+"));
  act.words = std::move(words);
  return act;
}

std::string verb_names() {
  return absl::StrJoin(
      kVerbs, ", ", [](std::string* out, const VerbRow& row) { absl::StrAppend(out, row.name); });
}

absl::Status check_added(const Reach& reach, const Act& act) {
  absl::Status status = reach.check(act);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(to_string(act.verb), ": ", status.message()));
}

// Reads the amount of an act: a delay must have `by`, a bandwidth must have `to`, and no other act
// may have either.
absl::Status read_amount(const Json& value, Act& act) {
  if (value.contains("by") != (act.verb == Verb::kDelay))
    return absl::InvalidArgumentError("delay needs by, such as 100ms, and no other verb has it");
  if (value.contains("to") != (act.verb == Verb::kBandwidth))
    return absl::InvalidArgumentError(
        "bandwidth needs to, in bytes a second, and no other verb has it");
  if (act.verb == Verb::kDelay) {
    const auto delay = duration_of(value["by"]);
    if (!delay.ok())
      return absl::InvalidArgumentError(absl::StrCat("by: ", delay.status().message()));
    act.amount = static_cast<double>(delay->count());
    absl::StrAppend(&act.what, " by ", value["by"].get<std::string>());
  } else if (act.verb == Verb::kBandwidth) {
    if (!value["to"].is_number() || value["to"].get<double>() <= 0)
      return absl::InvalidArgumentError(
          absl::StrCat("to: expected bytes a second, more than 0, got ", value["to"].dump()));
    act.amount = value["to"].get<double>();
    absl::StrAppend(&act.what, " to ", value["to"].dump(), " bytes a second");
  }
  return absl::OkStatus();
}

// Adds the act. If it has the key `for`, adds the act that undoes it after that time, too.
absl::Status add_acts(const Json& value, const Reach& reach, std::vector<Act>& acts) {
  if (!value.is_object() || !value.contains("at"))
    return absl::InvalidArgumentError("expected an object with at and a verb");
  const auto at = duration_of(value["at"]);
  if (!at.ok()) return absl::InvalidArgumentError(absl::StrCat("at: ", at.status().message()));
  const VerbRow* row = nullptr;
  for (const auto& [key, member] : value.items()) {
    if (key == "at" || key == "for" || key == "by" || key == "to") continue;
    const auto* const found = std::ranges::find(kVerbs, absl::string_view(key), &VerbRow::name);
    if (found == kVerbs.end())
      return absl::InvalidArgumentError(
          absl::StrCat("'", key, "' is no verb; there are: ", verb_names()));
    if (row != nullptr)
      return absl::InvalidArgumentError(absl::StrCat(
          "has two verbs, ", row->name, " and ", key, "; expected one, and another act"));
    row = found;
  }
  if (row == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("has no verb; there are: ", verb_names()));
  auto words = words_of(value[std::string(row->name)]);
  if (!words)
    return absl::InvalidArgumentError(
        absl::StrCat(row->name, ": expected a text or a list of texts"));
  acts.push_back(make_act(row->verb, *at, *words));
  if (auto status = read_amount(value, acts.back()); !status.ok()) return status;
  if (auto status = check_added(reach, acts.back()); !status.ok()) return status;
  if (!value.contains("for")) return absl::OkStatus();
  const auto length = duration_of(value["for"]);
  if (!length.ok())
    return absl::InvalidArgumentError(absl::StrCat("for: ", length.status().message()));
  if (!row->undone)
    return absl::InvalidArgumentError(absl::StrCat("for: ", row->name, " cannot be undone"));
  acts.push_back(make_act(*row->undone, *at + *length, *std::move(words)));
  return check_added(reach, acts.back());
}

// Thresholds name acts, so a second "kill primary" becomes "kill primary#2".
void make_names_unique(std::vector<Act>& acts) {
  std::map<std::string, int> seen;
  for (Act& act : acts) {
    const int number = ++seen[act.name];
    if (number > 1) absl::StrAppend(&act.name, "#", number);
  }
}

std::string place_of(const xds::Document& document,
                     absl::string_view file_name,
                     std::size_t index) {
  const auto lines = document.lines.find("acts");
  const bool has_line = lines != document.lines.end() && index < lines->second.size();
  return absl::StrCat(file_name,
                      ": ",
                      has_line ? absl::StrCat("line ", lines->second[index], ": ") : "",
                      "acts[",
                      index,
                      "]: ");
}

absl::Status read_processes(const Json& root, absl::string_view file_name, Script& script) {
  if (!root.contains("processes")) return absl::OkStatus();
  if (!root["processes"].is_object())
    return wrong(file_name, ": processes: expected an object with a member for each process");
  for (const auto& [name, value] : root["processes"].items()) {
    const std::string place = absl::StrCat(file_name, ": processes: ", name, ": ");
    if (name.empty() || name == kControlPlaneName)
      return wrong(place, "the name is taken; choose another");
    auto process = process_of(value);
    if (!process.ok()) return wrong(place, process.status().message());
    script.processes.emplace(name, *std::move(process));
  }
  return absl::OkStatus();
}

}  // namespace

bool Act::is_fault() const {
  return row_of(verb).is_fault;
}

absl::string_view to_string(Verb verb) {
  return row_of(verb).name;
}

bool needs_proxy(Verb verb) {
  return verb == Verb::kDelay || verb == Verb::kBandwidth || verb == Verb::kBlackhole ||
         verb == Verb::kReset || verb == Verb::kClear;
}

absl::StatusOr<Script> parse_script(absl::string_view text,
                                    absl::string_view file_name,
                                    bool has_resources) {
  const auto document = xds::parse_file_document(text, xds::format_of(file_name), file_name);
  if (!document.ok()) return document.status();
  const Json& root = document->root;
  if (!root.is_object()) return wrong(file_name, ": expected an object with acts");
  for (const auto& [key, value] : root.items()) {
    if (key != "processes" && key != "acts")
      return wrong(file_name,
                   absl::StrCat(": '", key, "' is unknown; expected processes and acts"));
  }
  Script script;
  if (auto status = read_processes(root, file_name, script); !status.ok()) return status;
  if (!root.contains("acts") || !root["acts"].is_array())
    return wrong(file_name, ": acts: expected a list");
  const Reach reach(script, has_resources);
  std::vector<Act> acts;
  for (std::size_t i = 0; i < root["acts"].size(); ++i) {
    if (auto status = add_acts(root["acts"][i], reach, acts); !status.ok())
      return wrong(place_of(*document, file_name, i), status.message());
  }
  std::ranges::stable_sort(acts, {}, &Act::at);
  make_names_unique(acts);
  script.acts = std::move(acts);
  return script;
}

std::string timeline(const Script& script) {
  std::string text;
  for (const Act& act : script.acts)
    absl::StrAppendFormat(&text,
                          "%9.3fs  %s\n",
                          std::chrono::duration<double>(act.at).count(),
                          act.verb == Verb::kMark ? absl::StrCat("mark: ", act.what) : act.what);
  return text;
}

}  // namespace signalbox::tools
