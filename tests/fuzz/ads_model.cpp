// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ads_model.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

using Code = absl::StatusCode;

constexpr Duration kPatience = std::chrono::seconds(15);
constexpr Duration kApart = std::chrono::seconds(1);

bool is_full_state(ResourceType type) {
  return type == ResourceType::kListener || type == ResourceType::kCluster;
}

std::string describe(const AdsRequest& request) {
  return absl::StrCat(to_string(request.type),
                      request.is_nack ? " NACK" : "",
                      " version '",
                      request.version,
                      "' nonce '",
                      request.nonce,
                      "' names [",
                      absl::StrJoin(request.names, " "),
                      "]");
}

}  // namespace

// --- watchers ---------------------------------------------------------------

void AdsModel::watch(WatcherId watcher, const ResourceKey& key) {
  entries_[key].watchers.insert(watcher);
}

void AdsModel::unwatch(WatcherId watcher, const ResourceKey& key) {
  leave(key, watcher);
}

void AdsModel::gone(WatcherId watcher) {
  std::vector<ResourceKey> keys;
  for (const auto& [key, entry] : entries_)
    keys.push_back(key);
  for (const ResourceKey& key : keys)
    leave(key, watcher);
}

void AdsModel::leave(const ResourceKey& key, WatcherId watcher) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  entry->second.watchers.erase(watcher);
  if (!entry->second.watchers.empty()) return;
  entries_.erase(entry);
  if (watched(key.type).empty()) versions_.erase(key.type);  // M7.
}

std::set<std::string> AdsModel::watched(ResourceType type) const {
  std::set<std::string> names;
  for (const auto& [key, entry] : entries_) {
    if (key.type == type) names.insert(key.name);
  }
  return names;
}

bool AdsModel::is_watched(WatcherId watcher, const ResourceKey& key) const {
  const auto entry = entries_.find(key);
  return entry != entries_.end() && entry->second.watchers.contains(watcher);
}

// --- the stream -------------------------------------------------------------

void AdsModel::opening(Instant now) {
  SIGNALBOX_FUZZ_EXPECT(
      !last_opened_ || now - *last_opened_ >= kApart, "M3: streams a second apart", "less");
  last_opened_ = now;
}

void AdsModel::opened(Instant now) {
  now_ = now;
  live_ = true;
  first_request_ = true;
  answered_ = false;
  asked_.clear();
}

void AdsModel::closed() {
  if (!live_ || !answered_) failing_ = true;
  live_ = false;
  asked_.clear();
  for (auto& [key, entry] : entries_) {
    entry.deadline.reset();
    entry.asked = false;
    entry.answered = false;
  }
}

void AdsModel::refused() {
  closed();
  failing_ = true;
}

void AdsModel::left() {
  SIGNALBOX_FUZZ_EXPECT(
      failing_ && entries_.empty(), "M8: when the server is left", failing_ ? "watched" : "well");
  failing_ = false;
  live_ = false;
  asked_.clear();
}

void AdsModel::check_server() const {
  SIGNALBOX_FUZZ_EXPECT(!failing_ || !entries_.empty(), "M8: the server is left", "it was not");
}

void AdsModel::check_request(const AdsRequest& request) {
  SIGNALBOX_FUZZ_EXPECT(live_, "M3: requests need a stream", describe(request));
  SIGNALBOX_FUZZ_EXPECT(
      request.has_node == std::exchange(first_request_, false), "M4", describe(request));
  const bool is_first = !asked_.contains(request.type);
  SIGNALBOX_FUZZ_EXPECT(
      !is_first || !request.names.empty(), "M2: no wildcard by accident", describe(request));
  Asked& asked = asked_[request.type];
  const bool changes_names = is_first || asked.names != request.names;
  const bool answers = !asked.answered;
  SIGNALBOX_FUZZ_EXPECT(request.nonce == asked.nonce, "M1: the last nonce", describe(request));
  SIGNALBOX_FUZZ_EXPECT(changes_names || answers, "M1: one answer", describe(request));
  SIGNALBOX_FUZZ_EXPECT(!request.is_nack || (answers && !asked.valid),
                        "M1: a NACK of what is good",
                        describe(request));
  SIGNALBOX_FUZZ_EXPECT(
      request.is_nack || !answers || asked.valid, "M1: an ACK of what is bad", describe(request));
  SIGNALBOX_FUZZ_EXPECT(request.names.empty() || request.version == versions_[request.type],
                        "M1, M7: the version last accepted",
                        absl::StrCat(describe(request), ", not '", versions_[request.type], "'"));
  asked.answered = true;
  asked.names = request.names;
  if (request.names.empty()) versions_.erase(request.type);  // M7.
  if (changes_names) start_deadlines(request.type, request.names);
}

