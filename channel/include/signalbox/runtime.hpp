// SPDX-License-Identifier: Apache-2.0
//
// Runtime — signalbox inside your process: start it once, then make channels and routers from it.
//
//   auto runtime = signalbox::Runtime::start();               // bootstrap from the environment
//   if (!runtime.ok()) return runtime.status();
//   auto stub = orders::v1::Orders::NewStub((*runtime)->channel("xds:///orders"));
//
// The bootstrap is gRPC's own: GRPC_XDS_BOOTSTRAP (a path) or GRPC_XDS_BOOTSTRAP_CONFIG (the JSON
// itself). All channels of a runtime share one ADS stream to each xDS server. They also share a
// connection when its address and TLS settings are equal; with TLS or channel_credentials, the
// target's authority must be equal, too.
//
// A bootstrap may name a file of xDS resources, in its field "signalbox.resources", instead of a
// server. The file must be readable without error when the runtime starts. Afterwards the runtime
// follows changes of the file, and treats each as a response of a server. While a resource is
// invalid, the resource's last good version stays in use. While the file cannot be read or parsed,
// the whole last good file stays in use.
//
// Thread-safe. Several runtimes may live in one process. Destroying a runtime stops its threads and
// actors. Calls in flight run to their end. Waiting calls fail UNAVAILABLE, and so does every later
// call on a channel or router that is still held.
//
// gRPC's library shuts down once the last runtime of the process, its channels and its calls have
// ended, unless the program itself uses gRPC. The shutdown begins soon afterwards, on a thread of
// its own; the destructors do not wait for it. It may take up to 20 s longer, or a longer
// connect_timeout of a cluster, while a connection to a server that does not answer is being made,
// or an ADS stream to such a server is being closed. A new runtime may be started at any time.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include "messages/admin_limit.hpp"
#include "messages/cluster.hpp"
#include "messages/log_line.hpp"
#include "messages/resource_dump.hpp"
#include "signalbox/call_observer.hpp"
#include "signalbox/filter.hpp"
#include "signalbox/plan.hpp"
#include "signalbox/policy.hpp"
#include "signalbox/router.hpp"
#include "signalbox/runtime_status.hpp"
#include "xds/limits.hpp"

namespace grpc {
class ServerBuilder;
}

