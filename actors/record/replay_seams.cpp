// SPDX-License-Identifier: Apache-2.0
#include "actors/record/replay_seams.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/io/ads_transport.hpp"
#include "actors/io/connector.hpp"
#include "actors/io/health_prober.hpp"
#include "actors/io/name_lookup.hpp"
#include "actors/reclaimer.hpp"
#include "actors/record/recording_seams.hpp"
#include "xds/bootstrap.hpp"
#include "xds/record/ads_messages.hpp"

namespace signalbox::actors {
namespace {

using ScriptPtr = std::shared_ptr<Script>;

// A recorded attempt has begun at the latest this long after the ask or the wake that led to it.
constexpr Duration kAskToAttempt = std::chrono::seconds(1);

// The recorded runtime replaced an attempt by its peer's next one at the latest this long after the
// replayed one did.
constexpr Duration kReplaced = std::chrono::seconds(1);

bool lasts_after(const Script::Attempt& attempt, Instant time) {
  if (!attempt.made && !attempt.ended) return false;  // The recording does not say.
  if (attempt.ended && attempt.ended->at <= time) return false;
  return !attempt.left || *attempt.left > time;
}

// The first of the list, which is removed; nullptr if there is none.
template <typename Entry>
std::shared_ptr<Entry> take(std::deque<std::shared_ptr<Entry>>& list) {
  if (list.empty()) return nullptr;
  auto first = std::move(list.front());
  list.pop_front();
  return first;
}

// --- control planes ---------------------------------------------------------

class ReplayedTransport final : public AdsTransport {
 public:
  ReplayedTransport(ScriptPtr script, VirtualTime& time, ServerId id, std::string name)
      : script_(std::move(script)), time_(time), id_(id), name_(std::move(name)) {}

  std::unique_ptr<Stream> open(Events events) override {
    auto scene = std::make_shared<Scene>();
    scene->recorded = take(script_->streams[id_]);
    scene->events = std::move(events);
    if (scene->recorded == nullptr) {
      script_->lacks(time_.now());
    } else if (scene->recorded->opened) {
      at(scene, *scene->recorded->opened, [](Scene& now) {
        now.is_open = true;
        now.events->opened();
      });
    }
    proceed(scene);
    return std::make_unique<ReplayedStream>(*this, std::move(scene));
  }

  const std::string& server() const override { return name_; }

 private:
  // The carried responses of a type that have come, if no later response of the type has.
  struct Standing {
    std::set<std::string> names;
    std::vector<std::string> responses;
  };

  // What is left of a stream, and its callbacks. The stream's end makes `events` empty.
  struct Scene {
    std::shared_ptr<Script::Stream> recorded;  // Null: nothing is known of the stream.
    std::optional<Events> events;
    bool is_open = false;
    bool may_read = true;
    bool is_awaiting = false;  // The next response or the end has been scheduled.
    std::uint64_t turn = 0;    // What was scheduled for an earlier turn does nothing.
    std::map<ResourceType, Standing> standing;
    std::map<ResourceType, std::set<std::string>> asked;  // The names of the last requests.
  };

  using ScenePtr = std::shared_ptr<Scene>;

  class ReplayedStream final : public Stream {
   public:
    ReplayedStream(ReplayedTransport& transport, ScenePtr scene)
        : transport_(transport), scene_(std::move(scene)) {}

    ~ReplayedStream() override { scene_->events.reset(); }

    // Nothing is sent. Flow control lets each message pass at once.
    void send(std::string bytes) override {
      transport_.at(scene_, transport_.time_.now(), [](Scene& now) {
        if (now.is_open) now.events->written();
      });
      transport_.serve(scene_, bytes);
    }

    void read_next() override {
      scene_->may_read = true;
      transport_.proceed(scene_);
    }

   private:
    ReplayedTransport& transport_;
    const ScenePtr scene_;
  };

  // Runs `use` at the instant, unless the stream has ended by then.
  template <typename Use>
  void at(const ScenePtr& scene, Instant due, Use use) {
    time_.at(due, [scene, use] {
      if (scene->events) use(*scene);
    });
  }

