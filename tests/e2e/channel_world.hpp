// SPDX-License-Identifier: Apache-2.0
//
// ChannelWorld — a drop-in channel without a runtime: the test itself publishes the pickers. They
// lead to real connections to real servers.

#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/io/grpc_connector.hpp"
#include "channel/grpc/grpc_channel.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/scripted_picker.hpp"

namespace signalbox::test {

using namespace std::chrono_literals;

using testing::ScriptedPicker;

/// Sends all calls to one cluster.
class OneRoute final : public lb::ConfigSelector {
 public:
  OneRoute(lb::ClusterRefPtr cluster,
           std::optional<Duration> timeout,
           const lb::RetryRules& retry,
           lb::FilterChainPtr filters = nullptr)
      : cluster_(std::move(cluster)),
        timeout_(timeout),
        retry_(retry),
        filters_(std::move(filters)) {}

  std::variant<lb::Selection, absl::Status> select(const PickArgs&) const override {
    return lb::Selection{.cluster = cluster_.get(),
                         .timeout = timeout_,
                         .retry = &retry_,
                         .filters = filters_.get()};
  }

 private:
  lb::ClusterRefPtr cluster_;
  std::optional<Duration> timeout_;
  lb::RetryRules retry_;
  lb::FilterChainPtr filters_;
};

class FakeConnectivity final : public channel::ConnectivitySource {
 public:
  ConnectivityState state(bool try_to_connect) override {
    const std::lock_guard lock(mutex_);
    asked_to_connect_ |= try_to_connect;
    return state_;
  }

  void watch(std::weak_ptr<const void> /*owner*/, std::function<void()> changed) override {
    const std::lock_guard lock(mutex_);
    watchers_.push_back(std::move(changed));
  }

  void set(ConnectivityState state) {
    {
      const std::lock_guard lock(mutex_);
      state_ = state;
    }
    tell();
  }

  void tell() {
    std::unique_lock lock(mutex_);
    const auto watchers = watchers_;
    lock.unlock();
    for (const auto& changed : watchers)
      changed();
  }

  bool asked_to_connect() {
    const std::lock_guard lock(mutex_);
    return asked_to_connect_;
  }

 private:
  std::mutex mutex_;
  ConnectivityState state_ = ConnectivityState::kIdle;
  bool asked_to_connect_ = false;
  std::vector<std::function<void()>> watchers_;
};

/// While it lives, gRPC makes the connections of new worlds, whatever the environment says. For
/// tests that set credentials of their own on plaintext calls.
class GrpcConnects {
 public:
  GrpcConnects() {
    if (const char* const before = std::getenv(kName)) before_ = before;
    ::setenv(kName, "false", 1);
  }

  ~GrpcConnects() {
    if (before_) {
      ::setenv(kName, before_->c_str(), 1);
    } else {
      ::unsetenv(kName);
    }
  }

  GrpcConnects(const GrpcConnects&) = delete;
  GrpcConnects& operator=(const GrpcConnects&) = delete;

 private:
  static constexpr char kName[] = "SIGNALBOX_SOCKET_CONNECTIONS";

  std::optional<std::string> before_;
};

class ChannelWorld {
 public:
  explicit ChannelWorld(
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
          interceptors = {},
      std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials(),
      std::string target = "xds:///orders",
      std::shared_ptr<lb::RetryThrottle> throttle = nullptr,
      bool retry_elsewhere = false,
      channel::TracedCall::Tracing tracing = nullptr)
      : credentials_(std::move(credentials)) {
    channel::GrpcChannelOptions options{lb::Router(cell, {target, "node-7"}),
                                        waiting,
                                        connectivity,
                                        counts,
                                        target,
                                        std::move(interceptors),
                                        std::move(throttle)};
    options.retry_elsewhere = retry_elsewhere;
    options.callers = callers;
    options.tracing = std::move(tracing);
    channel = channel::make_grpc_channel(std::move(options));
    stub = Echo::NewStub(channel);
    publish(nullptr);
  }

  ~ChannelWorld() {
    stub = nullptr;
    channel = nullptr;
    publish(nullptr);
    attempts_.clear();
  }

  ChannelWorld(const ChannelWorld&) = delete;
  ChannelWorld& operator=(const ChannelWorld&) = delete;

