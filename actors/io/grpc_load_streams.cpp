// SPDX-License-Identifier: Apache-2.0
//
// Threads: watch() and ~Watch run on the caller's thread, everything else on the poller's thread.
// An EndpointStream has a mutex, which is held while its LoadListeners are called, so that ~Watch
// waits for them (S2 of load_streams.hpp). The functions of the options are called after the
// unlock.
#include "actors/io/grpc_load_streams.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/abandoned_channel.hpp"
#include "actors/io/grpc_bytes.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/grpc_poller.hpp"
#include "actors/io/lost_connection.hpp"
#include "lb/pick/load_report.hpp"
#include "lb/subchannel/load_stream_core.hpp"

namespace signalbox::actors {
namespace {

const char kReportMethod[] = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";

using OptionsPtr = std::shared_ptr<const GrpcLoadStreamsOptions>;

Instant now() {
  return std::chrono::steady_clock::now();
}

/// The stream of load reports on one connection, and the LoadListeners that get the reports.
class EndpointStream : public std::enable_shared_from_this<EndpointStream> {
 public:
  EndpointStream(const std::shared_ptr<const GrpcConnection>& connection, OptionsPtr options)
      : options_(std::move(options)),
        address_(connection->address()),
        authority_(connection->authority()),
        is_socket_(connection->is_socket()),
        connection_(connection),
        core_(core_options(*options_, connection->address())) {}

  /// Whether the stream can be forgotten although its connection lives: it has no LoadListener, and
  /// the endpoint has not answered UNIMPLEMENTED (L2 of load_stream_core.hpp).
  bool is_unused() {
    const std::lock_guard lock(mutex_);
    return !core_.is_watched() && !core_.is_refused();
  }

  /// Returns the listener's number, for remove().
  std::uint64_t add(Duration period, LoadListenerPtr listener) {
    std::uint64_t number = 0;
    step([&] {
      number = ++last_listener_;
      listeners_.emplace(number, std::move(listener));
      return LoadStreamEvent{LoadWatched{number, period}};
    });
    return number;
  }

  void remove(std::uint64_t number) {
    LoadListenerPtr removed;  // Destroyed after the unlock.
    step([&] {
      const auto found = listeners_.find(number);
      removed = std::move(found->second);
      listeners_.erase(found);
      return LoadStreamEvent{LoadUnwatched{number}};
    });
  }

 private:
  // One call of the stream. Its operations run one after another, and the end of the last operation
  // destroys the Call.
  class Call final : public GrpcPoller::Tag {
   public:
    Call(std::shared_ptr<EndpointStream> owner,
         std::uint64_t number,
         std::shared_ptr<grpc::Channel> channel,
         const std::string& authority)
        : number_(number), owner_(std::move(owner)), channel_(std::move(channel)) {
      context_.set_authority(authority);
      stream_ =
          grpc::GenericStub(channel_).PrepareCall(&context_, kReportMethod, &interest_.queue());
    }

    void start(Duration period) {
      request_ = lb::load_report_request(period);
      stream_->StartCall(this);
    }

    void cancel() { context_.TryCancel(); }

    std::uint64_t number() const { return number_; }

    void done(bool ok) override {
      if (step_ == Step::kFinish) return finished();
      if (!ok) {
        step_ = Step::kFinish;
        stream_->Finish(&status_, this);
      } else if (step_ == Step::kStart) {
        step_ = Step::kWrite;
        stream_->WriteLast(to_buffer(request_), grpc::WriteOptions(), this);
      } else {
        if (step_ == Step::kRead) owner_->reported(number_, report_);
        step_ = Step::kRead;
        stream_->Read(&report_, this);
      }
    }

   private:
    enum class Step : std::uint8_t { kStart, kWrite, kRead, kFinish };

