// SPDX-License-Identifier: Apache-2.0
//
// Runtime — signalbox inside your server: start it once, ask it for channels and routers.
//
//   auto runtime = signalbox::Runtime::start();               // bootstrap from the environment
//   if (!runtime.ok()) return runtime.status();
//   auto stub = orders::v1::Orders::NewStub((*runtime)->channel("xds:///orders"));
//
// The bootstrap is gRPC's own: GRPC_XDS_BOOTSTRAP (a path) or GRPC_XDS_BOOTSTRAP_CONFIG (the JSON
// itself). All channels of a runtime share one ADS stream, and their connections.
//
// A bootstrap need name no server: "signalbox.resources" names a file of xDS resources instead. The
// file must be there and be read without error when the runtime starts. Afterwards it is followed,
// and what changes in it is taken as if a server had sent it: of an invalid resource the last good
// version stays in use, and so does all of the last good file while it is bad or gone.
//
// Thread-safe. Several runtimes may live in one process. Destroying a runtime stops its threads
// and actors; calls in flight run to their end, calls that wait fail UNAVAILABLE, and so does
// every later call on a channel or router that is still held.
//
// When the last runtime of a process has ended, and its channels and calls with it, gRPC shuts down
// as it does without signalbox, unless the program itself uses it: soon afterwards, on a thread of
// its own, which the destructors do not wait for. It may last up to 20 s longer while a connection
// to a silent server is being made or a silent control plane is being left. A runtime may be
// started again at any time.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include "messages/cluster.hpp"
#include "messages/resource_dump.hpp"
#include "signalbox/filter.hpp"
#include "signalbox/plan.hpp"
#include "signalbox/policy.hpp"
#include "signalbox/router.hpp"
#include "xds/limits.hpp"

namespace signalbox {

/// What a connection to an endpoint is; so, when an endpoint is READY, and can be picked.
enum class EndpointTransport : std::uint8_t {
  /// A gRPC channel, that has heard the server's HTTP/2 settings. What speaks something else there
  /// (HTTP/1.1, say) is never READY.
  kGrpc,
  /// A TCP connection on which nothing is said: for the Pick API with connections of its own. Each
  /// endpoint in use costs one open file here and one connection there. One that the server closes
  /// because it is idle is made anew, and only if that fails is the endpoint lost; one that it
  /// closes at once is tried again once a second.
  kTcp,
  /// None: every endpoint counts as connected as soon as somebody wants it. For programs that look
  /// at configurations (signalbox explain --resources), with explain() and picks that are not made.
  kAssumed,
};

/// Both more than 0 and at most 1000; counted in thousandths.
struct RetryThrottling {
  double max_tokens = 10;
  double token_ratio = 0.1;
};

/// The form of the cookies that keep sessions on their hosts, where they are plain. Cookies of
/// every form are read, whatever this says; it says in which form new ones are written.
///
///   base64 of                                 is written by               and read by
///   "ip:port,ip:port;cluster" (A60, A61)      gRPC, signalbox (kGrpc)     gRPC, signalbox
///   "ip:port;cluster:cluster" (A60's text)    nothing that we know of     signalbox
///   "ip:port" (A55)                           older gRPC and Envoy        gRPC, Envoy, signalbox
///   Cookie{1: "ip:port", 2: expires}          Envoy                       Envoy, signalbox
///   the same with 3: "cluster"                signalbox (kEnvoy)          Envoy, signalbox
///   a sealed text (key_file)                  signalbox                   signalbox, with a key
///
/// A cookie is replaced when its session moves, when it has no cluster though it is no message of
/// Envoy's, and when a key_file asks for a newer seal; never only because it is of the other form.
/// So a session whose calls go through Envoy and through signalbox by turns keeps its host: with
/// kEnvoy from its first call on; with kGrpc from Envoy's first answer on, which moves a session
/// that signalbox began. gRPC and Envoy do not read each other's form: a session that goes through
/// both moves, whatever is set here. Times in cookies are written for Envoy and not read: Max-Age
/// ends a session's cookie, at the client.
enum class SessionCookieForm : std::uint8_t {
  kGrpc,
  /// The message has room for one address: an endpoint of several (A61) is named by the one in use.
  kEnvoy,
};

/// How the cookies are written that keep sessions on their hosts (gRFC A55).
struct SessionCookieOptions {
  /// Unset: plain, as gRPC or Envoy write them (see `form`): every client that has a cookie can
  /// read an endpoint's address and its cluster's name in it, and can write another (it leads to no
  /// endpoint but those of the route, but to any of these). Set: sealed by AES-256-GCM with the
  /// keys of this file, for their name and this target. A key is a line as `openssl rand -base64
  /// 32` writes it; the first seals, all of them open, at most 8. The file is followed: to change a
  /// key without losing a session, add the new one as second everywhere, then make it the first,
  /// and leave the old one out in the end: a session that calls meanwhile is given a new cookie.
  /// What becomes of a changed file that is bad, `log` is told, and
  /// signalbox_config_rejected_total{reason="seal_keys"} counts it; the last good keys stay in use.
  /// All processes that share clients need the same file.
  /// A file that others can write is not used, since they could make cookies; of one that others
  /// can read `log` is told.
  std::optional<std::string> key_file;
  /// With a key_file: takes plain cookies as well, while clients still have them, and replaces
  /// them. As long as this is on, nothing is won against those who write their own.
  bool accept_plain = false;
  /// Of plain cookies. Sealed ones have no form but their own: with a key_file, kEnvoy is an error
  /// of start().
  SessionCookieForm form = SessionCookieForm::kGrpc;
};

struct RuntimeOptions {
  /// Where the bootstrap is: a file, or the JSON itself; neither: the environment. Both: an error.
  std::optional<std::string> bootstrap_path;
  std::optional<std::string> bootstrap_json;

