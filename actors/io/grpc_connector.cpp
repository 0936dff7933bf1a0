// SPDX-License-Identifier: Apache-2.0
//
// Threads: connect() and ~Attempt run on the caller's thread and use the pool under its mutex. A
// change of a channel's state arrives in a Watch, on a thread of gRPC's executor. Callbacks are
// called from there, from the poller's thread if there are no credentials (Refusal), or from the
// dialer's thread (Dialing); never under the pool's mutex. A Watch cannot be cancelled while its
// channel lives, and a ClientContext of the program may keep a channel for long. So watches own
// themselves, and reach the pool through a Gate that the connector closes.
#include "actors/io/grpc_connector.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <system_error>
#include <typeinfo>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <grpcpp/alarm.h>

#include "actors/io/abandoned_channel.hpp"
#include "actors/io/connection_security.hpp"
#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_poller.hpp"
#include "actors/io/silent_addresses.hpp"
#include "lb/subchannel/disconnect_reason.hpp"

namespace signalbox::actors {
namespace {

// The connect timeout of a second connection, which only finds out why a certificate was refused.
constexpr Duration kLongestExplanation = std::chrono::seconds(1);

// After so many failures for lack of resources, gRPC makes all connections.
constexpr int kMostSocketTries = 10;

grpc_connectivity_state state_of(grpc_channel* channel, bool connect = false) {
  return grpc_channel_check_connectivity_state(channel, connect ? 1 : 0);
}

// The part of gRPC's error text that says why the connection failed. gRPC's last error ends with
// the address and this reason.
absl::string_view reason_in(absl::string_view message) {
  if (absl::StrContains(message, "Trying to connect an http1.x server"))
    return "the server speaks HTTP/1, not HTTP/2";
  const auto at = message.rfind("last error: ");
  if (at == absl::string_view::npos) return message;
  message.remove_prefix(at + absl::string_view("last error: ").size());
  const auto reason = message.find("Failed to connect");
  return reason == absl::string_view::npos ? message : message.substr(reason);
}

// Owns one attempt's callbacks. The mutex is held while a callback runs, so that ~Attempt waits for
// the callback (C2 of connector.hpp). Recursive, because a callback may destroy its own attempt.
class Listener {
 public:
  Listener(Connector::Events events, Duration timeout)
      : events_(std::move(events)), timeout_(timeout) {}

  /// Starts the time limit. Called once, before any callback.
  void begin() { deadline_ = std::chrono::steady_clock::now() + timeout_; }

  Instant deadline() const { return deadline_; }

  Duration timeout() const { return timeout_; }

  void connected(const ConnectionPtr& connection) {
    const std::lock_guard lock(mutex_);
    if (silent_ || connected_) return;
    connected_ = true;
    // From now on only `closed` may be called. There may be thousands of connections, so the memory
    // of the other callbacks is freed.
    events_.failed = nullptr;
    const auto tell = std::exchange(events_.connected, nullptr);
    if (tell) tell(connection);
  }

  /// Reports the end of the attempt: calls `closed` if `connected` was called before, else
  /// `failed`.
  void ended(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(silent_, true)) return;
    const auto& event = connected_ ? events_.closed : events_.failed;
    if (event) event(status);
  }

  void silence() {
    const std::lock_guard lock(mutex_);
    silent_ = true;
  }

 private:
  std::recursive_mutex mutex_;
  Connector::Events events_;
  const Duration timeout_;
  Instant deadline_;
  bool connected_ = false;
  bool silent_ = false;
};

using ListenerPtr = std::shared_ptr<Listener>;
using Listeners = absl::InlinedVector<ListenerPtr, 1>;

// The connection to one peer, and the attempts that share it (listeners).
//
//   Waiting ─▶ Connecting ─▶ Ready ─▶ gone (erased from the pool)
//      │           ├─────────────────▶ gone      The connection was closed at once.
//      ├───────────┼─▶ Failing ──────▶ gone
//      └───────────┴─▶ Abandoned, and gone       Also from Failing.
//
// Waiting: AttemptTurns does not let it connect yet. Failing: it could not connect, or there are no
// credentials for it, and no listener knows this yet. Abandoned: no attempt wants it any more.
struct Transport {
  enum class Phase { kWaiting, kConnecting, kFailing, kReady, kAbandoned };

  explicit Transport(Peer to) : peer(std::move(to)) {}

  const Address& address() const { return peer.address; }

  const Peer peer;
  Phase phase = Phase::kWaiting;
  /// The channel until it is READY. Then null: the connection owns it.
  std::shared_ptr<grpc::Channel> connecting;
  /// The credentials of a second connection, which finds out why a certificate was refused
  /// (ConnectionCredentials::explaining). Set before the transport connects.
  std::shared_ptr<grpc::ChannelCredentials> explaining;
  ConnectionPtr held;  ///< Keeps the connection while attempts want it; else null.
  std::weak_ptr<const Connection> connection;
  Listeners listeners;
  /// The last dial. 0: there was none, or gRPC connects, because the server was silent.
  SocketDialer::Id dial = 0;
  /// What is known of the server if gRPC's attempt runs out of time; empty: nothing.
  const char* so_far = "";
};

using TransportPtr = std::shared_ptr<Transport>;

constexpr char kSocketVariable[] = "SIGNALBOX_SOCKET_CONNECTIONS";

// Empty: the environment says nothing.
absl::string_view allowed_by_environment() {
  const char* const value = std::getenv(kSocketVariable);
  return value == nullptr ? "" : value;
}

// What is wrong with the environment; empty: nothing.
std::string complaint_about_environment() {
  const absl::string_view value = allowed_by_environment();
  if (value.empty() || value == "true" || value == "false") return "";
  return absl::StrCat(kSocketVariable,
                      "=\"",
                      absl::CHexEscape(value),
                      "\" in the environment has no effect: write \"false\" or \"true\"");
}

// The authority of the peer's channel (Peer::authority).
const std::string& authority_of(const Peer& peer) {
  return peer.authority.empty() ? peer.address.str() : peer.authority;
}

struct PeerOrder {
  using is_transparent = void;