    // The call has ended: reports this to the stream, and destroys the Call. After a GOAWAY the
    // connection is lost, too. The end of a call on a breaking connection may leave the channel
    // connecting again; the channel is then abandoned (G7 of grpc_connector.hpp).
    void finished() {
      std::shared_ptr<grpc::Channel> channel = channel_;
      const bool may_connect = !owner_->is_socket_;
      {
        const std::unique_ptr<Call> self(this);
        const auto connection = owner_->connection_.lock();
        if (connection != nullptr && status_.error_code() == grpc::StatusCode::UNAVAILABLE)
          find_reach(context_, connection, /*was_taken=*/true, [](Reach /*reach*/) {});
        owner_->closed(number_, static_cast<absl::StatusCode>(status_.error_code()));
      }
      if (may_connect && channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_CONNECTING)
        abandon(std::move(channel));
    }

    // Keeps the poller running for the call, which may outlive the runtime for a moment.
    const GrpcPoller::Interest interest_;
    const std::uint64_t number_;
    const std::shared_ptr<EndpointStream> owner_;
    const std::shared_ptr<grpc::Channel> channel_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
    Step step_ = Step::kStart;
    std::string request_;
    grpc::ByteBuffer report_;
    grpc::Status status_;
  };

  struct Timer final : GrpcPoller::Tag {
    const GrpcPoller::Interest interest;
    std::shared_ptr<EndpointStream> owner;
    std::uint64_t number = 0;
    grpc::Alarm alarm;

    void done(bool /*ok*/) override {
      const std::unique_ptr<Timer> self(this);
      owner->timer_over(*this);
    }
  };

  static lb::LoadStreamOptions core_options(const GrpcLoadStreamsOptions& options,
                                            const Address& address) {
    lb::LoadStreamOptions core;
    core.seed = options.seed ^ std::hash<std::string>()(address.str());
    return core;
  }

  void reported(std::uint64_t number, const grpc::ByteBuffer& bytes) {
    const bool is_short = bytes.Length() <= lb::ReceivedLoadReport::kMostBytes;
    const std::string copy = is_short ? to_bytes(bytes) : std::string();
    LoadReportResult result = LoadReportResult::kRefused;
    step([&] {
      const lb::ReceivedLoadReport received(copy);
      if (is_short) result = received.result();
      if (call_ != nullptr && call_->number() == number && is_short &&
          received.report() != nullptr) {
        for (const auto& [key, listener] : listeners_)
          listener->reported(*received.report(), now());
      }
      return LoadStreamEvent{LoadReported{number}};
    });
    options_->count_report(result);
  }

  void closed(std::uint64_t number, absl::StatusCode code) {
    step([&] {
      if (call_ != nullptr && call_->number() == number) call_ = nullptr;
      return LoadStreamEvent{LoadStreamClosed{number, code}};
    });
  }

  void timer_over(const Timer& timer) {
    step([&] {
      if (timer_ == &timer) timer_ = nullptr;
      return LoadStreamEvent{LoadRetryDue{timer.number}};
    });
  }

  // Calls `change` under the lock, passes the event that `change` returns to the core, and runs the
  // core's effects.
  template <typename Change>
  void step(Change change) {
    std::vector<LoadStreamEnd> ends;
    {
      const std::lock_guard lock(mutex_);
      run(core_.step(change(), now()), ends);
    }
    for (const LoadStreamEnd how : ends)
      options_->stream_ended(address_, how);
  }

  void run(const LoadStreamEffects& effects, std::vector<LoadStreamEnd>& ends) {
    for (const LoadStreamEffect& effect : effects) {
      if (const auto* const note = std::get_if<NoteLoadStreamEnd>(&effect)) {
        ends.push_back(note->how);
      } else {
        std::visit([this](const auto& order) { run(order); }, effect);
      }
    }
  }

  void run(const OpenLoadStream& order) {
    const auto connection = connection_.lock();
    if (connection == nullptr || !connection->is_ready()) {
      core_.step(LoadStreamEvent{LoadConnectionLost{}}, now());  // Nothing was open to close.
      return;
    }
    call_ = new Call(shared_from_this(), order.stream, connection->channel(), authority_);
    call_->start(order.period);
  }