  // Schedules the next response, or the end after the last one.
  void proceed(const ScenePtr& scene) {
    if (scene->recorded == nullptr || scene->is_awaiting) return;
    Script::Stream& recorded = *scene->recorded;
    if (!recorded.received.empty()) {
      if (!scene->may_read) return;
      scene->is_awaiting = true;
      at(scene, recorded.received.front().at, [this, scene, turn = scene->turn](Scene& now) {
        if (now.turn != turn) return;
        now.is_awaiting = false;
        now.may_read = false;
        Script::Response next = std::move(now.recorded->received.front());
        now.recorded->received.pop_front();
        record(next, now);
        now.events->received(std::move(next.bytes));
        if (now.recorded->received.empty()) proceed(scene);  // The end waits for no read_next().
      });
    } else if (recorded.ended) {
      scene->is_awaiting = true;
      at(scene, recorded.ended->at, [turn = scene->turn](Scene& now) {
        if (now.turn != turn) return;
        const auto closed = std::move(now.events->closed);
        const absl::Status why = now.recorded->ended->what;
        now.events.reset();
        closed(why);
      });
    }
  }

  // Carried responses stand until a later response of their type.
  static void record(const Script::Response& response, Scene& scene) {
    if (!response.carried && scene.standing.empty()) return;
    const auto seen = xds::read_response(response.bytes);
    if (!seen) return;
    if (!response.carried) {
      scene.standing.erase(seen->type);
      return;
    }
    Standing& standing = scene.standing[seen->type];
    for (const auto& [name, bytes] : seen->resources)
      standing.names.insert(name);
    standing.responses.push_back(response.bytes);
  }

  // Repeats the carried responses of a type if the request names more of their resources, as a
  // control plane would.
  void serve(const ScenePtr& scene, const std::string& bytes) {
    const auto request = xds::read_request(bytes);
    if (!request || !scene->events) return;
    const std::set<std::string> before =
        std::exchange(scene->asked[request->type], {request->names.begin(), request->names.end()});
    const auto found = scene->standing.find(request->type);
    if (found == scene->standing.end()) return;
    const bool names_more = std::ranges::any_of(request->names, [&](const std::string& name) {
      return found->second.names.contains(name) && !before.contains(name);
    });
    if (!names_more) return;
    std::vector<std::string> again = std::move(found->second.responses);
    scene->standing.erase(found);
    for (auto response = again.rbegin(); response != again.rend(); ++response)
      scene->recorded->received.push_front({time_.now(), std::move(*response), true});
    ++scene->turn;
    scene->is_awaiting = false;
    proceed(scene);
  }

  const ScriptPtr script_;
  VirtualTime& time_;
  const ServerId id_;
  const std::string name_;
};

// --- connections ------------------------------------------------------------

class ReplayedConnector final : public Connector {
 public:
  ReplayedConnector(ScriptPtr script, VirtualTime& time, std::shared_ptr<Reclaimer> reclaimer)
      : script_(std::move(script)), time_(time), reclaimer_(std::move(reclaimer)) {}

  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override {
    const std::string name = peer_text(peer);
    auto wish = std::make_shared<std::optional<Events>>(std::move(events));
    Script::Attempts& kept = script_->kept[name];
    const auto recorded = answer_for(script_->attempts[peer.authority][name], kept, failing_[name]);
    if (recorded == nullptr) script_->lacks(time_.now());
    if (recorded == nullptr || (!recorded->made && !recorded->ended)) {
      // The recorded runtime gave the attempt up, or the recording has ended.
      fail(wish, time_.now() + timeout, nothing_known(name));
    } else if (recorded->made) {
      make(wish, recorded, peer.address);
    } else {
      fail(wish, recorded->ended->at, recorded->ended->what);
    }
    const auto give_back = [script = script_, &kept, recorded, &time = time_] {
      if (recorded != nullptr && lasts_after(*recorded, time.now())) kept.push_front(recorded);
    };
    return std::make_unique<ReplayedAttempt>(std::move(wish), give_back);
  }

 private:
  using Wish = std::shared_ptr<std::optional<Events>>;

  class ReplayedAttempt final : public Attempt {
   public:
    ReplayedAttempt(Wish wish, std::function<void()> give_back)
        : wish_(std::move(wish)), give_back_(std::move(give_back)) {}

    ~ReplayedAttempt() override {
      wish_->reset();
      give_back_();
    }

   private:
    const Wish wish_;
    const std::function<void()> give_back_;
  };

  static absl::Status nothing_known(const std::string& peer) {
    return absl::UnavailableError(
        absl::StrCat(peer, ": the recording does not say how this attempt to connect ended"));
  }