  bool operator()(const TransportPtr& left, const TransportPtr& right) const {
    return (*this)(left->peer, right->peer);
  }

  bool operator()(const TransportPtr& left, const Peer& right) const {
    return (*this)(left->peer, right);
  }

  bool operator()(const Peer& left, const TransportPtr& right) const {
    return (*this)(left, right->peer);
  }

  bool operator()(const Peer& left, const Peer& right) const {
    if (left.address != right.address) return left.address < right.address;
    if (left.authority != right.authority) return left.authority < right.authority;
    if (left.sole_user != right.sole_user) return left.sole_user < right.sole_user;
    if (left.tls == nullptr || right.tls == nullptr)
      return left.tls == nullptr && right.tls != nullptr;
    return *left.tls < *right.tls;
  }
};

using Transports = std::set<TransportPtr, PeerOrder>;

// Holds the channel of a transport that was given up under a lock. An Abandoned is declared before
// the lock, so its destructor calls abandon() for the channel (G7 of grpc_connector.hpp) after the
// unlock.
struct Abandoned {
  Abandoned() = default;
  Abandoned(const Abandoned&) = delete;
  Abandoned& operator=(const Abandoned&) = delete;

  ~Abandoned() { abandon(std::move(channel)); }

  std::shared_ptr<grpc::Channel> channel;
};

}  // namespace

GrpcConnection::GrpcConnection(Address address,
                               std::shared_ptr<grpc::Channel> channel,
                               std::string authority,
                               std::shared_ptr<SocketLine> line,
                               std::optional<std::uint32_t> stream_limit)
    : Connection(std::move(address), stream_limit),
      own_authority_(std::move(authority)),
      c_channel_(GrpcAccess::c_channel(*channel)),
      line_(line.get()),
      lanes_(nullptr),
      authority_(shown_authority()),
      first_(this),
      channel_(std::move(channel)),
      owned_(std::move(line)) {}

GrpcConnection::GrpcConnection(std::shared_ptr<const GrpcConnection> first,
                               std::shared_ptr<const lb::StreamLanes> lanes)
    : Connection(first->address(), first->stream_limit()),
      own_authority_(first->own_authority_),
      c_channel_(first->c_channel_),
      line_(first->line_),
      lanes_(lanes.get()),
      authority_(shown_authority()),
      first_(first->first_),
      channel_(first->channel_),
      owned_(std::make_shared<const std::pair<decltype(first), decltype(lanes)>>(
          std::move(first), std::move(lanes))) {}

// Usually the channel is READY or IDLE by now, and can be destroyed. But a call on a connection
// that was breaking may have made the channel connect again; such a channel must be kept until it
// has left CONNECTING (G7 of grpc_connector.hpp). A channel from a socket never connects.
GrpcConnection::~GrpcConnection() {
  if (lanes_ == nullptr && !is_socket() && state_of(c_channel_) == GRPC_CHANNEL_CONNECTING)
    abandon(channel_);
}

void GrpcConnection::record_vain_wait(Instant begun, Instant now) const {
  const auto milliseconds = [](Instant at) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
  };
  const std::int64_t before = waited_until_.exchange(milliseconds(now), std::memory_order_relaxed);
  const std::int64_t counted_from = std::max<std::int64_t>(milliseconds(begun), before);
  vain_wait_.fetch_add(std::max<std::int64_t>(milliseconds(now) - counted_from, 0),
                       std::memory_order_relaxed);
}

bool GrpcConnection::is_ready() const {
  if (line_ != nullptr) return !line_->has_ended();
  return state_of(c_channel_) == GRPC_CHANNEL_READY;
}

bool environment_allows_sockets() {
  return allowed_by_environment() != "false";
}

class GrpcConnector::Pool {
 public:
  explicit Pool(GrpcConnectorOptions options)
      : options_(std::move(options)), gate_(std::make_shared<Gate>()), turns_(options_.attempts) {
    gate_->pool = this;
    if (!options_.sockets) return;
    if (const std::string complaint = complaint_about_environment();
        !complaint.empty() && options_.no_sockets)
      options_.no_sockets(complaint);
    begin_sockets();
  }

  void close();
  TransportPtr join(const Peer& wanted, const ListenerPtr& listener);
  void leave(const TransportPtr& transport, const ListenerPtr& listener);
  ConnectionPtr owned(const GrpcConnection* made) const;