  // The call ends later. The call's number is old then, so LoadStreamCore ignores the call's end
  // (L4 of load_stream_core.hpp).
  void run(const CloseLoadStream& /*order*/) {
    if (call_ != nullptr) std::exchange(call_, nullptr)->cancel();
  }

  void run(const StartLoadTimer& order) {
    timer_ = new Timer;
    timer_->owner = shared_from_this();
    timer_->number = order.timer;
    timer_->alarm.Set(&timer_->interest.queue(), grpc_deadline(now() + order.delay), timer_);
  }

  void run(const CancelLoadTimer& /*order*/) {
    if (timer_ != nullptr) std::exchange(timer_, nullptr)->alarm.Cancel();
  }

  void run(const NoteLoadStreamEnd& /*order*/) {}

  const OptionsPtr options_;
  const Address address_;
  const std::string authority_;
  const bool is_socket_;
  const std::weak_ptr<const GrpcConnection> connection_;
  std::mutex mutex_;  ///< Guards the members below.
  lb::LoadStreamCore core_;
  std::map<std::uint64_t, LoadListenerPtr> listeners_;
  std::uint64_t last_listener_ = 0;
  Call* call_ = nullptr;    ///< The open stream; owns itself.
  Timer* timer_ = nullptr;  ///< The timer in use; owns itself.
};

using EndpointStreamPtr = std::shared_ptr<EndpointStream>;

class GrpcWatch final : public LoadStreams::Watch {
 public:
  GrpcWatch(EndpointStreamPtr stream, Duration period, LoadListenerPtr listener)
      : stream_(std::move(stream)), number_(stream_->add(period, std::move(listener))) {}

  ~GrpcWatch() override { stream_->remove(number_); }

 private:
  const EndpointStreamPtr stream_;
  const std::uint64_t number_;
};

class GrpcLoadStreams final : public LoadStreams {
 public:
  explicit GrpcLoadStreams(GrpcLoadStreamsOptions options)
      : options_(std::make_shared<const GrpcLoadStreamsOptions>(std::move(options))) {}

  std::unique_ptr<Watch> watch(const ConnectionPtr& connection,
                               Duration period,
                               LoadListenerPtr listener) override {
    // The lock is held until the stream has its listener, so that clean_up() does not take the
    // stream for unused (S1 of load_streams.hpp).
    const std::lock_guard lock(mutex_);
    return std::make_unique<GrpcWatch>(stream_of(connection), period, std::move(listener));
  }

 private:
  struct Entry {
    std::weak_ptr<const Connection> connection;
    EndpointStreamPtr stream;
  };

  // Precondition of stream_of() and clean_up(): mutex_ is held.
  EndpointStreamPtr stream_of(const ConnectionPtr& connection) {
    if (streams_.size() >= next_clean_up_) clean_up();
    Entry& entry = streams_[connection.get()];
    // The entry may be of an earlier connection, which had the same address in memory.
    if (entry.stream == nullptr || entry.connection.expired()) {
      entry = {connection,
               std::make_shared<EndpointStream>(
                   std::static_pointer_cast<const GrpcConnection>(connection), options_)};
    }
    return entry.stream;
  }

  // Forgets the streams of connections that were destroyed, and those that is_unused(). Costs O(1)
  // for each connection, because it runs only when the number of streams has doubled.
  void clean_up() {
    std::erase_if(streams_, [](const auto& known) {
      return known.second.connection.expired() || known.second.stream->is_unused();
    });
    next_clean_up_ = std::max(kFirstCleanUp, 2 * streams_.size());
  }

  static constexpr std::size_t kFirstCleanUp = 64;

  const OptionsPtr options_;
  std::mutex mutex_;  ///< Guards the members below.
  std::map<const Connection*, Entry> streams_;
  std::size_t next_clean_up_ = kFirstCleanUp;
};

}  // namespace

std::shared_ptr<LoadStreams> make_grpc_load_streams(GrpcLoadStreamsOptions options) {
  return std::make_shared<GrpcLoadStreams>(std::move(options));
}

}  // namespace signalbox::actors