namespace signalbox {

/// The kind of connections to endpoints. It decides when an endpoint counts as READY.
enum class EndpointTransport : std::uint8_t {
  /// A gRPC channel: READY once the server's HTTP/2 settings have come. An endpoint that speaks
  /// another protocol (HTTP/1.1, say) is never READY.
  kGrpc,
  /// A TCP connection without traffic, for data planes with connections of their own (Pick API).
  /// Each endpoint in use costs this process one open file, and the server one connection. When the
  /// server closes an idle connection, signalbox connects again; the endpoint is lost only if this
  /// attempt fails. When the server closes each connection immediately, the next attempt follows a
  /// second later.
  kTcp,
  /// No connection: every endpoint counts as connected as soon as a policy asks for a connection.
  /// For programs that examine configurations (signalbox explain --resources): they use explain(),
  /// or pick without sending a call.
  kAssumed,
};

/// The token bucket of gRFC A6, which limits retries. Both values must be more than 0 and at most
/// 1000; they are rounded to thousandths.
struct RetryThrottling {
  double max_tokens = 10;
  double token_ratio = 0.1;
};

/// The form in which signalbox writes new plain (not encrypted) session cookies. Cookies of every
/// form are read, whatever this setting is.
///
///   base64 of                                 is written by               and read by
///   "ip:port,ip:port;cluster" (A60, A61)      gRPC, signalbox (kGrpc)     gRPC, signalbox
///   "ip:port;cluster:cluster" (A60's text)    no known program            signalbox
///   "ip:port" (A55)                           older gRPC and Envoy        gRPC, Envoy, signalbox
///   Cookie{1: "ip:port", 2: expires}          Envoy                       Envoy, signalbox
///   the same with 3: "cluster"                signalbox (kEnvoy)          Envoy, signalbox
///   a sealed text (key_file)                  signalbox                   signalbox, with a key
///
/// A response replaces the client's cookie when the cookie does not name the addresses and the
/// cluster that the call went to. Envoy's own cookie names no cluster; that alone is no reason to
/// replace it. With a key_file, a cookie is also replaced when it is plain or sealed with another
/// key than the first. A plain cookie is not replaced just because it has the other form.
///
/// The calls of one session may go alternately through Envoy and signalbox. With kEnvoy, such a
/// session keeps its host from the first call on. With kGrpc, Envoy cannot read the cookie that
/// signalbox wrote: Envoy's first response moves the session to another host, with a cookie that
/// Envoy and signalbox both read from then on. Plain gRPC and Envoy do not read each other's form,
/// so a session that goes through these two changes its host, with either setting. The time in a
/// cookie is written for Envoy, and signalbox does not read it. A cookie ends at the client, by
/// Max-Age.
enum class SessionCookieForm : std::uint8_t {
  kGrpc,
  /// Envoy's message has room for one address. The cookie of an endpoint with several addresses
  /// (A61) has the address in use.
  kEnvoy,
};

/// How session cookies are written and read (gRFC A55).
struct SessionCookieOptions {
  /// Unset: cookies are plain, as gRPC or Envoy write them (see `form`). A client can read an
  /// endpoint's address and its cluster's name in a plain cookie. A client can also forge a plain
  /// cookie for any endpoint of the route, but not for other endpoints.
  ///
  /// Set: cookies are sealed by AES-256-GCM with the keys of this file. A seal is valid for one
  /// cookie name and one target. Each line is a key, as `openssl rand -base64 32` writes it. The
  /// file has at most 8 keys. New cookies are sealed with the first key; cookies sealed with any of
  /// the keys are read.
  ///
  /// The runtime follows changes of the file. To change a key without losing sessions, add the new
  /// key as second on all processes, then make it the first, and remove the old key at last.
  /// Sessions that call in the meantime get a new cookie. A bad new file is reported to `log` and
  /// counted (signalbox_config_rejected_total{reason="seal_keys"}); the last good keys stay in use.
  /// All processes with the same clients need the same file. A file that other users can write is
  /// refused, since they could forge cookies. A file that other users can read is reported to
  /// `log`.
  std::optional<std::string> key_file;
  /// With a key_file: plain cookies, which clients may still have, are accepted too, and replaced
  /// by sealed ones. Clients can forge cookies as long as this is true. Without a key_file, true is
  /// an error of start().
  bool accept_plain = false;
  /// The form of plain cookies. Sealed cookies have only one form, so kEnvoy with a key_file is an
  /// error of start().
  SessionCookieForm form = SessionCookieForm::kGrpc;
};

/// Where RuntimeOptions::record writes what comes from outside.
struct RecordOptions {
  /// The newest segment; the one before is `path` + ".old", and the next one begins as `path` +
  /// ".new". `path` + ".lock" is there while the runtime lives, and keeps others from the path. All
  /// have the mode 0600.
  std::string path;
  /// Of both files together; 1 MiB to 4 GiB. When the newest resources of the control planes take
  /// more than a quarter of this, the files take up to four times the size of those resources.
  /// While no next segment can begin (no descriptors), the newest one takes up to twice its part.
  /// `signalbox replay` reads no file of more than 2 GiB.
  std::size_t max_bytes = std::size_t{64} << 20U;
};

/// The buckets of the histograms of latencies: of calls, attempts, waits, configurations, actors.
enum class LatencyBuckets : std::uint8_t {
  kShort,  ///< 14 bounds from 0.5 ms to 10 s.
  kGrpc,   ///< gRPC's 41 bounds from 0 to 100 s (gRFC A66), which cost three times as many series.
};

/// Whether the metrics count calls, and by which labels.
enum class MetricsDetail : std::uint8_t {
  kCluster,
  /// Calls are also counted by endpoint: signalbox_endpoint_rpcs_total{cluster, endpoint, code}. At
  /// most 200 endpoints of the runtime have series of their own. The calls of all others are
  /// counted under the endpoint "other", and signalbox_metric_series_overflow_total counts these
  /// endpoints. The cost: a look-up for each pick, and one more counter for each call. The metrics
  /// of weighted_round_robin (signalbox_wrr_…) have the label locality.
  kEndpoint,
  /// Calls are neither counted nor timed: the call metrics have no series, and the status has no
  /// numbers of ended calls. All other metrics stay.
  kNone,
};

/// Durations must not be negative. Those above a century count as a century.
struct RuntimeOptions {
  /// The path of the bootstrap file, or the bootstrap's JSON. When neither is set, environment
  /// variables name the bootstrap (see above). To set both is an error of start().
  std::optional<std::string> bootstrap_path;
  std::optional<std::string> bootstrap_json;

