// SPDX-License-Identifier: Apache-2.0
#include "actors/io/grpc_ads_transport.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/abandoned_channel.hpp"
#include "actors/io/connection_security.hpp"
#include "actors/io/grpc_bytes.hpp"
#include "actors/io/grpc_poller.hpp"
#include "xds/server_uri.hpp"

namespace signalbox::actors {
namespace {

using Clock = std::chrono::steady_clock;

// The status text with which a server of gRPC's C core ends its streams when it gets too many
// pings. The text of the server's GOAWAY, too_many_pings, comes in no status message.
const char kTooManyPings[] = "Too many pings";

// The beginning of gRPC 1.51's text for a connection that was not made.
const char kNotConnected[] = "failed to connect to all addresses";

// The ping interval for the next stream of a transport, which a complaint of the server doubles.
// gRPC itself would double it only for one channel, and here each stream has a new channel.
class KeepaliveTime {
 public:
  explicit KeepaliveTime(std::chrono::milliseconds time)
      : milliseconds_(static_cast<int>(std::min<std::int64_t>(time.count(), kLongest))) {}

  int milliseconds() const { return milliseconds_; }

  // Doubles the interval, up to kLongest, after a server's complaint of too many pings. `pinged` is
  // the interval of the stream that got the complaint. If the interval is longer than `pinged` by
  // now, nothing changes: another stream's complaint has doubled it.
  void double_of(int pinged) {
    milliseconds_.compare_exchange_strong(pinged, std::min(pinged, kLongest / 2) * 2);
  }

 private:
  static constexpr int kLongest = 1 << 30;
  std::atomic<int> milliseconds_;
};

grpc::ChannelArguments arguments_of(const GrpcAdsOptions& options, int keepalive) {
  grpc::ChannelArguments arguments = options.arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(options.keepalive_timeout.count()));
  // A stream is silent while nothing changes. By default gRPC would stop pinging then.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  return arguments;
}

// The status that Events::closed gets (T4 of ads_transport.hpp). gRPC uses RESOURCE_EXHAUSTED for a
// message that is too long for this client, and also for a server's lack of resources, which
// becomes UNAVAILABLE here.
absl::Status status_of(const grpc::Status& status,
                       int max_message_bytes,
                       const ConnectionSecurity& security,
                       absl::string_view verdict) {
  if (absl::StrContains(status.error_message(), kNotConnected))
    return absl::UnavailableError(with_question(status.error_message(), security, verdict));
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED)
    return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
  if (absl::StrContains(status.error_message(), "Received message larger than max")) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the server's message must not be longer than ",
                     max_message_bytes,
                     " bytes (limit max_message_bytes): have the server send less, or raise "
                     "RuntimeOptions::limits.max_message_bytes; gRPC says: ",
                     status.error_message()));
  }
  return absl::UnavailableError(status.error_message());
}