 private:
  // The gate outlives the pool. Callbacks of gRPC that come later than the pool's end find `pool`
  // null.
  struct Gate {
    std::shared_mutex mutex;
    Pool* pool = nullptr;
  };

  struct Watch;
  struct Nudge;
  struct Refusal;
  struct SocketsRetry;
  class Dialing;

  /// The parts that make connections from sockets.
  struct Sockets {
    SocketChannels channels;
    std::unique_ptr<SocketDialer> dialer;
    std::optional<std::chrono::milliseconds> user_timeout;
    SilentAddresses silent{};
  };

  void begin_sockets();
  absl::StatusOr<Sockets> make_sockets() const;
  bool is_dialed(const Peer& peer) const;
  bool was_silent(const Peer& peer) const;
  void dial(const TransportPtr& transport);
  void limit(const TransportPtr& transport, const ListenerPtr& listener);
  void hand_over(const TransportPtr& transport,
                 SocketDialer::Id dial,
                 Descriptor socket,
                 std::optional<std::uint32_t> stream_limit);
  void is_silent(const TransportPtr& transport);
  void fall_back(const TransportPtr& transport);
  void tell_connected_later(const TransportPtr& transport);
  void begin_due();
  void begin(const TransportPtr& transport);
  void let_grpc_connect(const TransportPtr& transport, const ConnectionCredentials& credentials);
  void finish(const TransportPtr& transport);
  void forget(const TransportPtr& transport);
  void refuse(const TransportPtr& transport, const absl::Status& why);
  absl::StatusOr<ConnectionCredentials> credentials_for(const Peer& peer) const;
  ConnectionSecurity security_to(const Peer& peer) const;
  Peer named(const Peer& peer) const;
  std::shared_ptr<grpc::Channel> make_channel(
      const Peer& peer,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      Duration timeout) const;
  void watch(const TransportPtr& transport,
             const std::shared_ptr<grpc::Channel>& channel,
             const ListenerPtr& listener,
             grpc_connectivity_state last);
  void on_watch(const Watch& watch, bool changed);
  absl::Status closed(const TransportPtr& transport, const char* reason = nullptr);
  void on_connecting(const Watch& watch,
                     const std::shared_ptr<grpc::Channel>& channel,
                     bool changed);
  void become_ready(const TransportPtr& transport,
                    const std::shared_ptr<grpc::Channel>& channel,
                    std::optional<std::uint32_t> stream_limit,
                    const std::shared_ptr<SocketLine>& line = nullptr);
  void probe(const TransportPtr& transport, const std::shared_ptr<grpc::Channel>& channel);
  void explain(const TransportPtr& transport, const absl::Status& failure);
  void fail(const TransportPtr& transport, absl::string_view reason, absl::string_view verdict);
  void tell_connected(const TransportPtr& transport);
  void end(const TransportPtr& transport, const absl::Status& status);
  void time_out(const TransportPtr& transport,
                const ListenerPtr& listener,
                absl::string_view so_far = "");

  const GrpcConnectorOptions options_;
  /// GrpcConnectorOptions::retire, which all connections share.
  const std::shared_ptr<const decltype(options_.retire)> retire_ =
      std::make_shared<const decltype(options_.retire)>(options_.retire);
  const std::string authority_ = default_authority(options_.arguments);
  const GrpcPoller::Interest interest_;
  const std::shared_ptr<Gate> gate_;
  /// The number of failed calls of make_sockets(). Only used by one begin_sockets() at a time.
  int failed_tries_ = 0;
  /// The alarm of the last SocketsRetry; null: there was none. Written by begin_sockets(), and read
  /// by close() once the gate is shut.
  std::shared_ptr<grpc::Alarm> retry_alarm_;
  /// Guards the members below, all transports and Sockets::silent; never held during a callback.
  std::mutex mutex_;
  /// Set once, under mutex_. Unset: gRPC makes all connections. A thread that knows of a dial, and
  /// close(), which has shut the gate, may read it without the mutex.
  std::optional<Sockets> sockets_;
  Transports transports_;
  AttemptTurns<TransportPtr> turns_;
  bool is_nudged_ = false;  ///< A Nudge, the timer that begins waiting attempts, is set.
};

// Asks gRPC to report when the channel has left `last`.
struct GrpcConnector::Pool::Watch : grpc_completion_queue_functor {
  explicit Watch(const GrpcPoller::Hold& to_hold) : hold(to_hold) {}

  const GrpcPoller::Hold hold;
  std::shared_ptr<Gate> gate;
  TransportPtr transport;
  /// The attempt that waits for the change, until its deadline. Null: the wait is for the
  /// connection's end.
  ListenerPtr listener;
  std::weak_ptr<grpc::Channel> channel;
  grpc_connectivity_state last = GRPC_CHANNEL_IDLE;

  static void run(grpc_completion_queue_functor* functor, int changed) {
    const std::unique_ptr<Watch> self(static_cast<Watch*>(functor));
    const std::shared_lock lock(self->gate->mutex);
    if (self->gate->pool != nullptr) self->gate->pool->on_watch(*self, changed != 0);
  }
};

// A timer that begins waiting attempts. An attempt that has run for `slow_after` no longer delays
// them (T1 of attempt_turns.hpp).
struct GrpcConnector::Pool::Nudge : GrpcPoller::Tag {
  // Keeps the poller running until done(), even if the pool has ended.
  const GrpcPoller::Interest interest;
  std::shared_ptr<Gate> gate;
  grpc::Alarm alarm;