  /// The time that a control plane has to send a resource. Afterwards the resource counts as absent
  /// (gRFC A57). With the server feature resource_timer_is_transient_error, the time is twice as
  /// long, and the resource then counts as unavailable (gRFC A88).
  std::chrono::nanoseconds resource_timeout = std::chrono::seconds(15);
  /// The time that a priority has to connect before the next priority is tried (gRFC A56). With a
  /// shorter connect_timeout of the cluster, the next priority may be tried sooner: a priority has
  /// failed when its attempts to connect to all endpoints have ended.
  std::chrono::nanoseconds failover_timeout = std::chrono::seconds(10);
  /// In each cluster: the number of priorities below the one in use that stay connected, as
  /// standbys. An aggregate in priority mode has at most one standby, its next leaf, whatever the
  /// number. While a priority that has lost its connections connects again, calls go to its first
  /// READY standby, and they return when the lost priority is READY. Most policies connect again at
  /// once, so no call waits. pick_first and ring_hash connect again when the next call asks for it:
  /// calls wait until that attempt has begun, and then go to the standby. 0, as in gRFC A56: the
  /// next priority is connected after the failure, and calls wait meanwhile.
  std::uint32_t standby_priorities = 0;
  /// The most points on a ring of ring_hash, whatever a control plane asks for (gRFC A42). When a
  /// cluster has more endpoints than this, some endpoints have no point and get no call: raise the
  /// cap for such clusters. A point costs 12 bytes.
  std::uint64_t ring_size_cap = 4096;

  /// What happens to an aggregate cluster when one of its underlying clusters does not exist, or
  /// was refused without an earlier good version. False, as in gRFC A74: the aggregate does without
  /// that cluster, and fails only when none is left. True, as in the older gRFC A37: the whole
  /// aggregate fails.
  bool missing_cluster_fails_aggregate = false;

  /// The mode of aggregate clusters without a mode in their CDS metadata ("signalbox":
  /// {"aggregate_mode": "priority" | "tiered"}).
  ///
  /// kPriority: all calls go to the first leaf that can take them, and there to the first priority
  /// that can (gRFC A75).
  ///
  /// kTiered: calls are spread over the priorities of all leaves by health, as in Envoy's aggregate
  /// cluster. A priority's capacity is 140 % of its healthy endpoints (EDS
  /// overprovisioning_factor); the next priority gets the rest. Each call draws a tier: the healthy
  /// or the DEGRADED endpoints of one priority. When its tier has no usable endpoint, the call
  /// waits or fails, and does not move to another tier. Calls of sessions go to their host, in any
  /// leaf. In this mode the client feature envoy.lb.does_not_support_overprovisioning is not sent
  /// to control planes.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// For kTiered: the panic threshold of aggregates without a healthy_panic_threshold in their CDS
  /// common_lb_config. In percent, at most 100. A priority panics when its share of healthy or
  /// DEGRADED endpoints is below the threshold while all priorities together cannot serve every
  /// call. Its calls then go to all of its endpoints but DRAINING ones, whatever their health. When
  /// the score (capacity in percent, rounded down) of every priority is 0, calls are spread over
  /// the priorities by their numbers of endpoints. A score is 0 when no endpoint is healthy or
  /// DEGRADED, or fewer than one in 140.
  ///
  /// 0 turns panic off; Envoy's default is 50. Without panic, when every score is 0, all calls go
  /// to the first priority with a healthy endpoint, else to the first with a DEGRADED endpoint.
  /// When there is no such endpoint, calls fail UNAVAILABLE.
  std::uint32_t panic_threshold = 0;
  /// For kTiered, and for zone-aware routing: an endpoint is unhealthy while it cannot be connected
  /// to. False, as in Envoy: only EDS, outlier detection and health checks decide on health.
  bool unreachable_is_unhealthy = true;
  /// Probes the endpoints of clusters that have health_checks (CDS), by gRPC's health service, HTTP
  /// or TCP. Endpoints with failing probes get no calls, except in panic: docs/configure.md. With
  /// kAssumed there are no probes. False, as in gRPC: health_checks are not read.
  bool active_health_checks = true;