// One stream. Its StreamHandle, the Tag of each started operation and a callback of explain() own
// the Call together; the last owner destroys it.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(const GrpcAdsOptions& options,
       std::shared_ptr<KeepaliveTime> keepalive,
       AdsTransport::Events events)
      : keepalive_(std::move(keepalive)),
        pinged_(keepalive_->milliseconds()),
        method_(options.method),
        max_message_bytes_(options.max_message_bytes),
        security_(options.security),
        events_(std::move(events)) {
    const auto credentials = options.credentials();
    if (!credentials.ok()) {
      refusal_ = credentials.status();
      return;
    }
    const auto connect = [target = xds::dial_target(options.server_uri),
                          arguments = arguments_of(options, pinged_)](const auto& with) {
      return grpc::CreateCustomChannel(target, with, arguments);
    };
    channel_ = connect(credentials->grpc);
    stub_.emplace(channel_);
    if (credentials->explaining != nullptr)
      explaining_ = [connect, with = credentials->explaining] { return connect(with); };
  }

  ~Call() { abandon(channel_); }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void start() {
    const std::lock_guard lock(mutex_);
    // The stream cannot be opened (refusal_). An alarm that is due now reports the stream's end,
    // because `closed` must not run inside open() (T1 of ads_transport.hpp).
    if (!refusal_.ok()) {
      finishing_ = true;
      alarm_.Set(&interest_.queue(), gpr_now(GPR_CLOCK_MONOTONIC), tag(&Call::refused));
      return;
    }
    stream_ = stub_->PrepareCall(&context_, method_, &interest_.queue());
    stream_->StartCall(tag(&Call::started));
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the tag deletes itself in done().
  }

  void send(std::string bytes) {
    const std::lock_guard lock(mutex_);
    if (finishing_) return;
    to_write_.push_back(std::move(bytes));
    write_next();
  }

  // If a message has arrived already, it waits in incoming_ and is passed on now. Otherwise the
  // next message is passed on when it arrives (T5 of ads_transport.hpp).
  void read_next() {
    const std::lock_guard lock(mutex_);
    is_wanted_ = true;
    if (std::exchange(has_unread_, false)) hand_over();
  }

  // Ends the stream. No callback runs after forget(), because callbacks run under the mutex and
  // only while events_ is set.
  void forget() {
    const std::lock_guard lock(mutex_);
    events_.reset();
    end();
  }

  // Cancels the call. Returns the time of its first cancellation: forget() may have cancelled it.
  Clock::time_point cancel() {
    const std::lock_guard lock(mutex_);
    end();
    return *cancelled_at_;
  }

 private:
  // The tag of one operation of the stream. It keeps the Call alive until the operation is over.
  class Tag final : public GrpcPoller::Tag {
   public:
    Tag(std::shared_ptr<Call> call, void (Call::*to)(bool)) : call_(std::move(call)), to_(to) {}

    void done(bool ok) override {
      const std::unique_ptr<Tag> self(this);
      ((*call_).*to_)(ok);
    }

   private:
    std::shared_ptr<Call> call_;
    void (Call::*to_)(bool);
  };

  // Makes the tag of an operation. The tag deletes itself when the operation has ended.
  GrpcPoller::Tag* tag(void (Call::*to)(bool)) {
    return std::make_unique<Tag>(shared_from_this(), to).release();
  }

  void started(bool ok) {
    const std::lock_guard lock(mutex_);
    if (!ok) return finish();
    writable_ = true;
    if (events_) events_->opened();
    start_read();
    write_next();
  }

  void read(bool ok) {
    const std::lock_guard lock(mutex_);
    if (!ok) return finish();
    if (is_wanted_ || is_ending_) return hand_over();
    has_unread_ = true;
  }

  // If a write fails, the stream is broken. The pending read or the next read then fails, too, and
  // reports the end of the stream, so this function does nothing.
  void wrote(bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) return;
    if (events_ && events_->written) events_->written();
    write_next();
  }

  void finished(bool /*ok*/) {
    const std::lock_guard lock(mutex_);
    if (absl::StrContains(status_.error_message(), kTooManyPings)) keepalive_->double_of(pinged_);
    if (events_ && explaining_ && is_certificate_refused(status_.error_message())) return explain();
    close("");
  }

  // Has a second connection find out why the server's certificate was refused.
  void explain() {
    explain_refusal(explaining_(), [self = shared_from_this()](const std::string& verdict) {
      const std::lock_guard lock(self->mutex_);
      self->close(verdict);
    });
  }

  void close(absl::string_view verdict) {
    if (events_) events_->closed(status_of(status_, max_message_bytes_, security_, verdict));
  }

  void refused(bool /*ok*/) {
    const std::lock_guard lock(mutex_);
    if (events_) events_->closed(refusal_);
  }

  void start_read() { stream_->Read(&incoming_, tag(&Call::read)); }

  void hand_over() {
    is_wanted_ = false;
    if (events_ && !is_ending_) events_->received(to_bytes(incoming_));
    start_read();
  }

  // Ends the call. Only a pending operation reports the end, so this starts a read if none pends.
  void end() {
    is_ending_ = true;
    if (!cancelled_at_) cancelled_at_ = Clock::now();
    context_.TryCancel();
    if (std::exchange(has_unread_, false)) start_read();
  }

  void write_next() {
    if (!writable_ || writing_ || finishing_ || to_write_.empty()) return;
    writing_ = true;
    stream_->Write(to_buffer(to_write_.front()), tag(&Call::wrote));
    to_write_.pop_front();
  }

  void finish() {
    finishing_ = true;
    stream_->Finish(&status_, tag(&Call::finished));
  }

  const GrpcPoller::Interest interest_;  // Keeps the poller running while the call lives.
  const std::shared_ptr<KeepaliveTime> keepalive_;
  const int pinged_;
  const char* const method_;
  const int max_message_bytes_;
  const ConnectionSecurity security_;
  absl::Status refusal_;  // The error if no credentials could be made: there is no channel then.

  std::mutex mutex_;
  std::optional<AdsTransport::Events> events_;
  grpc::Alarm alarm_;
  std::shared_ptr<grpc::Channel> channel_;
  /// Makes the channel of a second connection, which finds out why the server's certificate was
  /// refused (connection_credentials). Empty: a refusal is not explained.
  std::function<std::shared_ptr<grpc::Channel>()> explaining_;
  std::optional<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;
  grpc::Status status_;
  std::deque<std::string> to_write_;
  bool writable_ = false;
  bool writing_ = false;
  bool finishing_ = false;
  bool is_wanted_ = true;  // The next message may be passed on: read_next() permitted it.
  bool has_unread_ = false;
  bool is_ending_ = false;
  std::optional<Clock::time_point> cancelled_at_;
};

