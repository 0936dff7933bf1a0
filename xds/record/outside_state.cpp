// SPDX-License-Identifier: Apache-2.0
#include "xds/record/outside_state.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::xds {
namespace {

// Whether each response has all resources of its type.
bool has_all(ResourceType type) {
  return type == ResourceType::kListener || type == ResourceType::kCluster;
}

// The attempts of a state's failures need numbers that no recorded attempt has.
constexpr std::uint64_t kFirstOfFailures = std::uint64_t{1} << 63U;

// RDS and EDS come in responses of about this size, because a client refuses a response that is too
// long, and all resources of a large mesh might be.
constexpr std::size_t kMostResponseBytes = std::size_t{1} << 20U;

// Keeps the value as the newest of its key. A full map forgets another key.
template <typename Map>
void keep_newest(Map& map,
                 std::size_t most,
                 typename Map::key_type key,
                 typename Map::mapped_type value) {
  if (map.size() >= most && !map.contains(key)) map.erase(map.begin());
  map.insert_or_assign(std::move(key), std::move(value));
}

// The response, in parts of a bounded size if a response of its type may have some resources. None
// if it has no resources.
std::vector<SeenResponse> parts_of(const SeenResponse& whole) {
  if (has_all(whole.type) && !whole.resources.empty()) return {whole};
  std::vector<SeenResponse> parts;
  std::size_t size = 0;
  for (const auto& [name, bytes] : whole.resources) {
    size += bytes.size();
    if (parts.empty() || size > kMostResponseBytes) {
      parts.push_back({whole.type, whole.version, whole.nonce, {}});
      size = bytes.size();
    }
    parts.back().resources.emplace(name, bytes);
  }
  return parts;
}

}  // namespace

// --- resources --------------------------------------------------------------

// A resource without a readable name makes a client keep others that seem absent.
bool OutsideState::Resources::wants(const std::string& name) const {
  return !wanted || name.empty() || wanted->contains(name);
}

void OutsideState::Resources::keep_wanted() {
  for (auto* known : {&accepted, &refused}) {
    if (!*known) continue;
    std::erase_if((*known)->resources, [this](const auto& named) { return !wants(named.first); });
  }
}

// The client has answered the newest response. Without an answer it may have used the response or
// not: `is_refused` keeps both versions.
void OutsideState::Resources::settle(bool is_refused) {
  SeenResponse response = *std::exchange(unanswered, std::nullopt);
  auto& known = is_refused ? refused : accepted;
  std::map<std::string, std::string> all;
  if (known) all = std::move(known->resources);
  if (!is_refused && refused) refused->resources.erase("");  // No response has its name.
  std::set<std::string> names;
  for (auto& [name, bytes] : response.resources) {
    if (!wants(name)) continue;
    if (!is_refused && refused) refused->resources.erase(name);
    all.insert_or_assign(name, std::move(bytes));
    names.insert(name);
  }
  if (!is_refused && refused && refused->resources.empty()) refused.reset();
  if (has_all(response.type)) newest = Answered{std::move(names), is_refused};
  response.resources = std::move(all);
  known = std::move(response);
}

// The responses that lead a client to these resources. Of LDS and CDS, the newest response comes
// last, so the client knows which resources it lacks. Those before it lack none: the client would
// take such a resource as deleted for a moment.
std::vector<OutsideState::Reply> OutsideState::Resources::replies() const {
  std::vector<Reply> all;
  for (const bool is_refused : {false, true}) {
    const auto& known = is_refused ? refused : accepted;
    if (!known) continue;
    SeenResponse whole = *known;
    if (is_refused && newest && accepted)
      whole.resources.insert(accepted->resources.begin(), accepted->resources.end());
    for (SeenResponse& part : parts_of(whole))
      all.push_back({std::move(part), is_refused});
  }
  if (!newest) return all;
  Reply last{newest->is_refused ? *refused : *accepted, newest->is_refused};
  std::erase_if(last.response.resources,
                [this](const auto& named) { return !newest->names.contains(named.first); });
  if (all.empty() || all.back() != last) all.push_back(std::move(last));
  return all;
}

bool OutsideState::Stream::has_resources() const {
  return std::ranges::any_of(by_type, [](const auto& typed) {
    const Resources& known = typed.second;
    return known.accepted || known.refused || known.unanswered;
  });
}

// --- events -----------------------------------------------------------------

void OutsideState::apply(const OutsideEvent& event) {
  std::visit([this](const auto& what) { on(what); }, event);
}

void OutsideState::on(const TargetClosed& event) {
  targets_.erase(event.target);
  std::erase_if(asks_, [&](const auto& ask) { return ask.second.target == event.target; });
}

void OutsideState::on(const TargetWoken& event) {
  if (const auto found = targets_.find(event.target); found != targets_.end()) found->second = true;
}

void OutsideState::on(const PolicyAsked& event) {
  if (targets_.contains(event.target))
    keep_newest(asks_, kMostAnswers, {event.target, event.path, event.ask.address}, event);
}

// The client forgets no resource when a stream ends, so the resources stay. It may have used a
// response that it could not answer any more.
void OutsideState::on(const StreamBegan& event) {
  Stream& stream = streams_[event.server];
  stream.number = event.stream;
  stream.is_open = false;
  stream.is_answered = false;
  stream.has_answered = true;
  stream.nonce.reset();
  stream.asked.clear();
  stream.ended.reset();
  for (auto& [type, known] : stream.by_type) {
    if (known.unanswered) known.settle(/*is_refused=*/true);
  }
}