  /// Connects to the server. A server with a short MAX_CONNECTION_AGE may end the connection before
  /// it is ready, so connect() makes up to 20 attempts.
  ConnectionPtr connect(const Address& address) {
    struct Arrival {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<ConnectionPtr> connection;  // Null: the attempt failed.

      void set(ConnectionPtr value) {
        const std::lock_guard lock(mutex);
        connection = std::move(value);
        changed.notify_all();
      }
    };

    for (int attempt = 0; attempt < 20; ++attempt) {
      auto arrival = std::make_shared<Arrival>();
      attempts_.push_back(connector_.connect(
          {address},
          10s,
          {[arrival](ConnectionPtr connection) { arrival->set(std::move(connection)); },
           [arrival](const absl::Status&) { arrival->set(nullptr); },
           nullptr}));
      std::unique_lock lock(arrival->mutex);
      REQUIRE(
          arrival->changed.wait_for(lock, 60s, [&] { return arrival->connection.has_value(); }));
      if (*arrival->connection != nullptr) return *std::exchange(arrival->connection, nullptr);
    }
    FAIL("no connection to " << address);
    return nullptr;
  }

  /// Puts a picker in the snapshot cell, and returns the old snapshot. Calls may still read the old
  /// snapshot until SnapshotCell::wait_for_readers() returns. With a null `script` there is no
  /// configuration, so calls wait.
  std::unique_ptr<const lb::Snapshot> exchange(ScriptedPicker::Script script) {
    auto snapshot = std::make_unique<lb::Snapshot>();
    if (script != nullptr) {
      snapshot->selector = std::make_shared<OneRoute>(cluster, timeout, retry, filters);
      snapshot->picker = std::make_shared<ScriptedPicker>(std::move(script));
    }
    const std::lock_guard lock(publishing_);
    snapshot->sequence = ++sequence_;
    return cell->exchange(std::move(snapshot));
  }

  /// Does what a runtime does to publish: puts the new snapshot in the cell, destroys the old one
  /// after its readers, and wakes waiting calls. Unlike a runtime it waits for the readers.
  void publish(ScriptedPicker::Script script) {
    auto old = exchange(std::move(script));
    lb::SnapshotCell::wait_for_readers();
    old = nullptr;
    waiting->publish();
  }

  void publish_queue() {
    publish([](const PickArgs&) { return PickResult{}; });
  }

  void publish_failure(absl::Status status) {
    publish([status = std::move(status)](const PickArgs&) {
      PickResult result;
      result.outcome = Fail{status};
      return result;
    });
  }

  /// A picker that picks the connections in turn.
  static ScriptedPicker::Script ready(std::vector<ConnectionPtr> connections) {
    return [connections = std::move(connections),
            next = std::make_shared<std::atomic<std::size_t>>(0)](const PickArgs&) {
      PickResult result;
      result.outcome = Complete{connections[next->fetch_add(1) % connections.size()].get()};
      return result;
    };
  }

  void publish_ready(std::vector<ConnectionPtr> connections) {
    publish(ready(std::move(connections)));
  }

