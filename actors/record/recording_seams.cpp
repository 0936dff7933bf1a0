// SPDX-License-Identifier: Apache-2.0
#include "actors/record/recording_seams.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "actors/io/ads_transport.hpp"
#include "actors/io/name_lookup.hpp"
#include "messages/overloaded.hpp"
#include "xds/record/ads_messages.hpp"

namespace signalbox::actors {
namespace {

using RecorderPtr = std::shared_ptr<Recorder>;

class RecordingTransport final : public AdsTransport {
 public:
  RecordingTransport(RecorderPtr recorder, ServerId id, std::shared_ptr<AdsTransport> real)
      : recorder_(std::move(recorder)), id_(id), real_(std::move(real)) {}

  std::unique_ptr<Stream> open(Events events) override {
    const std::uint64_t stream = streams_.fetch_add(1, std::memory_order_relaxed);
    const auto note = [recorder = recorder_](OutsideEvent event) {
      recorder->note(std::move(event));
    };
    note(StreamBegan{id_, stream});
    Events noted;
    noted.opened = [note, id = id_, stream, opened = std::move(events.opened)] {
      note(StreamOpened{id, stream});
      opened();
    };
    noted.received =
        [note, id = id_, stream, received = std::move(events.received)](std::string bytes) {
          note(StreamReceived{id, stream, bytes});
          received(std::move(bytes));
        };
    noted.written = std::move(events.written);
    noted.closed = [note, id = id_, stream, closed = std::move(events.closed)](absl::Status why) {
      note(StreamClosed{id, stream, why});
      closed(std::move(why));
    };
    return std::make_unique<NotedStream>(recorder_, id_, stream, real_->open(std::move(noted)));
  }

  const std::string& server() const override { return real_->server(); }

 private:
  // Notes a request before it is sent, and so before its response.
  class NotedStream final : public Stream {
   public:
    NotedStream(RecorderPtr recorder,
                ServerId server,
                std::uint64_t stream,
                std::unique_ptr<Stream> real)
        : recorder_(std::move(recorder)),
          server_(server),
          stream_(stream),
          real_(std::move(real)) {}

    ~NotedStream() override {
      real_.reset();  // No callback comes after this, so StreamLeft is the stream's last event.
      recorder_->note(StreamLeft{server_, stream_});
    }

    void send(std::string bytes) override {
      if (auto request = xds::read_request(bytes)) note(*std::move(request));
      real_->send(std::move(bytes));
    }

    void read_next() override { real_->read_next(); }

   private:
    // Each ACK has all names again, so equal ones are left out.
    void note(xds::SeenRequest request) {
      StreamAsked asked{
          server_, stream_, request.type, std::move(request.nonce), request.refused, {}};
      const auto [last, is_first] = names_.try_emplace(request.type);
      if (is_first || last->second != request.names) {
        asked.names = request.names;
        last->second = std::move(request.names);
      }
      recorder_->note(std::move(asked));
    }

    const RecorderPtr recorder_;
    const ServerId server_;
    const std::uint64_t stream_;
    std::unique_ptr<Stream> real_;
    std::map<ResourceType, std::vector<std::string>> names_;  // Of the last request of each type.
  };

  const RecorderPtr recorder_;
  const ServerId id_;
  const std::shared_ptr<AdsTransport> real_;
  std::atomic<std::uint64_t> streams_{0};
};

class RecordingConnector final : public Connector {
 public:
  RecordingConnector(RecorderPtr recorder, std::shared_ptr<Connector> real)
      : recorder_(std::move(recorder)), real_(std::move(real)) {}

  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override {
    const std::uint64_t attempt = attempts_.fetch_add(1, std::memory_order_relaxed);
    recorder_->note(ConnectBegan{attempt, peer_text(peer), peer.holder});
    Events noted;
    noted.connected = [recorder = recorder_, attempt, connected = std::move(events.connected)](
                          ConnectionPtr made) {
      recorder->note(ConnectMade{attempt});
      connected(std::move(made));
    };
    const auto noted_end = [this, attempt](std::function<void(absl::Status)> ended) {
      return [recorder = recorder_, attempt, ended = std::move(ended)](absl::Status why) {
        recorder->note(ConnectEnded{attempt, why});
        ended(std::move(why));
      };
    };
    noted.failed = noted_end(std::move(events.failed));
    noted.closed = noted_end(std::move(events.closed));
    return std::make_unique<NotedAttempt>(
        recorder_, attempt, real_->connect(peer, timeout, std::move(noted)));
  }

  ConnectionPtr with_lanes(const ConnectionPtr& first,
                           std::shared_ptr<const lb::StreamLanes> lanes) override {
    return real_->with_lanes(first, std::move(lanes));
  }

 private:
  class NotedAttempt final : public Attempt {
   public:
    NotedAttempt(RecorderPtr recorder, std::uint64_t attempt, std::unique_ptr<Attempt> real)
        : recorder_(std::move(recorder)), attempt_(attempt), real_(std::move(real)) {}

    ~NotedAttempt() override {
      real_.reset();  // No callback comes after this, so ConnectLeft is the attempt's last event.
      recorder_->note(ConnectLeft{attempt_});
    }

   private:
    const RecorderPtr recorder_;
    const std::uint64_t attempt_;
    std::unique_ptr<Attempt> real_;
  };

