// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/link.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "xds/client/backoff.hpp"

namespace signalbox::fleet {
namespace {

// connection-backoff.md: MIN_CONNECT_TIMEOUT.
constexpr Duration kPatience = std::chrono::seconds(20);

AdsStreamClosed closed(std::uint64_t stream) {
  return {stream, absl::UnavailableError("the connection failed")};
}

class OurLink final : public Link {
 public:
  explicit OurLink(LinkPorts ports)
      : ports_(std::move(ports)),
        connection_(ports_.clock,
                    ports_.network,
                    ports_.client,
                    {[this] { ports_.session(AdsStreamOpened{stream_}); },
                     [this] { ports_.session(closed(stream_)); },
                     [this] { ports_.session(closed(stream_)); }}) {}

  void open(std::uint64_t stream) override {
    stream_ = stream;
    connection_.dial(kPatience);
  }

  void close(std::uint64_t /*stream*/) override { connection_.hang_up(); }

  void send(std::uint64_t /*stream*/, std::string bytes) override {
    connection_.send(std::move(bytes));
  }

  void accepted(std::uint64_t connection) override { connection_.accepted(connection); }

  void ended(std::uint64_t connection) override { connection_.ended(connection); }

  void received(std::uint64_t connection, std::string bytes) override {
    if (connection_.is_current(connection))
      ports_.session(AdsBytesReceived{stream_, std::move(bytes)});
  }

 private:
  LinkPorts ports_;
  Connection connection_;
  std::uint64_t stream_ = 0;
};

// The waits of connection-backoff.md.
class Waits {
 public:
  Waits(std::uint64_t seed, bool first_is_exact)
      : backoff_({}, seed), first_is_exact_(first_is_exact) {}

  Duration next() {
    const Duration wait = backoff_.next();
    return std::exchange(is_first_, false) && first_is_exact_ ? BackoffOptions{}.initial : wait;
  }

  void reset() {
    backoff_.reset();
    is_first_ = true;
  }

 private:
  xds::Backoff backoff_;
  bool first_is_exact_;
  bool is_first_ = true;
};

class GrpcLink final : public Link {
 public:
  GrpcLink(GrpcRules rules, LinkPorts ports)
      : rules_(rules),
        ports_(std::move(ports)),
        connection_(ports_.clock,
                    ports_.network,
                    ports_.client,
                    {[this] { made(); }, [this] { failed(); }, [this] { lost(); }}),
        stream_waits_(ports_.seed, rules.first_wait_is_exact),
        channel_waits_(~ports_.seed, rules.first_wait_is_exact) {}

  void open(std::uint64_t stream) override {
    Duration wait = Duration::zero();
    if (answered_) stream_waits_.reset();
    const bool is_first = stream_ == 0;
    if (!is_first && (!answered_ || rules_.waits_after_answered)) wait = stream_waits_.next();
    stream_ = stream;
    answered_ = false;
    ports_.clock.after_exactly(wait, [this, stream] { begin(stream); });
  }

  // The channel stays connected.
  void close(std::uint64_t /*stream*/) override { is_begun_ = false; }

  void send(std::uint64_t /*stream*/, std::string bytes) override {
    connection_.send(std::move(bytes));
  }

  void accepted(std::uint64_t connection) override { connection_.accepted(connection); }

  void ended(std::uint64_t connection) override { connection_.ended(connection); }

  void received(std::uint64_t connection, std::string bytes) override {
    if (!is_begun_ || !connection_.is_current(connection)) return;
    answered_ = true;
    ports_.session(AdsBytesReceived{stream_, std::move(bytes)});
  }

 private:
  // The stream's wait is over.
  void begin(std::uint64_t stream) {
    if (stream != stream_) return;
    is_begun_ = true;
    if (connection_.is_made()) return ports_.session(AdsStreamOpened{stream_});
    if (is_failing_ && !rules_.waits_for_ready) return end();
    if (!is_failing_ && !connection_.is_dialing()) attempt();
  }

  void end() {
    is_begun_ = false;
    ports_.session(closed(stream_));
  }

  void attempt() {
    attempted_ = ports_.clock.now();
    wait_ = channel_waits_.next();
    connection_.dial(std::max(kPatience, wait_));
  }

  void made() {
    is_failing_ = false;
    channel_waits_.reset();
    if (is_begun_) ports_.session(AdsStreamOpened{stream_});
  }

  // The channel tries again by itself, even without a stream.
  void failed() {
    is_failing_ = true;
    const Duration spent = ports_.clock.now() - attempted_;
    const Duration left =
        rules_.waits_from_start ? std::max(wait_ - spent, Duration::zero()) : wait_;
    ports_.clock.after_exactly(left, [this] { attempt(); });
    if (is_begun_ && !rules_.waits_for_ready) end();
  }

  // The channel is idle: the next stream makes it connect.
  void lost() {
    if (is_begun_) end();
  }

  GrpcRules rules_;
  LinkPorts ports_;
  Connection connection_;
  Waits stream_waits_;
  Waits channel_waits_;
  Instant attempted_;
  Duration wait_{};          // The wait that belongs to the last attempt.
  bool is_failing_ = false;  // The last attempt failed, and none has succeeded since.
  bool is_begun_ = false;    // The stream's wait is over, and the stream has not ended.
  bool answered_ = false;    // The stream has had a response.
  std::uint64_t stream_ = 0;
};

}  // namespace

std::unique_ptr<Link> make_link(Manner manner, LinkPorts ports) {
  if (const auto rules = grpc_rules(manner))
    return std::make_unique<GrpcLink>(*rules, std::move(ports));
  return std::make_unique<OurLink>(std::move(ports));
}

}  // namespace signalbox::fleet