  /// How long a resource may take to come before it counts as absent (gRFC A57).
  std::chrono::nanoseconds resource_timeout = std::chrono::seconds(15);
  /// How long a priority may take to connect before the next one is tried (gRFC A56). A cluster's
  /// connect_timeout that is shorter decides first: a priority whose attempts have all ended has
  /// failed.
  std::chrono::nanoseconds failover_timeout = std::chrono::seconds(10);
  /// The most points that a ring of ring_hash may have, whatever a control plane asks for (gRFC
  /// A42). Of more endpoints than that some have no point, and get no call: raise it for them. A
  /// point costs 12 bytes.
  std::uint64_t ring_size_cap = 4096;

  /// What becomes of an aggregate cluster when an underlying one does not exist, or was refused and
  /// had no good version before. Off, as gRFC A74 has it: the aggregate does without it, and fails
  /// only when none is left. On, as the older gRFC A37 has it: the whole aggregate fails.
  bool missing_cluster_fails_aggregate = false;

  /// How aggregate clusters spread their calls whose CDS metadata does not say ("signalbox":
  /// {"aggregate_mode": "priority" | "tiered"}). kPriority: all of them to the first leaf, and the
  /// first priority in it, that can take them (gRFC A75). kTiered: over the priorities of all
  /// leaves by their health, as Envoy's aggregate cluster does it: a priority can serve for 140 %
  /// of its healthy endpoints (EDS overprovisioning_factor), and what that leaves goes to the next.
  /// A call whose share has nobody to take it waits or fails there: none is led elsewhere. Calls of
  /// sessions go to their host, in whichever leaf that is.
  /// With kTiered a control plane is not told that this client knows no overprovisioning.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// For tiered, in percent, at most 100: a priority with fewer endpoints that are fit panics,
  /// while all together cannot serve every call: its calls go to all of its endpoints but DRAINING
  /// ones, whatever their health. Where no endpoint is fit, or fewer than one of 140 everywhere,
  /// calls go by numbers of endpoints. 0, unlike Envoy's 50: never; then the first priority with a
  /// healthy endpoint, or else with a DEGRADED one, has all calls, and without any they fail
  /// UNAVAILABLE. Of aggregates whose CDS common_lb_config has no healthy_panic_threshold.
  std::uint32_t panic_threshold = 0;
  /// For tiered: an endpoint whose connection cannot be made is not healthy, until it can. Off, as
  /// in Envoy: only EDS, outlier detection and health checks say who is healthy.
  bool unreachable_is_unhealthy = true;
  /// Probes the endpoints of clusters that have health_checks (CDS), by gRPC's health service, HTTP
  /// or TCP, and sends no calls where probes fail: docs/configure.md. Off, as gRPC has it:
  /// what clusters say of that is not read.
  bool active_health_checks = true;