  /// Back-off of connections to endpoints (gRPC's connection-backoff). When a server ends two
  /// connections in a row within `initial_backoff`, the second end counts as a failed attempt.
  std::chrono::nanoseconds initial_backoff = std::chrono::seconds(1);
  std::chrono::nanoseconds max_backoff = std::chrono::seconds(120);
  /// The first back-off after an endpoint's connection was lost: its process is usually restarting.
  /// The back-off then grows by 1.3 instead of 1.6 each time, so a restarted endpoint is found
  /// within about a third of the time that it was away. gRPC's back-off applies instead in three
  /// cases: 64 or more addresses of the cluster are connecting or failing; the endpoint has never
  /// been connected; this value is no less than `initial_backoff`.
  std::chrono::nanoseconds lost_backoff = std::chrono::milliseconds(200);

  /// The time that pick_first waits for one address before it tries the next one at the same time
  /// (gRFC A61). The other leaf policies use this delay for the addresses of one endpoint. A value
  /// below 100 ms counts as 100 ms, a value above 2 s as 2 s. An attempt to connect may take the
  /// cluster's connect_timeout in all, or 20 s without one in CDS, as in gRPC.
  std::chrono::nanoseconds connection_attempt_delay = std::chrono::milliseconds(250);

  /// The interval of pings on a silent connection to an endpoint. A connection without an answer
  /// within `keepalive_timeout` is lost: its calls fail UNAVAILABLE, and other endpoints take its
  /// place. Pings find endpoints that vanish without closing the connection, such as those of a
  /// machine that was cut off. Unset, as in gRPC: no pings.
  ///
  /// gRPC never sends pings closer than a second. A gRPC server by default allows no pings closer
  /// than five minutes, and closes a connection that has more (gRFC A8). Set the server's
  /// GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS first, and with keepalive_without_calls
  /// its GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS. These three options outrank gRPC's arguments for
  /// pings in `channel_arguments`.
  std::optional<std::chrono::nanoseconds> keepalive_time;
  std::chrono::nanoseconds keepalive_timeout = std::chrono::seconds(20);
  /// Also pings connections without calls.
  bool keepalive_without_calls = false;

  /// The most bytes of a request that are kept for retries, until the server has responded. The
  /// messages of a stream are one request. A call with a larger request is not retried by its
  /// route's retry policy (gRFC A44): signalbox_retries_total counts it as too_large. A stream with
  /// a larger request is not picked again either: see channel().
  std::size_t retry_buffer_bytes = std::size_t{256} << 10U;
  /// True: a retry avoids the endpoints that the call has tried, while there are others. The
  /// choice of a locality, round_robin, weighted_round_robin, random and least_request avoid them.
  /// ring_hash, maglev, pick_first and a session do not: they bind a call to its endpoint. False,
  /// as in gRPC: a retry is picked like a new call, unless its route's retry policy says otherwise
  /// (retry_host_predicate: previous_hosts).
  bool retry_elsewhere = true;
  /// Stops the retries of a target while too many of its calls fail (gRFC A6). A failed attempt
  /// takes a token if the route's policy retries its code, or if the server asks not to retry. A
  /// success gives `token_ratio` of a token back. While half of the tokens or more are gone, there
  /// are no retries. Exception: attempts that reached no server, and the first attempt of a call
  /// that a server refused unprocessed, take no token and are not throttled. Unset: no throttling,
  /// as in gRPC without a service config; xDS has no field for it.
  std::optional<RetryThrottling> retry_throttling;

  /// With kTcp and kAssumed, every call on a channel() fails, and channel_credentials and
  /// channel_arguments do not apply to the connections to endpoints. With kTcp, the pings of
  /// keepalive_time are TCP's keepalive probes.
  EndpointTransport transport = EndpointTransport::kGrpc;