  void done(bool /*ok*/) override {
    const std::unique_ptr<Nudge> self(this);
    const std::shared_lock lock(gate->mutex);
    if (gate->pool == nullptr) return;
    const std::lock_guard pool_lock(gate->pool->mutex_);
    gate->pool->is_nudged_ = false;
    gate->pool->begin_due();
  }
};

// Reports, on the poller's thread, an attempt that failed because there are no credentials for it.
// The attempt may have its turn inside connect(), where no callback may run (C1 of connector.hpp).
struct GrpcConnector::Pool::Refusal : GrpcPoller::Tag {
  // Keeps the poller running until done(), even if the pool has ended.
  const GrpcPoller::Interest interest;
  std::shared_ptr<Gate> gate;
  TransportPtr transport;
  absl::Status why;
  grpc::Alarm alarm;

  void done(bool /*ok*/) override {
    const std::unique_ptr<Refusal> self(this);
    const std::shared_lock lock(gate->mutex);
    if (gate->pool != nullptr) gate->pool->end(transport, why);
  }
};

// Tries again to begin with sockets, on the poller's thread. The pool's end cancels the alarm, and
// done() then runs soon.
struct GrpcConnector::Pool::SocketsRetry : GrpcPoller::Tag {
  // Keeps the poller running until done(), even if the pool has ended.
  const GrpcPoller::Interest interest;
  std::shared_ptr<Gate> gate;
  const std::shared_ptr<grpc::Alarm> alarm = std::make_shared<grpc::Alarm>();

  void done(bool /*ok*/) override {
    const std::unique_ptr<SocketsRetry> self(this);
    const std::shared_lock lock(gate->mutex);
    if (gate->pool != nullptr) gate->pool->begin_sockets();
  }
};

// The events of a dial, on the dialer's thread.
class GrpcConnector::Pool::Dialing final : public DialListener {
 public:
  Dialing(std::shared_ptr<Gate> gate, TransportPtr transport)
      : gate_(std::move(gate)), transport_(std::move(transport)) {}

  void speaks(SocketLoop::Id dial,
              Descriptor socket,
              std::optional<std::uint32_t> stream_limit) override {
    const std::shared_lock lock(gate_->mutex);
    if (gate_->pool == nullptr) return;
    gate_->pool->hand_over(transport_, dial, std::move(socket), stream_limit);
  }

  void is_silent() override {
    const std::shared_lock lock(gate_->mutex);
    if (gate_->pool != nullptr) gate_->pool->is_silent(transport_);
  }

  void failed(const std::string& why) override {
    const std::shared_lock lock(gate_->mutex);
    if (gate_->pool != nullptr) gate_->pool->fail(transport_, why, "");
  }

  void ended(bool has_error) override {
    const std::shared_lock lock(gate_->mutex);
    if (gate_->pool == nullptr) return;
    // Only the fact is known: to read the error would take it away from gRPC, and from the calls.
    const char* const reason = has_error ? lb::kSocketError : nullptr;
    gate_->pool->end(transport_, gate_->pool->closed(transport_, reason));
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const TransportPtr transport_;
};

// --- connections from sockets -----------------------------------------------------

void GrpcConnector::Pool::begin_sockets() {
  auto made = make_sockets();
  if (made.ok()) {
    const std::lock_guard lock(mutex_);
    sockets_ = *std::move(made);
    return;
  }
  const std::string why = absl::StrCat("gRPC makes all connections: ", made.status().message());
  if (!absl::IsResourceExhausted(made.status()) || failed_tries_ >= kMostSocketTries) {
    if (options_.no_sockets)
      options_.no_sockets(absl::StrCat("socket_connections has no effect, and ", why));
    return;
  }
  const Duration pause = options_.sockets_again_after * (1 << failed_tries_++);
  if (options_.no_sockets) {
    options_.no_sockets(absl::StrCat("socket_connections has no effect yet, and ",
                                     why,
                                     "; signalbox tries again in ",
                                     std::chrono::ceil<std::chrono::milliseconds>(pause).count(),
                                     " ms (",
                                     failed_tries_,
                                     " of ",
                                     kMostSocketTries,
                                     ")"));
  }
  auto* const retry = new SocketsRetry;
  retry->gate = gate_;
  retry_alarm_ = retry->alarm;
  // The poller's thread may call begin_sockets() at once, so nothing follows.
  retry->alarm->Set(
      &retry->interest.queue(), grpc_deadline(std::chrono::steady_clock::now() + pause), retry);
}

absl::StatusOr<GrpcConnector::Pool::Sockets> GrpcConnector::Pool::make_sockets() const {
  const std::string why = why_grpc_must_connect(options_.arguments);
  if (!why.empty()) return absl::FailedPreconditionError(why);
  const grpc::ChannelArguments arguments = socket_arguments(options_.arguments, options_.keepalive);
  const auto user_timeout = tcp_user_timeout(arguments);
  auto channels = SocketChannels::make(arguments);
  if (!channels.ok()) return channels.status();
  try {
    auto dialer = SocketDialer::start(options_.silence);
    if (!dialer.ok()) return absl::ResourceExhaustedError(dialer.status().message());
    return Sockets{*std::move(channels), *std::move(dialer), user_timeout};
  } catch (const std::system_error& no_thread) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the dialer's thread could not be started: ", no_thread.what()));
  }
}