  /// Back-off of connections to endpoints (gRPC's connection-backoff).
  std::chrono::nanoseconds initial_backoff = std::chrono::seconds(1);
  std::chrono::nanoseconds max_backoff = std::chrono::seconds(120);
  /// The first back-off of an endpoint that was connected and is lost: its process is being started
  /// again, as a rule. From here it grows by 1.3 instead of 1.6 each time, so that the endpoint is
  /// found within about a third of the time that it was away. Only while fewer than 64 addresses of
  /// the cluster fail; beyond that, and for an endpoint that has never answered, and when this is
  /// no less than `initial_backoff`, gRPC's rule holds.
  std::chrono::nanoseconds lost_backoff = std::chrono::milliseconds(200);

  /// How long pick_first, and each policy of many endpoints for the addresses of one, lets an
  /// attempt go on alone before it tries the next address as well (gRFC A61). Less than 100 ms
  /// counts as 100 ms, more than 2 s as 2 s. How long an attempt may take in all is the cluster's
  /// connect_timeout, or 20 s where CDS does not set it, as in gRPC.
  std::chrono::nanoseconds connection_attempt_delay = std::chrono::milliseconds(250);

  /// How often a silent connection to an endpoint is pinged; one that does not answer within
  /// `keepalive_timeout` is lost, its calls fail UNAVAILABLE, and others take its place. It is what
  /// finds an endpoint that is gone without a word, such as one whose machine was cut off. Unset,
  /// as in gRPC: never. gRPC sends no pings that are closer than a second; a gRPC server by default
  /// allows none that are closer than five minutes, and closes a connection that has more
  /// (gRFC A8): set its GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, and with
  /// keepalive_without_calls its GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, first.
  std::optional<std::chrono::nanoseconds> keepalive_time;
  std::chrono::nanoseconds keepalive_timeout = std::chrono::seconds(20);
  /// Pings connections that no call is on, too.
  bool keepalive_without_calls = false;

  /// Retries of calls whose route has a retry policy (gRFC A44), until the server has answered.
  /// Requests that are larger, all messages of a stream together, are not kept for them, and so
  /// their call is not retried: signalbox_retries_total says too_large.
  std::size_t retry_buffer_bytes = std::size_t{256} << 10U;
  /// A retry passes over the endpoints that the call has tried, while there are others: those of
  /// round_robin, least_request and the localities do. A hash, a session or pick_first binds a
  /// call within its locality. Off, as in gRPC: each retry is led where a new call would be, unless
  /// its route's retry policy says otherwise (retry_host_predicate: previous_hosts).
  bool retry_elsewhere = true;
  /// Stops the retries of a target while too many of its calls fail (gRFC A6): a failure that could
  /// be retried takes a token, a success gives `token_ratio` of one back, and none is retried while
  /// half of the tokens or more are gone. Unset: never, as in gRPC without a service config; xDS
  /// has no word for it.
  std::optional<RetryThrottling> retry_throttling;

  /// With kTcp and kAssumed, what is said of gRPC, credentials and channel arguments does not
  /// apply, pings are TCP's own, and every call on a channel() fails.
  EndpointTransport transport = EndpointTransport::kGrpc;

  /// Of connections to endpoints whose cluster says nothing of security; unset: insecure. They
  /// check the server's name against the target's authority, as on gRPC's own channel. They are
  /// never used where a cluster asks for TLS: that is had as CDS says, with the certificates of the
  /// bootstrap's certificate_providers, or there is no connection (gRFC A29; docs/configure.md).
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials;
  /// Of connections to endpoints. Each is one connection and no more: so retries, back-off, idle
  /// timeout, the subchannel pool and the resolution of service configs are not to be set here;
  /// start() says which one is. GRPC_ARG_DEFAULT_AUTHORITY takes the place of the target's
  /// authority in calls and in TLS handshakes. Unless set here,
  /// GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, the window of a stream, is 1 MiB, and
  /// GRPC_ARG_HTTP2_BDP_PROBE, which lets it grow, is off.
  grpc::ChannelArguments channel_arguments;

