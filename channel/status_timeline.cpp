// SPDX-License-Identifier: Apache-2.0
#include "channel/status_timeline.hpp"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "channel/admin/status_json.hpp"

namespace signalbox::channel {
namespace {

std::string name_of(const ClusterName& cluster, const ClusterName& aggregate) {
  return aggregate.empty() ? cluster.str() : absl::StrCat(aggregate.str(), " / ", cluster.str());
}

std::string with_reason(std::string text, const absl::Status& why) {
  if (!why.ok()) absl::StrAppend(&text, ": ", why.message());
  return text;
}

std::string index_text(const std::optional<std::size_t>& index) {
  return index ? absl::StrCat("priority ", *index) : "none";
}

std::string text_of(const PriorityChange& change) {
  std::string text = absl::StrCat(index_text(change.from), " to ", index_text(change.to));
  absl::StrAppend(&text, " (", to_string(change.reason), ")");
  if (!change.details.empty()) absl::StrAppend(&text, ": ", change.details);
  return text;
}

}  // namespace

void StatusTimeline::add(Duration at, const RuntimeStatus& status) {
  at_ = at;
  ++round_;
  for (const TargetStatus& target : status.targets)
    look_at(target);
  end_unseen();
  for (const PriorityChange& change : status.changes) {
    if (change.number <= last_change_) continue;
    last_change_ = change.number;
    entries_.push_back({at_,
                        "priority",
                        change.target,
                        name_of(change.cluster, change.aggregate),
                        text_of(change)});
  }
}

void StatusTimeline::add(Duration at, const LogLine& line) {
  if (line.kind == LogKind::kConfigApplied || line.kind == LogKind::kPriority) return;
  entries_.push_back({at, "log", "", "", signalbox::text_of(line)});
}

void StatusTimeline::look_at(const TargetStatus& target) {
  std::string text = absl::StrCat(absl::string_view(to_string(target.state)),
                                  target.ready ? ", ready" : ", not ready",
                                  ", configuration ",
                                  target.generation);
  say({"target", target.name, ""}, with_reason(std::move(text), target.failure));
  for (const ClusterStatus& cluster : target.clusters)
    look_at(target.name, cluster);
}

void StatusTimeline::look_at(const std::string& target, const ClusterStatus& cluster) {
  const std::string name = name_of(cluster.name, cluster.aggregate);
  const std::string active =
      cluster.active ? absl::StrCat("priority ", *cluster.active, " of ") : "no priority of ";
  say({"cluster", target, name},
      with_reason(absl::StrCat(active, cluster.priorities.size()), cluster.failure));
  for (const PriorityStatus& priority : cluster.priorities) {
    for (const LocalityStatus& locality : priority.localities) {
      for (const EndpointStatus& endpoint : locality.endpoints) {
        for (const AddressStatus& address : endpoint.addresses) {
          say({"endpoint", target, absl::StrCat(name, " ", address.address.str())},
              with_reason(absl::AsciiStrToUpper(to_word(address.state)), address.reason));
        }
      }
    }
  }
}

void StatusTimeline::say(Subject subject, std::string text) {
  Known& known = known_[subject];
  known.seen = round_;
  if (known.text == text) return;
  known.text = text;
  entries_.push_back({at_,
                      std::move(subject.kind),
                      std::move(subject.target),
                      std::move(subject.name),
                      std::move(text)});
}

void StatusTimeline::end_unseen() {
  for (auto entry = known_.begin(); entry != known_.end();) {
    if (entry->second.seen == round_) {
      ++entry;
      continue;
    }
    const Subject& subject = entry->first;
    entries_.push_back({at_, subject.kind, subject.target, subject.name, "gone"});
    entry = known_.erase(entry);
  }
}

}  // namespace signalbox::channel