// Whether a connection to the peer begins with a dial: it is plaintext, and its server is not known
// to wait for the client's preface. Precondition: the mutex is held.
bool GrpcConnector::Pool::is_dialed(const Peer& peer) const {
  if (!sockets_ || peer.tls != nullptr) return false;
  const auto& credentials = options_.credentials;
  if (credentials != nullptr) {
    const auto insecure = grpc::InsecureChannelCredentials();
    const grpc::ChannelCredentials& one = *credentials;
    const grpc::ChannelCredentials& other = *insecure;
    if (typeid(one) != typeid(other)) return false;
  }
  return !was_silent(peer);
}

// Whether the server has sent nothing to a dial of the last minutes. Precondition: the mutex is
// held.
bool GrpcConnector::Pool::was_silent(const Peer& peer) const {
  return sockets_ && peer.tls == nullptr &&
         sockets_->silent.has(peer.address, std::chrono::steady_clock::now());
}

// Precondition: the mutex is held, and all listeners have begun.
void GrpcConnector::Pool::dial(const TransportPtr& transport) {
  transport->dial = sockets_->dialer->dial(
      transport->address(), sockets_->user_timeout, std::make_shared<Dialing>(gate_, transport));
  for (const ListenerPtr& listener : transport->listeners)
    limit(transport, listener);
}

void GrpcConnector::Pool::limit(const TransportPtr& transport, const ListenerPtr& listener) {
  sockets_->dialer->limit(transport->dial,
                          listener->deadline(),
                          [gate = gate_, transport, listener](absl::string_view so_far) {
                            const std::shared_lock lock(gate->mutex);
                            if (gate->pool != nullptr)
                              gate->pool->time_out(transport, listener, so_far);
                          });
}

// The server speaks HTTP/2: gRPC gets the socket. The channel is made without the mutex, because
// that takes long.
void GrpcConnector::Pool::hand_over(const TransportPtr& transport,
                                    SocketDialer::Id dial,
                                    Descriptor socket,
                                    std::optional<std::uint32_t> stream_limit) {
  const auto channel = sockets_->channels.channel(std::move(socket), transport->address());
  if (channel == nullptr) return fall_back(transport);
  interest_.hurry();
  become_ready(transport, channel, stream_limit, sockets_->dialer->line(dial));
}

// The server may wait for the preface, or never say anything: gRPC finds out.
void GrpcConnector::Pool::is_silent(const TransportPtr& transport) {
  {
    const std::lock_guard lock(mutex_);
    transport->so_far = "the server accepted the connection, and sent nothing on it";
    sockets_->silent.add(transport->address(), std::chrono::steady_clock::now());
  }
  fall_back(transport);
}

// gRPC connects in place of the dial.
void GrpcConnector::Pool::fall_back(const TransportPtr& transport) {
  const std::lock_guard lock(mutex_);
  if (transport->phase != Transport::Phase::kConnecting || transport->listeners.empty()) return;
  transport->dial = 0;
  const auto credentials = credentials_for(transport->peer);
  if (credentials.ok()) let_grpc_connect(transport, *credentials);
}

// Reports a connection that exists, after connect() has returned (C1).
void GrpcConnector::Pool::tell_connected_later(const TransportPtr& transport) {
  sockets_->dialer->post([gate = gate_, transport] {
    const std::shared_lock lock(gate->mutex);
    if (gate->pool != nullptr) gate->pool->tell_connected(transport);
  });
}

// --- attempts ---------------------------------------------------------------------

// Begins the attempts that have their turn. Precondition of begin_due(), begin(), refuse() and
// finish(): the mutex is held.
void GrpcConnector::Pool::begin_due() {
  for (const TransportPtr& transport : turns_.begin(std::chrono::steady_clock::now()))
    begin(transport);
  const auto next = turns_.next_turn();
  if (!next.has_value() || std::exchange(is_nudged_, true)) return;
  auto* const nudge = new Nudge;
  nudge->gate = gate_;
  nudge->alarm.Set(&nudge->interest.queue(), grpc_deadline(*next), nudge);
}

void GrpcConnector::Pool::begin(const TransportPtr& transport) {
  const auto credentials = credentials_for(transport->peer);
  if (!credentials.ok()) return refuse(transport, credentials.status());
  transport->phase = Transport::Phase::kConnecting;
  for (const ListenerPtr& listener : transport->listeners)
    listener->begin();
  if (is_dialed(transport->peer)) return dial(transport);
  if (was_silent(transport->peer))
    transport->so_far = "an earlier connection was accepted, and the server sent nothing on it";
  let_grpc_connect(transport, *credentials);
}

// Precondition: the mutex is held, and all listeners have begun.
void GrpcConnector::Pool::let_grpc_connect(const TransportPtr& transport,
                                           const ConnectionCredentials& credentials) {
  const ListenerPtr& first = transport->listeners.front();
  transport->connecting = make_channel(transport->peer, credentials.grpc, first->timeout());
  transport->explaining = credentials.explaining;
  state_of(GrpcAccess::c_channel(*transport->connecting), /*connect=*/true);
  interest_.hurry();
  for (const ListenerPtr& listener : transport->listeners)
    watch(transport, transport->connecting, listener, GRPC_CHANNEL_IDLE);
}