  /// The credentials of connections to endpoints of clusters without TLS; unset: insecure. They
  /// check the server's name against the target's authority, as on gRPC's own channel. They are
  /// never used when a cluster asks for TLS. Such a connection uses TLS as CDS says, with the
  /// certificates of the bootstrap's certificate_providers, or it is not made (gRFC A29;
  /// docs/configure.md).
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials;
  /// The arguments of the gRPC channels to endpoints. Each of these channels is exactly one
  /// connection. Arguments for retries, back-off, idle timeout, the subchannel pool, the resolution
  /// of service configs and the authority filter are therefore refused; the error of start() names
  /// the argument. GRPC_ARG_DEFAULT_AUTHORITY replaces the target's authority in calls and in TLS
  /// handshakes. Unless set here, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, the window of a stream, is
  /// 1 MiB, and GRPC_ARG_HTTP2_BDP_PROBE, which lets the window grow, is off.
  grpc::ChannelArguments channel_arguments;

  /// True: signalbox itself connects the sockets of plaintext connections, and gives them to gRPC
  /// when the server has sent its HTTP/2 SETTINGS. A connection then costs about half the memory
  /// and a third of the CPU time of one that gRPC makes. Connections with TLS, and to servers that
  /// wait for the client's preface, such as Envoy, are made by gRPC. ClientContext::auth_context()
  /// of calls on such a socket is empty. gRPC makes all connections, and a line in the log says
  /// why, if this is not possible with this build of gRPC, if channel_arguments have one that only
  /// gRPC's own connections follow, or if the environment sets an HTTP proxy. If the process has no
  /// descriptors left, signalbox tries again later. False: gRPC makes all connections. The
  /// environment variable SIGNALBOX_SOCKET_CONNECTIONS=false says so for all runtimes of the
  /// process.
  bool socket_connections = true;

  /// The most connections to one endpoint that a cluster may ask for, with
  /// circuit_breakers.per_host_thresholds.max_connections (gRFC A105); greater numbers count as
  /// this one. A cluster with 2 or more gets another connection to an endpoint when calls wait
  /// because all streams of its connections are in use. 1 to 64; 1: one connection to each
  /// endpoint.
  std::uint32_t max_connections_per_endpoint = 10;
  /// The calls that the servers allow on a connection at a time (HTTP/2's MAX_CONCURRENT_STREAMS),
  /// for connections that gRPC makes: gRPC does not say the number. On those of socket_connections
  /// signalbox has seen the server's own number, which goes first. Unset: such an endpoint has one
  /// connection, as without A105. Must not be 0.
  std::optional<std::uint32_t> streams_per_connection;

  /// Limits on the data from a control plane or a resource file. A resource beyond a limit is
  /// refused with the limit's name, and counted (signalbox_config_rejected_total, reason="limit").
  /// Its last good version stays in use, unless the server has the feature fail_on_data_errors.
  xds::Limits limits;
  /// The interval of pings to a silent control plane. A control plane without an answer within 20 s
  /// is lost. The interval doubles each time that a server of gRPC's C core complains of too many
  /// pings: many servers allow no interval below five minutes (gRFC A8).
  std::chrono::nanoseconds xds_keepalive_time = std::chrono::minutes(5);

  SessionCookieOptions session_cookies;

  /// The program's own LB policies, beside those of signalbox (gRFC A52): see policy.hpp. Names are
  /// unique. An invalid registration is an error of start() that names it.
  std::vector<CustomLbPolicy> lb_policies;

  /// The program's own HTTP filters, beside those of signalbox: router, fault and stateful_session
  /// (gRFC A39). See filter.hpp. Types are unique. An invalid registration is an error of start()
  /// that names it.
  std::vector<CustomHttpFilter> http_filters;

  /// Sees the program's calls, for an exporter of traces: attempts, delays and their reasons. See
  /// call_observer.hpp for threads, rules and costs, and examples/opentelemetry. Null: none.
  std::shared_ptr<CallObserver> call_observer;