  const RecorderPtr recorder_;
  const std::shared_ptr<Connector> real_;
  std::atomic<std::uint64_t> attempts_{0};
};

class RecordingProber final : public HealthProber {
 public:
  RecordingProber(RecorderPtr recorder, std::shared_ptr<HealthProber> real)
      : recorder_(std::move(recorder)), real_(std::move(real)) {}

  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override {
    return std::make_unique<NotedProbe>(
        recorder_, probe_text(target, check), real_->prepare(target, check));
  }

 private:
  class NotedProbe final : public Probe {
   public:
    NotedProbe(RecorderPtr recorder, std::string name, std::unique_ptr<Probe> real)
        : recorder_(std::move(recorder)), name_(std::move(name)), real_(std::move(real)) {}

    void begin(Answer answer) override {
      real_->begin(
          [recorder = recorder_, name = name_, answer = std::move(answer)](ProbeAnswer answered) {
            recorder->note(ProbeAnswered{name, answered.outcome, answered.why, answered.delayed});
            answer(std::move(answered));
          });
    }

   private:
    const RecorderPtr recorder_;
    const std::string name_;
    const std::unique_ptr<Probe> real_;
  };

  const RecorderPtr recorder_;
  const std::shared_ptr<HealthProber> real_;
};

class RecordingLookup final : public NameLookup {
 public:
  RecordingLookup(RecorderPtr recorder, std::shared_ptr<NameLookup> real)
      : recorder_(std::move(recorder)), real_(std::move(real)) {}

  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    auto answer = real_->resolve(name);
    recorder_->note(NameAnswered{name, answer});
    return answer;
  }

 private:
  const RecorderPtr recorder_;
  const std::shared_ptr<NameLookup> real_;
};

// While an endpoint is not connected, every call may ask for it. Equal asks of a policy in a row
// are noted at most once in this time.
constexpr Duration kBetweenAsks = std::chrono::milliseconds(50);

class NotedAsks final : public AskTarget {
 public:
  NotedAsks(RecorderPtr recorder,
            std::string target,
            PolicyPath path,
            std::shared_ptr<const AskTarget> policy)
      : recorder_(std::move(recorder)),
        target_(std::move(target)),
        path_(std::move(path)),
        policy_(std::move(policy)) {}

  void tell(const PickAsk& ask) const override {
    if (is_new(ask)) recorder_->note(PolicyAsked{target_, path_, ask});
    policy_->tell(ask);
  }

 private:
  // Two threads may both find an ask new; a recording may have an ask twice.
  bool is_new(const PickAsk& ask) const {
    const std::size_t hash = absl::HashOf(static_cast<int>(ask.kind), ask.address);
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    const bool is_same = last_.exchange(hash, std::memory_order_relaxed) == hash;
    if (is_same && now - noted_at_.load(std::memory_order_relaxed) < kBetweenAsks.count())
      return false;
    noted_at_.store(now, std::memory_order_relaxed);
    return true;
  }

  const RecorderPtr recorder_;
  const std::string target_;
  const PolicyPath path_;
  const std::shared_ptr<const AskTarget> policy_;
  mutable std::atomic<std::size_t> last_{0};
  mutable std::atomic<std::int64_t> noted_at_{0};
};

class RecordingRelay final : public AskRelay {
 public:
  explicit RecordingRelay(RecorderPtr recorder) : recorder_(std::move(recorder)) {}

  std::shared_ptr<const AskTarget> relay(const std::string& target,
                                         const PolicyPath& path,
                                         std::shared_ptr<const AskTarget> policy) override {
    return std::make_shared<const NotedAsks>(recorder_, target, path, std::move(policy));
  }

 private:
  const RecorderPtr recorder_;
};

}  // namespace

std::string peer_text(const Peer& peer) {
  return absl::StrCat(peer.address.str(), peer.tls == nullptr ? " for " : " as ", peer.authority);
}

Peer named_peer(const std::string& text) {
  std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  parts.resize(3);
  return {.address = Address(std::move(parts[0])), .authority = std::move(parts[2])};
}

std::string probe_text(const HealthProber::Target& target, const HealthCheck& check) {
  const std::string kind = std::visit(
      Overloaded{
          [](const HealthCheck::Grpc& grpc) { return absl::StrCat("grpc ", grpc.service_name); },
          [](const HealthCheck::Http& http) { return absl::StrCat("http ", http.path); },
          [](const HealthCheck::Tcp&) { return std::string("tcp"); }},
      check.probe);
  return absl::StrCat(peer_text(target.peer),
                      " of ",
                      target.cluster.str(),
                      " by ",
                      kind,
                      " every ",
                      check.interval.count());
}

void record_outside(const std::shared_ptr<Recorder>& recorder, Environment& environment) {
  for (ServerId id = 0; id < environment.ads_transports.size(); ++id) {
    auto& transport = environment.ads_transports[id];
    transport = std::make_shared<RecordingTransport>(recorder, id, std::move(transport));
  }
  environment.connector =
      std::make_shared<RecordingConnector>(recorder, std::move(environment.connector));
  if (environment.health_prober != nullptr) {
    environment.health_prober =
        std::make_shared<RecordingProber>(recorder, std::move(environment.health_prober));
  }
  environment.name_lookup =
      std::make_shared<RecordingLookup>(recorder, std::move(environment.name_lookup));
  environment.ask_relay = std::make_shared<RecordingRelay>(recorder);
  environment.recorder = recorder;
}

}  // namespace signalbox::actors