void OutsideState::on(const StreamAsked& event) {
  Stream& stream = streams_[event.server];
  // Other requests change names only.
  if (stream.nonce == event.nonce) stream.has_answered = true;
  stream.asked.insert(event.type);
  Resources& known = stream.by_type[event.type];
  if (event.names) {
    known.wanted.emplace(event.names->begin(), event.names->end());
    known.keep_wanted();
  }
  if (known.unanswered && known.unanswered->nonce == event.nonce) known.settle(event.refused);
}

void OutsideState::on(const StreamReceived& event) {
  auto response = read_response(event.bytes);
  if (const auto known = streams_.find(event.server); known != streams_.end()) {
    known->second.has_answered = false;
    known->second.nonce = response ? std::optional(response->nonce) : std::nullopt;
  }
  if (!response) return;
  Stream& stream = streams_[event.server];
  // A client asks for all types that it wants before the first response.
  if (!std::exchange(stream.is_answered, true) && !stream.asked.empty()) {
    std::erase_if(stream.by_type,
                  [&](const auto& typed) { return !stream.asked.contains(typed.first); });
  }
  Resources& known = stream.by_type[response->type];
  if (known.unanswered) known.settle(/*is_refused=*/true);
  known.unanswered = *std::move(response);
}

// A client leaves a server that it needs no more, with its resources. It also ends a stream when it
// cannot use a response, and opens another.
void OutsideState::on(const StreamLeft& event) {
  const auto found = streams_.find(event.server);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (stream.number != event.stream || stream.ended) return;
  if (stream.has_answered) {
    streams_.erase(found);
    return;
  }
  stream.ended = absl::CancelledError("the client could not use a response");
  for (auto& [type, known] : stream.by_type)
    known.unanswered.reset();
}

// Requests may be missing, so no resource may be dropped before the next request with names.
void OutsideState::on(const EventsDropped&) {
  for (auto& [server, stream] : streams_) {
    stream.is_answered = true;
    for (auto& [type, known] : stream.by_type)
      known.wanted.reset();
  }
}

void OutsideState::on(const ConnectMade& event) {
  const auto found = attempts_.find(event.attempt);
  if (found == attempts_.end()) return;
  found->second.is_made = true;
  ++connections_[found->second.holder];
  failures_.erase(found->second.peer);
}

void OutsideState::on(const ConnectEnded& event) {
  const auto found = attempts_.find(event.attempt);
  if (found == attempts_.end()) return;
  const Attempt& attempt = found->second;
  // A lost connection is no failed attempt: the next attempt may succeed at once. An attempt beside
  // a connection (A105) does not make the peer fail.
  const bool has_connection = attempt.holder != 0 && connections_.contains(attempt.holder);
  if (!attempt.is_made && !has_connection)
    keep_newest(failures_, kMostFailures, attempt.peer, event.why);
  forget(found);
}

void OutsideState::on(const ConnectLeft& event) {
  const auto found = attempts_.find(event.attempt);
  if (found != attempts_.end()) forget(found);
}

void OutsideState::forget(Attempts::iterator attempt) {
  const auto count = connections_.find(attempt->second.holder);
  if (attempt->second.is_made && --count->second == 0) connections_.erase(count);
  attempts_.erase(attempt);
}

void OutsideState::on(const NameAnswered& event) {
  keep_newest(names_, kMostAnswers, event.name, event);
}

void OutsideState::on(const ProbeAnswered& event) {
  keep_newest(probes_, kMostAnswers, event.probe, event);
}

// --- the state as events ----------------------------------------------------

void OutsideState::add_stream(ServerId server,
                              const Stream& stream,
                              std::vector<OutsideEvent>& all) const {
  all.emplace_back(StreamBegan{server, stream.number});
  if (stream.is_open || stream.has_resources())
    all.emplace_back(StreamOpened{server, stream.number});
  for (const auto& [type, known] : stream.by_type) {
    if (known.wanted) {
      std::vector<std::string> names(known.wanted->begin(), known.wanted->end());
      all.emplace_back(StreamAsked{server, stream.number, type, "", false, std::move(names)});
    }
    for (const Reply& reply : known.replies()) {
      const std::string& nonce = reply.response.nonce;
      all.emplace_back(StreamReceived{server, stream.number, encode_response(reply.response)});
      all.emplace_back(
          StreamAsked{server, stream.number, type, nonce, reply.is_refused, std::nullopt});
    }
    if (known.unanswered)
      all.emplace_back(StreamReceived{server, stream.number, encode_response(*known.unanswered)});
  }
  if (stream.ended) all.emplace_back(StreamClosed{server, stream.number, *stream.ended});
}

std::vector<OutsideEvent> OutsideState::events() const {
  std::vector<OutsideEvent> all;
  all.reserve(asks_.size() + names_.size() + probes_.size() +
              2 * (targets_.size() + failures_.size() + attempts_.size()));
  for (const auto& [target, is_woken] : targets_) {
    all.emplace_back(TargetOpened{target});
    if (is_woken) all.emplace_back(TargetWoken{target});
  }
  for (const auto& [key, ask] : asks_)
    all.emplace_back(ask);
  for (const auto& [server, stream] : streams_)
    add_stream(server, stream, all);
  std::uint64_t number = kFirstOfFailures;
  for (const auto& [peer, why] : failures_) {
    all.emplace_back(ConnectBegan{number, peer});
    all.emplace_back(ConnectEnded{number++, why});
  }
  for (const auto& [attempt, state] : attempts_) {
    all.emplace_back(ConnectBegan{attempt, state.peer, state.holder});
    if (state.is_made) all.emplace_back(ConnectMade{attempt});
  }
  for (const auto& [name, answered] : names_)
    all.emplace_back(answered);
  for (const auto& [probe, answered] : probes_)
    all.emplace_back(answered);
  return all;
}

}  // namespace signalbox::xds