  // A carried failure stays the answer until the next recorded attempt begins. Null: the recording
  // has no further attempt.
  std::shared_ptr<Script::Attempt> answer_for(Script::Attempts& list,
                                              Script::Attempts& kept,
                                              std::shared_ptr<Script::Attempt>& failing) {
    const auto is_failure = [](const Script::Attempt& first) {
      return first.carried && !first.made && first.ended;
    };
    const Instant soon = time_.now() + (list.empty() ? Duration::zero() : kReplaced);
    std::erase_if(kept, [soon](const auto& attempt) { return !lasts_after(*attempt, soon); });
    const bool is_next_due = !list.empty() && list.front()->began <= soon;
    if (!kept.empty() && !is_next_due) return take(kept);
    if (!list.empty() && is_failure(*list.front())) return failing = take(list);
    if (failing != nullptr && (list.empty() || time_.now() < list.front()->began)) return failing;
    failing = nullptr;
    return take(list);
  }

  void fail(const Wish& wish, Instant due, absl::Status why) {
    time_.at(due, [wish, why = std::move(why)] {
      if (!*wish) return;
      const auto failed = std::move((*wish)->failed);
      failed(why);
    });
  }

  void make(const Wish& wish,
            const std::shared_ptr<Script::Attempt>& recorded,
            const Address& address) {
    time_.at(*recorded->made, [this, wish, recorded, address] {
      if (!*wish) return;
      if (recorded->ended) {
        time_.at(recorded->ended->at, [wish, why = recorded->ended->what] {
          if (*wish) (*wish)->closed(why);
        });
      }
      (*wish)->connected(ConnectionPtr(new Connection(address),
                                       [reclaimer = reclaimer_](const Connection* unused) {
                                         reclaimer->retire(std::unique_ptr<const Tracked>(unused));
                                       }));
    });
  }

  const ScriptPtr script_;
  VirtualTime& time_;
  const std::shared_ptr<Reclaimer> reclaimer_;
  std::map<std::string, std::shared_ptr<Script::Attempt>> failing_;  // By peer.
};

// --- probes and names -------------------------------------------------------

class ReplayedProber final : public HealthProber {
 public:
  ReplayedProber(ScriptPtr script, VirtualTime& time) : script_(std::move(script)), time_(time) {}

  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override {
    return std::make_unique<ReplayedProbe>(script_, time_, probe_text(target, check));
  }

 private:
  class ReplayedProbe final : public Probe {
   public:
    ReplayedProbe(ScriptPtr script, VirtualTime& time, std::string name)
        : script_(std::move(script)), time_(time), name_(std::move(name)) {}

    ~ReplayedProbe() override { *is_wanted_ = false; }

    void begin(Answer answer) override {
      auto& answers = script_->probes[name_];
      if (answers.empty()) {
        script_->lacks(time_.now());
        return;
      }
      auto next = std::move(answers.front());
      answers.pop_front();
      time_.at(next.at,
               [is_wanted = is_wanted_, answer = std::move(answer), what = std::move(next.what)] {
                 if (*is_wanted) answer({what.outcome, what.why, what.delayed});
               });
    }

   private:
    const ScriptPtr script_;
    VirtualTime& time_;
    const std::string name_;
    const std::shared_ptr<bool> is_wanted_ = std::make_shared<bool>(true);
  };

  const ScriptPtr script_;
  VirtualTime& time_;
};

// resolve() cannot wait, so an answer comes when the actors ask for it. The last one is repeated.
class ReplayedLookup final : public NameLookup {
 public:
  ReplayedLookup(ScriptPtr script, const VirtualTime& time)
      : script_(std::move(script)), time_(time) {}

  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    auto& answers = script_->names[name];
    if (answers.empty()) {
      script_->lacks(time_.now());
      return absl::UnavailableError(
          absl::StrCat(name.str(), ": the recording has no answer for this name"));
    }
    if (answers.size() == 1) return answers.front().answer;
    const NameAnswered next = std::move(answers.front());
    answers.pop_front();
    return next.answer;
  }

 private:
  const ScriptPtr script_;
  const VirtualTime& time_;
};

// Nothing reads snapshots while actors run, so a retired object is destroyed as soon as its owner
// has returned.
class VirtualReclaimer final : public Reclaimer {
 public:
  explicit VirtualReclaimer(VirtualTime& time) : time_(time) {}

  void retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) override {
    std::shared_ptr<const lb::Snapshot> owned = std::move(old);
    time_.at(time_.now(), [owned = std::move(owned), done = std::move(done)]() mutable {
      owned.reset();
      done();
    });
  }

  void retire(std::unique_ptr<const Tracked> object) override {
    std::shared_ptr<const Tracked> owned = std::move(object);
    time_.at(time_.now(), [owned = std::move(owned)]() mutable { owned.reset(); });
  }