  /// How much of anything a control plane, or a resource file, may send. What goes beyond is
  /// refused by the limit's name, and counted (signalbox_config_rejected_total, reason="limit");
  /// the last good version stays in use.
  xds::Limits limits;
  /// How often a silent control plane is pinged; one that does not answer within 20 s is lost.
  /// Doubled each time that the server complains: many allow no less than five minutes (gRFC A8).
  std::chrono::nanoseconds xds_keepalive_time = std::chrono::minutes(5);

  SessionCookieOptions session_cookies;

  /// LB policies of the program's own, beside those that signalbox has (gRFC A52): see policy.hpp.
  /// Their names are unique. A wrong one is an error of start() that names it.
  std::vector<CustomLbPolicy> lb_policies;

  /// HTTP filters of the program's own, beside those that signalbox has: router, fault and
  /// stateful_session (gRFC A39): see filter.hpp. Their types are unique. A wrong one is an error
  /// of start() that names it.
  std::vector<CustomHttpFilter> http_filters;

  /// Resolves "host:port" of LOGICAL_DNS clusters to "ip:port" texts; unset: getaddrinfo. May
  /// block. Called on a thread of the runtime.
  std::function<absl::StatusOr<std::vector<std::string>>(const std::string& name)> name_lookup;

  /// Told what an operator should know, such as why a changed resource file is not used, which
  /// certificate file went bad, or what a custom policy died of; unset: a line on stderr. Called on
  /// a thread of the runtime: it must not throw, nor destroy the runtime.
  std::function<void(const std::string& text)> log;

  /// Abseil can look for deadlocks at every lock that gRPC takes. As Debian builds it, it does so
  /// in every process, which takes a good part of gRPC's CPU, and memory for each of its mutexes.
  /// With false, start() turns that off: for the whole process
  /// (absl::SetMutexDeadlockDetectionMode).
  bool detect_deadlocks = false;

  /// After 10,000 endpoints have gone, gives the memory that they took back to the system: by
  /// glibc's malloc_trim, which looks through the whole heap of the process, a few times within
  /// three minutes, on a thread of its own. A thread that allocates meanwhile may wait for it for
  /// some milliseconds. Other allocators are left alone.
  bool trim_heap = true;

  /// Of the actors' scheduler; at least 1.
  std::size_t scheduler_threads = 2;
  /// Seed of all chance of the control plane (jitter, shuffles); unset: from the system.
  std::optional<std::uint64_t> seed;
};

class Runtime {
 public:
  /// An error names the variable or path, the field (or the line), and what was found.
  static absl::StatusOr<std::unique_ptr<Runtime>> start(RuntimeOptions options = {});

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

  /// Of one channel.
  struct ChannelOptions {
    /// The channel's, as in grpc::experimental::CreateCustomChannelWithInterceptors; null ones are
    /// left out.
    Interceptors interceptors;
    /// The :authority of the channel's calls; empty: the runtime's. TLS handshakes name the
    /// target's host all the same, as connections are shared. Printable ASCII, or every call fails.
    std::string authority;
  };