  /// Records for `signalbox replay` what comes from outside: the responses of control planes, how
  /// attempts to connect and connections ended, answers of DNS and of health checks, which targets
  /// are in use, and when. Never recorded: calls with their metadata and messages, credentials,
  /// certificates. Resources are written as they were sent, so a secret in a resource is in the
  /// file. Calls do not wait for the recording. When the file cannot be written, recording ends,
  /// with a line in the log. start() fails when the file cannot be created, or while another
  /// runtime records to the path. docs/operate.md, "Replaying an outage". Unset: nothing is
  /// recorded.
  std::optional<RecordOptions> record;

  LatencyBuckets latency_buckets = LatencyBuckets::kShort;
  MetricsDetail metrics_detail = MetricsDetail::kCluster;

  /// Resolves "host:port" of LOGICAL_DNS clusters to "ip:port" texts; unset: getaddrinfo. Called on
  /// a thread of the runtime; may block.
  std::function<absl::StatusOr<std::vector<std::string>>(const std::string& name)> name_lookup;

  /// Receives lines for the operator, such as: a target is served (once), why a changed resource
  /// file is not used, which certificate file went bad, why a custom policy died, which control
  /// plane was lost, the call_observer threw. Unset: lines go to stderr. Called on any thread,
  /// also inside start(), a scrape of the metrics, or a call with a throwing call_observer. Two
  /// threads may call it at a time. It must not throw or destroy the runtime. Control characters
  /// in the text are escaped. For each kind of event, a burst of 20 lines passes, and then one line
  /// every 3 s; that line has the number of lines that were left out.
  std::function<void(const std::string& text)> log;
  /// As `log`, with level and kind beside the text. Set only one of `log` and `log_line`.
  std::function<void(const LogLine& line)> log_line;
  /// Lines below this level are dropped. kInfo adds applied configurations, recovered priorities,
  /// and control planes that are back.
  LogLevel log_level = LogLevel::kNotice;

  /// Abseil can look for deadlocks whenever gRPC takes a lock. Debian's build of Abseil does so in
  /// every process, which costs a good part of gRPC's CPU time, and memory for each mutex. False:
  /// start() turns the detection off for the whole process (absl::SetMutexDeadlockDetectionMode).
  /// True: start() leaves it as it is.
  bool detect_deadlocks = false;

  /// Each time that 10,000 subchannels (one for each address of an endpoint) have ended, returns
  /// their memory to the system by glibc's malloc_trim, which goes through the whole heap of the
  /// process. It runs a few times within three minutes, on a thread of its own. A thread that
  /// allocates meanwhile may wait some milliseconds. Before the first run,
  /// signalbox sets M_TRIM_THRESHOLD to 1 MiB for the whole process (mallopt): from then on glibc
  /// no longer adjusts that threshold or M_MMAP_THRESHOLD. Other allocators are left alone.
  bool trim_heap = true;

  /// Threads of the actors' scheduler; at least 1.
  std::size_t scheduler_threads = 2;
  /// The seed of the runtime's own random numbers (jitter of timers, shuffles of endpoints), not of
  /// calls; unset: from the system.
  std::optional<std::uint64_t> seed;
};

/// Which services Runtime::add_admin_services adds.
struct AdminServices {
  bool csds = true;      ///< envoy.service.status.v3.ClientStatusDiscoveryService
  bool channelz = true;  ///< grpc.channelz.v1.Channelz
  bool health = true;    ///< grpc.health.v1.Health
};

class Runtime {
 public:
  /// Starts a runtime. An error in the bootstrap or the options names the variable or path, the
  /// field or the line, and the value that was found.
  static absl::StatusOr<std::unique_ptr<Runtime>> start(RuntimeOptions options = {});

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

  /// Options of one channel.
  struct ChannelOptions {
    /// As in grpc::experimental::CreateCustomChannelWithInterceptors; null interceptors are left
    /// out.
    Interceptors interceptors;
    /// The :authority of the channel's calls; empty: see channel(). TLS handshakes never use it,
    /// because channels share connections. It must be printable ASCII, or every call on the channel
    /// fails.
    std::string authority;
  };