class StreamHandle final : public AdsTransport::Stream {
 public:
  explicit StreamHandle(std::shared_ptr<Call> call) : call_(std::move(call)) {}

  ~StreamHandle() override { call_->forget(); }

  void send(std::string bytes) override { call_->send(std::move(bytes)); }

  void read_next() override { call_->read_next(); }

 private:
  std::shared_ptr<Call> call_;
};

// The calls of a transport that have not ended. The calls share this list, so it may outlive the
// transport.
class OpenCalls {
 public:
  void add(Call* call) {
    const std::lock_guard lock(mutex_);
    calls_.insert(call);
    ++living_;
  }

  // Takes the call off the list before the call is destroyed, because cancel_all() cancels the
  // listed calls. `living_` counts the call until its destruction is over. So cancel_all() waits
  // until the calls' holds on the poller are gone as well.
  void destroy(Call* call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.erase(call);
    }
    delete call;
    const std::lock_guard lock(mutex_);
    --living_;
    ended_.notify_all();
  }

  // Cancels the calls, and waits until all have ended, but no longer than until `patience` after
  // the last cancellation. A call that was cancelled before keeps the time of its first
  // cancellation. When a runtime ends, it first cancels the calls of all its transports, and then
  // destroys one transport after another. So the patience of all transports runs out at about the
  // same time, and does not add up.
  void cancel_all(std::chrono::milliseconds patience) {
    Clock::time_point last = Clock::now() - patience;
    for (const auto& call : living_calls())
      last = std::max(last, call->cancel());
    std::unique_lock lock(mutex_);
    ended_.wait_until(lock, last + patience, [this] { return living_ == 0; });
  }

 private:
  // The listed calls. Calls that are being destroyed are left out, because they need no
  // cancellation.
  std::vector<std::shared_ptr<Call>> living_calls() {
    std::vector<std::shared_ptr<Call>> living;
    const std::lock_guard lock(mutex_);
    for (Call* listed : calls_) {
      if (auto call = listed->weak_from_this().lock()) living.push_back(std::move(call));
    }
    return living;
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<Call*> calls_;
  std::size_t living_ = 0;
};

class GrpcAdsTransport final : public AdsTransport {
 public:
  explicit GrpcAdsTransport(GrpcAdsOptions options)
      : options_(std::move(options)),
        keepalive_(std::make_shared<KeepaliveTime>(options_.keepalive_time)) {}

  // A cancelled call ends at once, unless a write is in progress: gRPC ends such a call after the
  // write. If the server reads nothing, the write lasts until the kernel gives the connection up
  // after the keepalive timeout (TCP_USER_TIMEOUT). Such calls end later by themselves.
  ~GrpcAdsTransport() override { calls_->cancel_all(kMostWaitForCalls); }

  std::unique_ptr<Stream> open(Events events) override {
    // The deleter runs when the last operation of the call has ended and the Stream is destroyed.
    std::shared_ptr<Call> call(new Call(options_, keepalive_, std::move(events)),
                               [calls = calls_](Call* ended) { calls->destroy(ended); });
    calls_->add(call.get());
    call->start();
    interest_.hurry();
    return std::make_unique<StreamHandle>(std::move(call));
  }

  const std::string& server() const override { return options_.server_uri; }

 private:
  const GrpcAdsOptions options_;
  const std::shared_ptr<KeepaliveTime> keepalive_;
  const GrpcPoller::Interest interest_;
  const std::shared_ptr<OpenCalls> calls_ = std::make_shared<OpenCalls>();
};

}  // namespace

std::shared_ptr<AdsTransport> make_grpc_ads_transport(GrpcAdsOptions options) {
  return std::make_shared<GrpcAdsTransport>(std::move(options));
}

}  // namespace signalbox::actors