void AdsModel::start_deadlines(ResourceType type, const std::set<std::string>& names) {
  // Names that this stream was asked for before keep their running deadline.
  for (auto& [key, entry] : entries_) {
    const bool is_new = key.type == type && names.contains(key.name) && !entry.asked;
    if (is_new && !entry.answered && !entry.content)
      entry.deadline = now_ + (options_.timer_is_transient_error ? 2 : 1) * kPatience;
    if (key.type != type) continue;
    entry.asked = names.contains(key.name);
    if (!entry.asked) entry.answered = false;
  }
}

void AdsModel::check_subscriptions(bool settled) {
  if (!live_) return;
  for (const auto type : {ResourceType::kListener,
                          ResourceType::kRouteConfig,
                          ResourceType::kCluster,
                          ResourceType::kEndpoints}) {
    const auto asked = asked_.find(type);
    const std::set<std::string> wanted = watched(type);
    if (asked == asked_.end()) {
      SIGNALBOX_FUZZ_EXPECT(
          wanted.empty(), "M2: what is watched is asked for", absl::StrCat(to_string(type), " []"));
      continue;
    }
    const std::set<std::string>& names = asked->second.names;
    std::optional<Instant>& differs = asked->second.differs;
    if (names == wanted)
      differs.reset();
    else if (!differs)
      differs = now_;
    SIGNALBOX_FUZZ_EXPECT(!differs || (!settled && now_ - *differs < kPatience),
                          "M2: what is watched is asked for",
                          absl::StrCat(to_string(type), " [", absl::StrJoin(names, " "), "]"));
    const bool may_wait = !settled && !asked->second.valid;
    SIGNALBOX_FUZZ_EXPECT(asked->second.answered || may_wait, "M1: an answer", asked->second.nonce);
  }
}

// --- responses --------------------------------------------------------------

void AdsModel::received(const SentResponse& response) {
  answered_ = true;
  failing_ = false;
  const auto asked = asked_.find(response.type);
  if (asked == asked_.end()) return;

  std::map<std::string, std::vector<const SentResource*>> named;
  bool has_unnamed = false;
  for (const SentResource& resource : response.resources) {
    if (resource.form == SentResource::Form::kUnnamed)
      has_unnamed = true;
    else
      named[resource.name].push_back(&resource);
  }
  const auto is_valid = [](const auto& with_name) {
    return with_name.second.size() == 1 &&
           with_name.second.front()->form == SentResource::Form::kValid;
  };
  asked->second.nonce = response.nonce;
  asked->second.answered = false;
  asked->second.valid = !has_unnamed && std::all_of(named.begin(), named.end(), is_valid);
  if (asked->second.valid && !watched(response.type).empty())
    versions_[response.type] = response.version;

  std::set<std::string> present;
  for (const auto& with_name : named) {
    present.insert(with_name.first);
    const auto entry = entries_.find({response.type, with_name.first});
    if (entry == entries_.end()) continue;
    entry->second.answered = true;
    entry->second.deadline.reset();
    if (is_valid(with_name)) {
      entry->second.content = with_name.second.front()->content;
      entry->second.wrong = Code::kOk;
    } else {
      refuse(entry->second, Code::kUnavailable);
    }
  }
  for (const SentError& error : response.errors) {
    present.insert(error.name);
    const auto entry = entries_.find({response.type, error.name});
    if (entry == entries_.end()) continue;
    entry->second.answered = true;
    entry->second.deadline.reset();
    if (error.code == Code::kNotFound || error.code == Code::kPermissionDenied)
      refuse(entry->second, error.code);
    else
      entry->second.wrong = error.code;
  }
  if (!is_full_state(response.type) || has_unnamed) return;
  for (auto& [key, entry] : entries_) {
    if (key.type == response.type && entry.content && !present.contains(key.name))
      refuse(entry, Code::kNotFound);
  }
}

void AdsModel::refuse(Entry& entry, Code code) {
  if (options_.fail_on_data_errors) entry.content.reset();
  entry.wrong = code;
}

// --- time -------------------------------------------------------------------

void AdsModel::advance(Instant now) {
  now_ = now;
  for (auto& [key, entry] : entries_) {
    if (!entry.deadline || *entry.deadline > now) continue;
    entry.deadline.reset();
    refuse(entry, options_.timer_is_transient_error ? Code::kUnavailable : Code::kNotFound);
  }
}

// --- what watchers have -----------------------------------------------------

bool AdsModel::is_right(WatcherId watcher, const ResourceKey& key, const Told& told) const {
  if (!is_watched(watcher, key)) return true;
  const Entry& entry = entries_.at(key);
  return fuzz::is_right(told, entry.content, entry.wrong, failing_);
}

std::string AdsModel::expected(const ResourceKey& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return "nobody watches it";
  const Entry& entry = found->second;
  return absl::StrCat(content_text(entry.content),
                      ", wrong ",
                      absl::StatusCodeToString(entry.wrong),
                      failing_ ? ", server failing" : "");
}

}  // namespace signalbox::fuzz