  /// Returns when `calls` calls wait.
  void wait_for_queue(std::size_t calls) const {
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (waiting->size() != calls && std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    REQUIRE(waiting->size() == calls);
  }

  /// Returns when no call uses the cluster.
  void wait_for_no_uses() const {
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (cluster->in_use() && std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    CHECK_FALSE(cluster->in_use());
  }

  std::shared_ptr<lb::SnapshotCell> cell = std::make_shared<lb::SnapshotCell>();
  std::shared_ptr<channel::WaitList> waiting = std::make_shared<channel::WaitList>();
  std::shared_ptr<FakeConnectivity> connectivity = std::make_shared<FakeConnectivity>();
  std::shared_ptr<const channel::ChannelCounts> counts = std::make_shared<channel::ChannelCounts>();
  std::shared_ptr<const CallStats> stats = std::make_shared<CallStats>();
  std::shared_ptr<const CallerStats> callers = std::make_shared<const CallerStats>();
  lb::ClusterRefPtr cluster = std::make_shared<lb::ClusterRef>(ClusterName("orders"), stats);
  std::optional<Duration> timeout;
  lb::FilterChainPtr filters;  ///< The filters of snapshots published from now on.
  lb::RetryRules retry;
  std::shared_ptr<grpc::ChannelInterface> channel;
  std::unique_ptr<Echo::Stub> stub;

 private:
  // Retired connections live until the end of the test. In a program the runtime destroys them.
  actors::GrpcConnectorOptions connector_options() {
    actors::GrpcConnectorOptions options;
    options.credentials = credentials_;
    options.sockets = actors::environment_allows_sockets();
    options.arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    options.retire = [this](std::unique_ptr<const Tracked> tracked) {
      const std::lock_guard lock(retiring_);
      retired_.push_back(std::move(tracked));
    };
    return options;
  }

  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::mutex publishing_;
  std::uint64_t sequence_ = 0;
  std::mutex retiring_;
  std::vector<std::unique_ptr<const Tracked>> retired_;
  actors::GrpcConnector connector_{connector_options()};
  std::vector<std::unique_ptr<actors::Connector::Attempt>> attempts_;
};

/// Stops the server and waits until gRPC has noticed. The published snapshot still has the dead
/// connection.
inline void kill(EchoServer& server, const ConnectionPtr& connection) {
  server.stop();
  const auto is_ready = [&] {
    return static_cast<const actors::GrpcConnection&>(*connection).is_ready();
  };
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (is_ready() && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  REQUIRE_FALSE(is_ready());
}

/// Calls `publish` on a thread as soon as a call waits, at the latest in the destructor: some calls
/// end without waiting.
class LatePublisher {
 public:
  LatePublisher(ChannelWorld& world, std::function<void()> publish)
      : thread_([this, &world, publish = std::move(publish)] {
          while (world.waiting->size() == 0 && !ending_)
            std::this_thread::yield();
          publish();
        }) {}

  ~LatePublisher() {
    ending_ = true;
    thread_.join();
  }

  LatePublisher(const LatePublisher&) = delete;
  LatePublisher& operator=(const LatePublisher&) = delete;

 private:
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

/// How the calls of race_calls() ended.
struct RaceEnds {
  std::atomic<int> ok{0};
  std::atomic<int> expected{0};  ///< Ended by deadline or cancellation.
  /// The last call that ended otherwise: 100 × its kind (0: with a deadline, 1: cancelled, 2 to 7:
  /// neither) + its status code. 0: there was no such call.
  std::atomic<int> wrong{0};
};

/// Makes `calls_of_each` calls on each of four threads, and waits for their ends. About one call in
/// eight has a deadline of two milliseconds at most. About one in eight is cancelled meanwhile.
inline void race_calls(Echo::Stub& stub, int calls_of_each, RaceEnds& ends) {
  constexpr unsigned kCallers = 4;
  std::vector<std::thread> callers;
  callers.reserve(kCallers);
  for (unsigned thread = 0; thread < kCallers; ++thread) {
    callers.emplace_back([&, thread] {
      std::minstd_rand random(thread + 1);
      for (int i = 0; i < calls_of_each; ++i) {
        grpc::ClientContext context;
        EchoReply reply;
        const auto kind = random() % 8;
        if (kind == 0) {
          context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::microseconds(random() % 2'000));
        }
        std::thread canceller;
        if (kind == 1) canceller = std::thread([&context] { context.TryCancel(); });
        const auto code = stub.Unary(&context, {}, &reply).error_code();
        if (canceller.joinable()) canceller.join();
        if (code == grpc::StatusCode::OK) {
          ++ends.ok;
        } else if ((kind == 0 && code == grpc::StatusCode::DEADLINE_EXCEEDED) ||
                   (kind == 1 && code == grpc::StatusCode::CANCELLED)) {
          ++ends.expected;
        } else {
          ends.wrong = static_cast<int>(100 * kind + code);
        }
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
}

/// Three APIs by which an application can make a unary call.
enum class Api { kSync, kAsync, kCallback };

inline std::string to_string(Api api) {
  return api == Api::kSync ? "sync" : api == Api::kAsync ? "async" : "callback";
}

/// Makes a unary call by `api`, and waits for the call's end.
inline grpc::Status call(Echo::Stub& stub,
                         Api api,
                         grpc::ClientContext& context,
                         const EchoRequest& request,
                         EchoReply& reply) {
  if (api == Api::kSync) return stub.Unary(&context, request, &reply);
  grpc::Status status(grpc::StatusCode::UNKNOWN, "the call has not ended");
  if (api == Api::kAsync) {
    grpc::CompletionQueue queue;
    void* tag = nullptr;
    bool ok = false;
    auto reader = stub.AsyncUnary(&context, request, &queue);
    reader->Finish(&reply, &status, &status);
    const auto got = queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + 20s);
    REQUIRE(got == grpc::CompletionQueue::GOT_EVENT);
    CHECK(tag == &status);
    CHECK(ok);
    queue.Shutdown();
    CHECK_FALSE(queue.Next(&tag, &ok));
    return status;
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  stub.async()->Unary(&context, &request, &reply, [&](grpc::Status end) {
    const std::lock_guard lock(mutex);
    status = std::move(end);
    done = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  REQUIRE(changed.wait_for(lock, 20s, [&] { return done; }));
  return status;
}

}  // namespace signalbox::test