 private:
  VirtualTime& time_;
};

// --- the script -------------------------------------------------------------

class ScriptWriter {
 public:
  ScriptWriter(Script& script, Instant begin) : script_(script), begin_(begin) {}

  void add(const RecordedEvent& event) {
    at_ = begin_ + event.at;
    carried_ = event.carried;
    if (carried_) script_.resumed = at_;
    script_.end = at_;
    std::visit([this](const auto& what) { on(what); }, event.what);
  }

 private:
  void on(const TargetOpened& event) { script_.program.push_back({at_, event}); }

  void on(const TargetClosed& event) { script_.program.push_back({at_, event}); }

  void on(const TargetWoken& event) {
    if (carried_)
      script_.woken.insert(event.target);
    else
      script_.program.push_back({at_, event});
  }

  void on(const PolicyAsked& event) {
    if (carried_)
      script_.asked[{event.target, event.ask.address}].emplace(event.path, event.ask);
    else
      script_.program.push_back({at_, event});
  }

  void on(const StreamBegan& event) {
    streams_[{event.server, event.stream}] =
        script_.streams[event.server].emplace_back(std::make_shared<Script::Stream>());
  }

  void on(const StreamOpened& event) {
    auto* const stream = find(event);
    if (stream != nullptr && !stream->opened) stream->opened = at_;
  }

  void on(const StreamReceived& event) {
    if (auto* stream = find(event)) stream->received.push_back({at_, event.bytes, carried_});
  }

  void on(const StreamAsked&) {}

  void on(const StreamLeft&) {}

  void on(const StreamClosed& event) {
    if (auto* stream = find(event)) stream->ended = Script::Timed<absl::Status>{at_, event.why};
  }

  void on(const ConnectBegan& event) {
    Recorded attempt{event.peer, event.holder, at_, carried_};
    const auto held = held_.find(event.holder);
    if (held == held_.end())
      attempt.script = add_attempt(attempt);
    else
      held->second.next = event.attempt;
    attempts_.insert_or_assign(event.attempt, std::move(attempt));
  }

  void on(const ConnectMade& event) {
    const auto found = attempts_.find(event.attempt);
    if (found == attempts_.end()) return;
    Recorded& attempt = found->second;
    attempt.is_made = true;
    if (attempt.script != nullptr) attempt.script->made = at_;
    if (attempt.holder == 0) return;
    Held& held = held_[attempt.holder];
    if (held.script == nullptr) held.script = attempt.script;
    ++held.connections;
  }

  void on(const ConnectEnded& event) {
    if (const auto script = forget(event.attempt))
      script->ended = Script::Timed<absl::Status>{at_, event.why};
  }

  void on(const ConnectLeft& event) {
    if (const auto script = forget(event.attempt)) script->left = at_;
  }

  void on(const NameAnswered& event) { script_.names[event.name].push_back(event); }

  void on(const ProbeAnswered& event) { script_.probes[event.probe].push_back({at_, event}); }

  void on(const EventsDropped&) {}

  // A recorded attempt to connect.
  struct Recorded {
    std::string peer;
    std::uint64_t holder = 0;
    Instant began{};
    bool carried = false;
    bool is_made = false;
    // Null: the subchannel had a connection when the attempt began.
    std::shared_ptr<Script::Attempt> script = nullptr;
  };

  // A subchannel that has connections (A105). In the replay they are one, which `script` describes:
  // it is lost when the last of them is.
  struct Held {
    std::shared_ptr<Script::Attempt> script;
    std::size_t connections = 0;
    std::optional<std::uint64_t> next;  // The newest attempt beside the connections.
  };

  std::shared_ptr<Script::Attempt> add_attempt(const Recorded& attempt) {
    auto script = std::make_shared<Script::Attempt>(
        Script::Attempt{attempt.began, attempt.carried, {}, {}, {}});
    return script_.attempts[named_peer(attempt.peer).authority][attempt.peer].emplace_back(
        std::move(script));
  }

  // The attempt, or its connection, is over. Returns what described it; null: it is not known, or
  // its holder has more connections.
  std::shared_ptr<Script::Attempt> forget(std::uint64_t number) {
    const auto found = attempts_.find(number);
    if (found == attempts_.end()) return nullptr;
    const Recorded attempt = std::move(found->second);
    attempts_.erase(found);
    return attempt.is_made && attempt.holder != 0 ? release(attempt.holder) : attempt.script;
  }