void GrpcConnector::Pool::refuse(const TransportPtr& transport, const absl::Status& why) {
  transport->phase = Transport::Phase::kFailing;
  for (const ListenerPtr& listener : transport->listeners)
    listener->begin();
  auto* const refusal = new Refusal;
  refusal->gate = gate_;
  refusal->transport = transport;
  refusal->why = absl::UnavailableError(
      absl::StrCat("connection to ", transport->address().str(), " failed: ", why.message()));
  refusal->alarm.Set(&refusal->interest.queue(), gpr_now(GPR_CLOCK_MONOTONIC), refusal);
}

// Frees the turn of an attempt that has ended, with any outcome, and begins the next attempts.
void GrpcConnector::Pool::finish(const TransportPtr& transport) {
  if (transport->phase == Transport::Phase::kWaiting) {
    turns_.withdraw(transport);
  } else {
    turns_.done(transport);
  }
  begin_due();
}

absl::StatusOr<ConnectionCredentials> GrpcConnector::Pool::credentials_for(const Peer& peer) const {
  if (peer.tls == nullptr) {
    return ConnectionCredentials{options_.credentials != nullptr
                                     ? options_.credentials
                                     : grpc::InsecureChannelCredentials()};
  }
  if (options_.cluster_credentials) return options_.cluster_credentials(*peer.tls);
  return absl::FailedPreconditionError("TLS is asked for, and there are no certificates");
}

ConnectionSecurity GrpcConnector::Pool::security_to(const Peer& peer) const {
  if (peer.tls != nullptr) return security_of(*peer.tls);
  return {.kind = options_.credentials == nullptr ? ConnectionSecurity::Kind::kPlaintext
                                                  : ConnectionSecurity::Kind::kUnknown};
}

// Returns the peer with the authority that its channel gets: the user's GRPC_ARG_DEFAULT_AUTHORITY,
// else the peer's own authority. If no handshake uses the peer's own authority, the address takes
// its place (authority_of()), so that all targets share one connection to the address.
Peer GrpcConnector::Pool::named(const Peer& peer) const {
  Peer named = peer;
  const bool is_named = peer.tls != nullptr || options_.credentials != nullptr;
  if (!authority_.empty()) {
    named.authority = authority_;
  } else if (!is_named) {
    named.authority.clear();
  }
  if (named.authority == named.address.str()) named.authority.clear();
  return named;
}

// If the control plane asks for TLS, signalbox compares the server's certificate with the names in
// the configuration, and never with the name in the handshake. So the handshake may have a replaced
// name (handshake_authority). The program's own credentials check the certificate against the name
// in the handshake, as on gRPC's own channel, so they get the real authority.
std::shared_ptr<grpc::Channel> GrpcConnector::Pool::make_channel(
    const Peer& peer,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    Duration timeout) const {
  return grpc::CreateCustomChannel(
      grpc_target(peer.address),
      credentials,
      connection_arguments(
          options_.arguments,
          options_.keepalive,
          peer.tls == nullptr ? authority_of(peer) : handshake_authority(authority_of(peer)),
          timeout));
}

TransportPtr GrpcConnector::Pool::join(const Peer& wanted, const ListenerPtr& listener) {
  Peer peer = named(wanted);
  const std::lock_guard lock(mutex_);
  // A connection without a known limit of streams has no user that counts them.
  if (!options_.stream_limit && !is_dialed(peer)) peer.sole_user = {};
  const auto found = transports_.find(peer);
  TransportPtr transport = found == transports_.end() ? nullptr : *found;
  std::shared_ptr<grpc::Channel> channel;
  if (transport != nullptr && transport->phase == Transport::Phase::kReady) {
    transport->held = transport->connection.lock();
    if (transport->held != nullptr) {
      channel = static_cast<const GrpcConnection&>(*transport->held).channel();
    }
  } else if (transport != nullptr) {
    channel = transport->connecting;
  }
  const bool is_waiting = transport != nullptr && transport->phase == Transport::Phase::kWaiting;
  const bool is_dialing = transport != nullptr &&
                          transport->phase == Transport::Phase::kConnecting && transport->dial != 0;
  const bool is_new = channel == nullptr && !is_waiting && !is_dialing;
  if (is_new) {
    if (transport != nullptr) transports_.erase(found);
    transport = *transports_.insert(std::make_shared<Transport>(std::move(peer))).first;
  }
  transport->listeners.push_back(listener);
  if (is_new) {
    turns_.want(transport);
    begin_due();
  } else if (is_dialing) {
    listener->begin();
    limit(transport, listener);
  } else if (transport->held != nullptr &&
             static_cast<const GrpcConnection&>(*transport->held).is_socket()) {
    listener->begin();
    tell_connected_later(transport);
  } else if (!is_waiting) {
    listener->begin();
    // The watch reports a state other than IDLE. So it also reports a connection that is READY
    // already, at once.
    watch(transport, channel, listener, GRPC_CHANNEL_IDLE);
  }
  return transport;
}