  /// A drop-in gRPC channel for "xds:///name" or "xds://authority/name"; never null. What is
  /// wrong with the target, every call on the channel says.
  ///
  /// It needs gRPC 1.51. All kinds of method work, in the sync, async and callback APIs and through
  /// generic stubs, and go as on gRPC's own channel, with everything that a ClientContext can be
  /// told. What is different:
  /// - Route and connection are chosen when the call is made, from the metadata that the context
  ///   has then. What interceptors add is sent, but routes and HTTP filters do not see it. What
  ///   filters add, the context has from then on.
  /// - Metadata that gRPC would not send (a name that is not of a-z, 0-9, '-', '_' and '.', a value
  ///   that is not printable ASCII without "-bin" at the end of its name) fails its call INTERNAL;
  ///   on gRPC's own channel it ends the process. What is wrong is taken out of the context. A
  ///   method or an authority that is not printable ASCII fails its call, too.
  /// - A call that no server has looked at is picked again at once: its connection died before the
  ///   call was sent, or the server left it out with a GOAWAY or refused it with REFUSED_STREAM
  ///   (once). Others are made again by their route's retry policy. Both hold for calls of one
  ///   batch and of several (streams, a ClientUnaryReactor), until the server has answered or what
  ///   was sent is more than retry_buffer_bytes. A call that fails because its connection breaks
  ///   off says target, cluster and endpoint before gRPC's reason.
  /// - A retry that would begin after the call's deadline is not waited for: the call ends at once,
  ///   as its last attempt did.
  /// - Of a call that is made again, gRPC's global interceptor sees the end of the first attempt;
  ///   the channel's interceptors see one call. The global one also sees the ADS streams.
  /// - The authority of a call is the one that the context sets; else the endpoint's hostname, if
  ///   its route says so and the control plane is trusted (gRFC A81); else ChannelOptions'; else
  ///   the default authority of RuntimeOptions::channel_arguments; else the target's, as on gRPC's
  ///   own channel: "orders.example:80" for "xds:///orders.example:80". No default authority
  ///   changes which virtual host is the target's.
  /// - No service config, no channelz; what gRPC does for grpc::Channel alone
  ///   (its load-balancing policy's name, ResetConnectionBackoff) is not there.
  ///
  /// Callbacks run on gRPC's own threads. Interceptors run on the thread that starts the batch, or,
  /// of a call that had to wait, on the runtime's thread that wakes it: they must not block. A call
  /// costs what one on a grpc::Channel does, and one pick.
  std::shared_ptr<grpc::ChannelInterface> channel(const std::string& target,
                                                  Interceptors interceptors = {});
  std::shared_ptr<grpc::ChannelInterface> channel(const std::string& target,
                                                  ChannelOptions options);

  /// The Pick API for the same targets: see router.hpp. INVALID_ARGUMENT for a target that is none.
  absl::StatusOr<std::shared_ptr<Router>> router(const std::string& target);

  /// All metrics of this runtime, for the embedding server's own exposer or as text.
  std::shared_ptr<prometheus::Collectable> metrics() const;
  std::string metrics_text() const;

  /// Serves /metrics on "host:port" until the runtime ends; port 0 takes a free one. A port alone
  /// is one of 127.0.0.1: another machine may ask only where an address says so. Returns the port.
  absl::StatusOr<int> serve_metrics(const std::string& address);

  /// What the xDS client knows of every resource that is in use: its state, version, times, last
  /// error (gRFC A40). Made on a thread of the runtime, without holding up any call; blocks until
  /// then, so not to be called from a callback. UNAVAILABLE while the client is being restarted,
  /// DEADLINE_EXCEEDED after 10 s.
  absl::StatusOr<ResourceDump> dump() const;

  /// The same as JSON, in the words of CSDS, with the resources themselves; what may be a secret
  /// in them is "[redacted]". The form: xds/dump_json.hpp.
  absl::StatusOr<std::string> dump_json() const;

  /// Why a call would go where it would, as JSON (xds/explanation_json.hpp), to a target that a
  /// channel or a router of this runtime has. `headers`: names in lower case, cookies among them;
  /// their values are not in the answer. `seed`: of its chance; unset: any. INVALID_ARGUMENT: there
  /// is no such target; it lists them.
  absl::StatusOr<std::string> explain_json(
      const std::string& target,
      const std::string& method,
      const std::vector<std::pair<std::string, std::string>>& headers = {},
      std::optional<std::uint64_t> seed = std::nullopt) const;

  /// How the calls to a cluster would spread, by the resources that are in use now: plan.hpp.
  /// `request` need name no policies and no providers, its mode is the runtime's, and so is a panic
  /// threshold of 0 (an aggregate's own comes first). Errors as plan_text's and dump's; blocks as
  /// that does.
  absl::StatusOr<Plan> plan(PlanRequest request = {}) const;

  /// Lets people of this machine look in until the runtime ends: GET /config_dump (dump_json),
  /// /explain (explain_json) and /metrics, read-only. Never opened unasked. `address`: "unix:PATH",
  /// a socket of mode 0660, or "HOST:PORT" of the loopback interface, where every process of the
  /// machine may ask; port 0 takes a free one. The address as `signalbox dump --admin` takes it.
  /// INVALID_ARGUMENT for any other address, UNAVAILABLE where nobody can listen.
  absl::StatusOr<std::string> serve_admin(const std::string& address);

  /// Calls that were picked again because no server had looked at them.
  std::int64_t repicked() const;

 private:
  struct State;
  explicit Runtime(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace signalbox