  /// A drop-in gRPC channel for "xds:///name" or "xds://authority/name"; never null. With an
  /// invalid target, every call on the channel fails with the reason.
  ///
  /// The channel needs gRPC 1.51. All kinds of method work, in the sync, async and callback APIs
  /// and through generic stubs, and behave as on gRPC's own channel, with every setting of a
  /// ClientContext. The differences:
  /// - Route and connection are chosen when the call is made, from the metadata that the context
  ///   has then. Metadata that interceptors add is sent, but routes and HTTP filters do not see it.
  ///   Metadata that filters add is in the context from then on.
  /// - Metadata that gRPC would not send fails the call INTERNAL; on gRPC's own channel it ends the
  ///   process. Such metadata has a name that is not of a-z, 0-9, '-', '_' and '.', or a value that
  ///   is not printable ASCII without "-bin" at the end of its name. It is removed from the
  ///   context. A method or an authority that is not printable ASCII fails its call, too.
  /// - A call that no server has processed is picked again at once, but only once after a server
  ///   has received a part of it. Its connection died before the call was sent, or the server's
  ///   GOAWAY excluded it, or the server refused it with REFUSED_STREAM. Other failed calls are
  ///   retried as their route's retry policy says. Both rules hold for unary calls and for streams,
  ///   until the server has responded. After more than retry_buffer_bytes were sent, no policy
  ///   retries the call. A stream is then not picked again either, and neither is a unary call that
  ///   reads its headers separately. When a stream that sends its headers together with its first
  ///   message (corked) fails, gRPC may not say whether a server has seen it; the stream then
  ///   counts as processed.
  /// - When a call fails because its connection breaks off, its status names target, cluster and
  ///   endpoint before gRPC's reason.
  /// - A call does not wait for a retry that would begin after its deadline: the call ends at once,
  ///   with the status of its last attempt.
  /// - When a call is made again, gRPC's global interceptor sees the end of the first attempt; the
  ///   channel's interceptors see one call. The global interceptor also sees the ADS streams.
  /// - The authority of a call is the first of these that is set: the context's; the endpoint's
  ///   hostname, if the call's route says so and the control plane is trusted (gRFC A81);
  ///   ChannelOptions::authority; GRPC_ARG_DEFAULT_AUTHORITY of RuntimeOptions::channel_arguments;
  ///   the target's, as on gRPC's own channel: "orders.example:80" for "xds:///orders.example:80".
  ///   The virtual host is chosen by the target, and none of these changes it.
  /// - There is no service config. Only the channelz of add_admin_services() shows the channel.
  ///   Features that gRPC has for grpc::Channel alone are missing (its load-balancing policy's
  ///   name, ResetConnectionBackoff).
  ///
  /// Callbacks run on gRPC's own threads. Interceptors run on the thread that starts the batch.
  /// After a call has waited, they run on the thread of the runtime or of gRPC that ends the wait:
  /// they must not block. A call costs as much as on a grpc::Channel, plus one pick.
  std::shared_ptr<grpc::ChannelInterface> channel(const std::string& target,
                                                  Interceptors interceptors = {});
  std::shared_ptr<grpc::ChannelInterface> channel(const std::string& target,
                                                  ChannelOptions options);

  /// The Pick API for the same targets: see router.hpp. INVALID_ARGUMENT for an invalid target.
  absl::StatusOr<std::shared_ptr<Router>> router(const std::string& target);

  /// All metrics of this runtime, for the embedding server's own exposer or as text. Only the text
  /// has the standard metrics of the process (process_cpu_seconds_total and so on), because an
  /// exposer may have its own.
  std::shared_ptr<prometheus::Collectable> metrics() const;
  std::string metrics_text() const;

  /// Serves /metrics on "host:port" until the runtime ends; port 0 takes a free port. An address
  /// that is only a port listens on 127.0.0.1, to which other machines have no access. Returns the
  /// port.
  absl::StatusOr<int> serve_metrics(const std::string& address);

  /// The xDS client's knowledge of every resource in use: state, version, times, last error (gRFC
  /// A40). A thread of the runtime makes the dump, and no call waits for it. dump() blocks until
  /// the dump is made: do not call it from a callback. UNAVAILABLE while the xDS client is being
  /// restarted, DEADLINE_EXCEEDED after 10 s.
  absl::StatusOr<ResourceDump> dump() const;

  /// As dump(), in JSON with the field names of CSDS, and with the resources themselves. Possible
  /// secrets in them are "[redacted]". The format: xds/dump_json.hpp.
  absl::StatusOr<std::string> dump_json() const;