void GrpcConnector::Pool::leave(const TransportPtr& transport, const ListenerPtr& listener) {
  listener->silence();
  Abandoned unwanted;
  // `dropped` and `unwanted` are declared before the lock. If they own the last reference to an
  // object, the object is destroyed after the unlock.
  ConnectionPtr dropped;
  const std::lock_guard lock(mutex_);
  Listeners& listeners = transport->listeners;
  listeners.erase(std::ranges::remove(listeners, listener).begin(), listeners.end());
  if (!listeners.empty()) return;
  dropped = std::move(transport->held);
  unwanted.channel = std::move(transport->connecting);
  if (transport->phase == Transport::Phase::kReady) return;
  if (transport->dial != 0) sockets_->dialer->hang_up(transport->dial);
  forget(transport);
  finish(transport);
  transport->phase = Transport::Phase::kAbandoned;
}

// No later attempt gets the transport. Precondition: the mutex is held.
void GrpcConnector::Pool::forget(const TransportPtr& transport) {
  const auto found = transports_.find(transport);
  if (found != transports_.end() && *found == transport) transports_.erase(found);
}

// The connection with an owner that retires it (G2 of grpc_connector.hpp).
ConnectionPtr GrpcConnector::Pool::owned(const GrpcConnection* made) const {
  return {made, [retire = retire_](const GrpcConnection* connection) {
            connection->let_go();
            (*retire)(std::unique_ptr<const Tracked>(connection));
          }};
}

void GrpcConnector::Pool::close() {
  {
    const std::unique_lock lock(gate_->mutex);
    gate_->pool = nullptr;
  }
  if (retry_alarm_ != nullptr) retry_alarm_->Cancel();
  if (sockets_) sockets_->dialer->stop();
  Transports transports;
  AttemptTurns<TransportPtr> turns;
  {
    const std::lock_guard lock(mutex_);
    transports.swap(transports_);
    std::swap(turns, turns_);
  }
  for (const TransportPtr& transport : transports)
    abandon(std::move(transport->connecting));
}

void GrpcConnector::Pool::watch(const TransportPtr& transport,
                                const std::shared_ptr<grpc::Channel>& channel,
                                const ListenerPtr& listener,
                                grpc_connectivity_state last) {
  auto* const question = new Watch(interest_);
  question->functor_run = &Watch::run;
  question->inlineable = 0;
  question->gate = gate_;
  question->transport = transport;
  question->listener = listener;
  question->channel = channel;
  question->last = last;
  const gpr_timespec deadline = listener != nullptr ? grpc_deadline(listener->deadline())
                                                    : gpr_inf_future(GPR_CLOCK_MONOTONIC);
  grpc_channel_watch_connectivity_state(
      GrpcAccess::c_channel(*channel), last, deadline, interest_.callback_queue(), question);
}

void GrpcConnector::Pool::on_watch(const Watch& watch, bool changed) {
  const auto channel = watch.channel.lock();
  if (watch.listener == nullptr) return end(watch.transport, closed(watch.transport));
  // The channel was abandoned, because all its attempts have ended.
  if (channel == nullptr) return;
  std::unique_lock lock(mutex_);
  const auto phase = watch.transport->phase;
  lock.unlock();
  if (phase == Transport::Phase::kReady) return tell_connected(watch.transport);
  if (phase == Transport::Phase::kConnecting) on_connecting(watch, channel, changed);
}

// `reason` counts if no call has told one.
absl::Status GrpcConnector::Pool::closed(const TransportPtr& transport, const char* reason) {
  ConnectionPtr connection;  // Released after the unlock.
  const std::lock_guard lock(mutex_);
  connection = transport->connection.lock();
  if (connection != nullptr) {
    const auto& lost = static_cast<const GrpcConnection&>(*connection);
    if (reason != nullptr) lost.record_loss(reason);
    reason = lost.loss();
  }
  return absl::UnavailableError(absl::StrCat("connection to ",
                                             transport->address().str(),
                                             " was closed",
                                             reason == nullptr ? "" : ": ",
                                             reason == nullptr ? "" : reason));
}

void GrpcConnector::Pool::on_connecting(const Watch& watch,
                                        const std::shared_ptr<grpc::Channel>& channel,
                                        bool changed) {
  const TransportPtr& transport = watch.transport;
  const auto state = state_of(GrpcAccess::c_channel(*channel));
  if (state == GRPC_CHANNEL_READY) return become_ready(transport, channel, options_.stream_limit);
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return probe(transport, channel);
  if (!changed || std::chrono::steady_clock::now() >= watch.listener->deadline()) {
    std::unique_lock lock(mutex_);
    const char* const so_far = transport->so_far;
    lock.unlock();
    return time_out(transport, watch.listener, so_far);
  }
  if (state == GRPC_CHANNEL_IDLE) {  // The connection was made, and ended at once.
    return end(transport,
               absl::UnavailableError(absl::StrCat(
                   "connection to ", transport->address().str(), " was closed at once")));
  }
  this->watch(transport, channel, watch.listener, state);
}