  // A connection of the holder has ended. Returns what described all of them; null: there are more.
  // An attempt beside the last one becomes an attempt of the script.
  std::shared_ptr<Script::Attempt> release(std::uint64_t holder) {
    const auto found = held_.find(holder);
    if (found == held_.end() || --found->second.connections > 0) return nullptr;
    const Held last = std::move(found->second);
    held_.erase(found);
    const auto next = last.next ? attempts_.find(*last.next) : attempts_.end();
    if (next != attempts_.end() && next->second.script == nullptr)
      next->second.script = add_attempt(next->second);
    return last.script;
  }

  template <typename StreamEvent>
  Script::Stream* find(const StreamEvent& event) {
    const auto found = streams_.find(std::pair(event.server, event.stream));
    return found == streams_.end() ? nullptr : found->second.get();
  }

  Script& script_;
  const Instant begin_;
  Instant at_{};
  bool carried_ = false;
  std::map<std::pair<ServerId, std::uint64_t>, std::shared_ptr<Script::Stream>> streams_;
  std::map<std::uint64_t, Recorded> attempts_;  // By number.
  std::map<std::uint64_t, Held> held_;          // By holder.
};

}  // namespace

std::shared_ptr<Script> make_script(const Recording& recording, Instant begin) {
  auto script = std::make_shared<Script>();
  script->end = begin;
  ScriptWriter writer(*script, begin);
  for (const RecordedEvent& event : recording.events)
    writer.add(event);
  return script;
}

std::shared_ptr<const AskTarget> ReplayedAsks::relay(const std::string& target,
                                                     const PolicyPath& path,
                                                     std::shared_ptr<const AskTarget> policy) {
  policies_[{target, path}] = policy;
  // By then policies have their configurations, and have connected what needs no ask.
  time_.at(time_.now(), [this, target, path] { resume(target, path); });
  return policy;
}

void ReplayedAsks::resume(const std::string& target, const PolicyPath& path) const {
  const auto peers = script_->attempts.find(xds::data_plane_authority(target));
  if (peers == script_->attempts.end()) return;
  for (const auto& entry : peers->second) {
    const Script::Attempts& attempts = entry.second;
    if (attempts.empty()) continue;
    const std::shared_ptr<Script::Attempt> next = attempts.front();
    if (next->began > script_->resumed + kAskToAttempt) continue;
    const auto again = ask_of(target, path, named_peer(entry.first).address, *next);
    if (!again) continue;
    const auto make = [this, &attempts, next, asked = PolicyAsked{target, path, *again}] {
      if (!attempts.empty() && attempts.front() == next) ask(asked);
    };
    // The next policy must see what this one takes, so only an attempt after the segment's
    // beginning waits for its time.
    if (next->began <= time_.now())
      make();
    else
      time_.at(next->began, make);
  }
}

// What leads the policy to the attempt; nullopt: another policy is asked, or none.
std::optional<PickAsk> ReplayedAsks::ask_of(const std::string& target,
                                            const PolicyPath& path,
                                            const Address& address,
                                            const Script::Attempt& next) const {
  if (const auto asked = script_->asked.find({target, address}); asked != script_->asked.end()) {
    if (const auto own = asked->second.find(path); own != asked->second.end()) return own->second;
    for (const auto& [other, ask] : asked->second) {
      if (policies_.contains({target, other})) return std::nullopt;
    }
  }
  if (!next.carried && !script_->woken.contains(target)) return std::nullopt;
  return PickAsk{PickAsk::Kind::kConnect, address};
}

void ReplayedAsks::ask(const PolicyAsked& asked) const {
  const auto found = policies_.find({asked.target, asked.path});
  if (found == policies_.end()) return;
  if (const auto policy = found->second.lock()) policy->tell(asked.ask);
}

void replay_outside(const std::shared_ptr<Script>& script,
                    VirtualTime& time,
                    const std::vector<std::string>& servers,
                    Environment& environment) {
  environment.reclaimer = std::make_shared<VirtualReclaimer>(time);
  for (const std::string& server : servers) {
    const ServerId id = environment.ads_transports.size();
    environment.ads_transports.push_back(
        std::make_shared<ReplayedTransport>(script, time, id, server));
  }
  environment.load_transports.resize(servers.size());
  environment.connector = std::make_shared<ReplayedConnector>(script, time, environment.reclaimer);
  environment.health_prober = std::make_shared<ReplayedProber>(script, time);
  environment.name_lookup = std::make_shared<ReplayedLookup>(script, time);
  environment.detached_lookups = false;
  environment.detached_streams = false;
}

}  // namespace signalbox::actors