  /// Explains where a call would go and why, as JSON (xds/explanation_json.hpp). `target`: a target
  /// that a channel or a router of this runtime has. `method`: "/package.Service/Method".
  /// `headers`: the call's headers, cookies included, with names in lower case. The JSON does not
  /// quote their values; xds/explanation_json.hpp names the exceptions. `seed`: the number from
  /// which the call's random choices are computed; unset: any. INVALID_ARGUMENT: no channel or
  /// router has the target; the error lists the targets in use.
  absl::StatusOr<std::string> explain_json(
      const std::string& target,
      const std::string& method,
      const std::vector<std::pair<std::string, std::string>>& headers = {},
      std::optional<std::uint64_t> seed = std::nullopt) const;

  /// Plans how the calls to a cluster would spread, with the resources in use now: see plan.hpp.
  /// aggregate_mode, lb_policies and certificate_providers of `request` are ignored: those of the
  /// runtime apply. A panic threshold of 0 in `request` means RuntimeOptions::panic_threshold; an
  /// aggregate's own threshold comes first. Errors are those of plan_text() and dump(). plan()
  /// blocks as dump() does.
  absl::StatusOr<Plan> plan(PlanRequest request = {}) const;

  /// What every target of this runtime is doing now, and why: see runtime_status.hpp. The status is
  /// copied from data that the runtime's actors have published, so no actor and no call waits. Any
  /// thread may call status(), also in a callback. It takes time in proportion to the number of
  /// endpoints.
  RuntimeStatus status() const;

  /// Whether calls to the target can be sent: a configuration is in use, and the channel's state is
  /// READY or IDLE. With an empty `target`: whether that holds for every target in use; true when
  /// no target is in use. nullopt: no channel or router has the target. Reads atomics, and waits
  /// for no actor and no call.
  std::optional<bool> ready(const std::string& target = "") const;

  /// Opens a read-only admin server for users of this machine, until the runtime ends: pages for a
  /// browser (/, /clusters, /priorities, /certs), and for programs /ready, /status, /config_dump
  /// (dump_json), /explain (explain_json), /metrics and more, which /help lists. It is never opened
  /// by default.
  /// `address`: "unix:PATH", a socket of mode 0660, or "HOST:PORT" of the loopback interface, where
  /// every process of the machine has access; port 0 takes a free port. Returns the address as
  /// `signalbox dump --admin` takes it. INVALID_ARGUMENT for any other address, UNAVAILABLE when
  /// listening there fails.
  absl::StatusOr<std::string> serve_admin(const std::string& address);

  /// Adds gRPC's admin services to a server of the program's own. They are in a library of their
  /// own: link signalbox::admin_services. The server's ports and credentials decide which clients
  /// have access.
  /// - CSDS shows what dump_json() shows, redacted in the same way, as one ClientConfig.
  /// - channelz shows status(): each target is a top channel with its subchannels and sockets.
  ///   gRPC's own channels and servers are shown, too.
  /// - health reports ready(): of all targets for the service "", of one target for the service
  ///   with the target's name. List (gRFC A90) has all of them.
  ///
  /// The runtime must outlive the server. Shut the server down with a deadline: a client's Watch
  /// does not end by itself. A server can have the services of one runtime.
  /// FAILED_PRECONDITION: the process has gRPC's own channelz (InitChannelzService) or gRPC's own
  /// health service (EnableDefaultHealthCheckService) on its servers, and `services` adds a second
  /// one. When the program has registered such a service itself, BuildAndStart() returns null.
  absl::Status add_admin_services(grpc::ServerBuilder& builder, AdminServices services = {});

  /// How often calls on channels were picked again because no server had processed them.
  std::int64_t repicked() const;

 private:
  struct State;
  explicit Runtime(std::unique_ptr<State> state);
  /// Keeps `object` alive until the runtime is destroyed.
  void keep(std::shared_ptr<void> object);
  /// ready() of each target in use, by the target's name.
  std::map<std::string, bool> readiness() const;
  /// Exports the counters of `limits` with the value 0. Returns a function that counts each limit
  /// that is reached.
  LimitHit count_limits(std::span<const AdminLimit> limits) const;
  std::unique_ptr<State> state_;
};

}  // namespace signalbox