void GrpcConnector::Pool::become_ready(const TransportPtr& transport,
                                       const std::shared_ptr<grpc::Channel>& channel,
                                       std::optional<std::uint32_t> stream_limit,
                                       const std::shared_ptr<SocketLine>& line) {
  {
    const std::lock_guard lock(mutex_);
    if (transport->phase == Transport::Phase::kConnecting && !transport->listeners.empty()) {
      const Peer& peer = transport->peer;
      transport->held =
          owned(new GrpcConnection(peer.address, channel, peer.authority, line, stream_limit));
      transport->connection = transport->held;
      transport->connecting = nullptr;
      transport->phase = Transport::Phase::kReady;
      if (line == nullptr) watch(transport, channel, nullptr, GRPC_CHANNEL_READY);
      finish(transport);
    }
  }
  tell_connected(transport);
}

void GrpcConnector::Pool::tell_connected(const TransportPtr& transport) {
  std::unique_lock lock(mutex_);
  const ConnectionPtr connection = transport->held;
  const auto listeners = transport->listeners;
  lock.unlock();
  if (connection == nullptr) return;
  for (const auto& listener : listeners)
    listener->connected(connection);
}

void GrpcConnector::Pool::probe(const TransportPtr& transport,
                                const std::shared_ptr<grpc::Channel>& channel) {
  {
    const std::lock_guard lock(mutex_);
    if (transport->phase != Transport::Phase::kConnecting) return;
    transport->phase = Transport::Phase::kFailing;
  }
  watch_failure(GrpcAccess::c_channel(*channel),
                authority_of(transport->peer),
                [gate = gate_, transport, channel](const absl::Status& failure) {
                  const std::shared_lock lock(gate->mutex);
                  if (gate->pool != nullptr) gate->pool->explain(transport, failure);
                });
}

// If the server's certificate was refused, a second connection finds out why, before the failure is
// reported.
void GrpcConnector::Pool::explain(const TransportPtr& transport, const absl::Status& failure) {
  std::string reason(reason_in(failure.message()));
  if (transport->explaining == nullptr || !is_certificate_refused(reason))
    return fail(transport, reason, "");
  explain_refusal(make_channel(transport->peer, transport->explaining, kLongestExplanation),
                  [gate = gate_, transport, reason](const std::string& verdict) {
                    const std::shared_lock lock(gate->mutex);
                    if (gate->pool != nullptr) gate->pool->fail(transport, reason, verdict);
                  });
}

void GrpcConnector::Pool::fail(const TransportPtr& transport,
                               absl::string_view reason,
                               absl::string_view verdict) {
  end(transport,
      absl::UnavailableError(
          absl::StrCat("connection to ",
                       transport->address().str(),
                       " failed: ",
                       with_question(reason, security_to(transport->peer), verdict))));
}

void GrpcConnector::Pool::end(const TransportPtr& transport, const absl::Status& status) {
  // A channel to abandon. It is declared before the lock, so that it is abandoned after the unlock.
  Abandoned given_up;
  ConnectionPtr dropped;
  Listeners listeners;
  {
    const std::lock_guard lock(mutex_);
    forget(transport);
    listeners.swap(transport->listeners);
    given_up.channel = std::move(transport->connecting);
    dropped = std::move(transport->held);
    finish(transport);
  }
  // An attempt (listener) that has not got `connected` yet gets it before `closed` (C1 of
  // connector.hpp).
  for (const auto& listener : listeners) {
    if (dropped != nullptr) listener->connected(dropped);
    listener->ended(status);
  }
}

void GrpcConnector::Pool::time_out(const TransportPtr& transport,
                                   const ListenerPtr& listener,
                                   absl::string_view so_far) {
  listener->ended(absl::UnavailableError(
      absl::StrCat("connection to ",
                   transport->address().str(),
                   " was not made within ",
                   std::chrono::ceil<std::chrono::milliseconds>(listener->timeout()).count(),
                   " ms (connect_timeout)",
                   so_far.empty() ? "" : ": ",
                   so_far)));
  leave(transport, listener);
}

GrpcConnector::GrpcConnector(GrpcConnectorOptions options) {
  pool_ = std::make_shared<Pool>(std::move(options));
}

GrpcConnector::~GrpcConnector() {
  pool_->close();
}

std::unique_ptr<Connector::Attempt> GrpcConnector::connect(const Peer& peer,
                                                           Duration timeout,
                                                           Events events) {
  // The Attempt that a subchannel actor or a health probe holds. It stands for one of the attempts
  // (listeners) that share a transport.
  class Place final : public Attempt {
   public:
    Place(std::shared_ptr<Pool> pool, TransportPtr transport, ListenerPtr listener)
        : pool_(std::move(pool)),
          transport_(std::move(transport)),
          listener_(std::move(listener)) {}

    ~Place() override { pool_->leave(transport_, listener_); }

   private:
    const std::shared_ptr<Pool> pool_;
    const TransportPtr transport_;
    const ListenerPtr listener_;
  };

  auto listener = std::make_shared<Listener>(std::move(events), timeout);
  auto transport = pool_->join(peer, listener);
  return std::make_unique<Place>(pool_, std::move(transport), std::move(listener));
}

ConnectionPtr GrpcConnector::with_lanes(const ConnectionPtr& first,
                                        std::shared_ptr<const lb::StreamLanes> lanes) {
  return pool_->owned(
      new GrpcConnection(std::static_pointer_cast<const GrpcConnection>(first), std::move(lanes)));
}

}  // namespace signalbox::actors
