// SPDX-License-Identifier: Apache-2.0
#include "signalbox/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

#include "actors/assumed_connector.hpp"
#include "actors/heap_trimmer.hpp"
#include "actors/host.hpp"
#include "actors/io/address_lookup.hpp"
#include "actors/io/file_ads_transport.hpp"
#include "actors/io/grpc_ads_transport.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/grpc_load_streams.hpp"
#include "actors/io/health_prober.hpp"
#include "actors/io/process_facts.hpp"
#include "actors/io/tcp_connector.hpp"
#include "actors/log.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/recording_seams.hpp"
#include "channel/admin/admin_server.hpp"
#include "channel/admin/explain_page.hpp"
#include "channel/admin/metrics_server.hpp"
#include "channel/check_options.hpp"
#include "channel/environment_parts.hpp"
#include "channel/grpc/grpc_channel.hpp"
#include "channel/grpc/session_cookies.hpp"
#include "channel/http_filters.hpp"
#include "channel/lb_policies.hpp"
#include "channel/plan_world.hpp"
#include "channel/recorded_options.hpp"
#include "channel/status_of.hpp"
#include "channel/target.hpp"
#include "channel/target_table.hpp"
#include "messages/build_facts.hpp"
#include "messages/counting/load_book.hpp"
#include "messages/header_rules.hpp"
#include "metrics/exporter.hpp"
#include "xds/bootstrap.hpp"
#include "xds/client/client_options.hpp"
#include "xds/dump_json.hpp"
#include "xds/explanation_json.hpp"
#include "xds/node.hpp"
#include "xds/parse/response_parser.hpp"
#include "xds/server_uri.hpp"

namespace signalbox {
namespace {

const char* variable(const char* name) {
  return std::getenv(name);
}

absl::StatusOr<xds::Bootstrap> read_bootstrap(const RuntimeOptions& options) {
  if (options.bootstrap_path)
    return xds::load_bootstrap(xds::BootstrapFile{*options.bootstrap_path});
  if (options.bootstrap_json)
    return xds::load_bootstrap(xds::BootstrapText{*options.bootstrap_json});
  return xds::load_bootstrap(xds::BootstrapEnvironment{variable});
}

std::shared_ptr<actors::NameLookup> make_lookup(const RuntimeOptions& options) {
  if (!options.name_lookup) return actors::make_system_lookup();
  return actors::make_lookup(
      [lookup = options.name_lookup](const DnsName& name) -> absl::StatusOr<std::vector<Address>> {
        const auto texts = lookup(name.str());
        if (!texts.ok()) return texts.status();
        return std::vector<Address>(texts->begin(), texts->end());
      });
}

// Not std::cerr: after one line for which there is no room, std::cerr writes nothing any more.
// False: the line is lost.
bool log_to_stderr(const LogLine& line) {
  const std::string text =
      absl::StrCat("signalbox: ", to_string(line.level), ": ", text_of(line), "\n");
  return std::fwrite(text.data(), 1, text.size(), stderr) == text.size() &&
         std::fflush(stderr) == 0;
}

std::shared_ptr<actors::Log> make_log(const RuntimeOptions& options,
                                      const std::shared_ptr<metrics::Instruments>& instruments) {
  actors::Log::Sink sink = [instruments](const LogLine& line) {
    if (!log_to_stderr(line)) instruments->count_log_lines_lost(1);
  };
  if (options.log) sink = [log = options.log](const LogLine& line) { log(text_of(line)); };
  if (options.log_line) sink = options.log_line;
  if (!options.log && !options.log_line) instruments->count_log_lines_lost(0);
  return std::make_shared<actors::Log>(options.log_level, std::move(sink));
}

using LogText = std::function<void(const std::string& text)>;

// Returns a log function for parts that report texts only: it logs each text as a warning of
// `kind`.
LogText texts_to(const std::shared_ptr<actors::Log>& log, LogKind kind) {
  return [log, kind](const std::string& text) { log->write({LogLevel::kWarning, kind, text}); };
}

// Returns null if the program has no call_observer. Calls may outlive the runtime and its log, so
// `complain` does nothing when the log is gone.
std::shared_ptr<const channel::CallTracing> tracing_of(const RuntimeOptions& options,
                                                       const std::shared_ptr<actors::Log>& log,
                                                       const std::string& target) {
  if (options.call_observer == nullptr) return nullptr;
  auto complain = [weak = std::weak_ptr(log)](const std::string& text) {
    const auto known = weak.lock();
    if (known != nullptr) known->write({LogLevel::kError, LogKind::kCallObserver, text});
  };
  return std::make_shared<const channel::CallTracing>(
      channel::CallTracing{options.call_observer, target, std::move(complain)});
}

// The settings of a resource file. Only files that are unusable as a whole are counted here. An
// invalid resource in a usable file is counted by the xDS client, like a resource of a server.
actors::FileAdsOptions file_options(const RuntimeOptions& options,
                                    const std::shared_ptr<actors::Log>& log,
                                    const std::string& path,
                                    const std::shared_ptr<metrics::Instruments>& instruments) {
  instruments->count_config_rejected("unreadable", 0);
  instruments->count_config_rejected("parse", 0);
  instruments->count_config_rejected("limit", 0);
  return {.path = path,
          .limits = options.limits,
          .complain = [log = texts_to(log, LogKind::kConfigRefused), instruments](
                          actors::FileTrouble trouble, const std::string& text) {
            if (trouble == actors::FileTrouble::kUnreadable)
              instruments->count_config_rejected("unreadable");
            if (trouble == actors::FileTrouble::kUnparsable)
              instruments->count_config_rejected("parse");
            if (trouble == actors::FileTrouble::kBeyondLimit)
              instruments->count_config_rejected("limit");
            log(text);
          }};
}

// Where certificates are used, as label values of metrics.
constexpr char kControlPlane[] = "control_plane";
constexpr char kEndpoint[] = "endpoint";

// Adds the certificate files that are used at `place` to the metric of certificates' expiry times,
// until the files are no longer used.
actors::ShowFiles shown_in(const std::shared_ptr<metrics::Instruments>& instruments,
                           const char* place) {
  return [instruments, place](const std::shared_ptr<actors::TlsFiles>& files) {
    instruments->watch_certificates(
        place, [known = std::weak_ptr(files)]() -> std::optional<CertificateEnds> {
          const auto used = known.lock();
          return used == nullptr ? std::nullopt : std::optional(used->ends());
        });
  };
}

// The settings of gRPC streams to a control plane, for resources (ADS) and for load reports.
actors::GrpcAdsOptions stream_options(const RuntimeOptions& options,
                                      const std::shared_ptr<actors::Log>& log,
                                      const xds::ServerConfig& server,
                                      const std::shared_ptr<metrics::Instruments>& instruments) {
  for (const char* reason : {"limit", "parse", "certificate"})
    instruments->count_config_rejected(reason, 0);
  if (std::holds_alternative<xds::InsecureCredentials>(server.channel_creds) &&
      !xds::is_loopback(server.server_uri)) {
    log->write(
        {LogLevel::kWarning,
         LogKind::kSecurity,
         absl::StrCat("xDS server ",
                      server.server_uri,
                      ": channel_creds are \"insecure\": configuration crosses the network in "
                      "plaintext, and every hop on the way can change it")});
  }
  actors::GrpcAdsOptions stream;
  stream.server_uri = server.server_uri;
  instruments->count_certificate_failure(kControlPlane, 0);
  stream.credentials = actors::make_credentials(
      server.channel_creds,
      [log = texts_to(log, LogKind::kCertificate), instruments, name = server.server_uri](
          const std::string& text) {
        instruments->count_config_rejected("certificate");
        instruments->count_certificate_failure(kControlPlane);
        log(absl::StrCat("xDS server ", name, ": ", text));
      },
      shown_in(instruments, kControlPlane));
  stream.security = actors::security_of(server.channel_creds);
  stream.max_message_bytes =
      static_cast<int>(std::min<std::size_t>(options.limits.max_message_bytes, INT_MAX));
  stream.keepalive_time =
      std::chrono::duration_cast<std::chrono::milliseconds>(options.xds_keepalive_time);
  return stream;
}

// Adds the transports to all control planes. A resource file stands for a control plane, and comes
// first. A file gets no load reports. With kAssumed no server gets load reports, because there are
// no calls.
absl::Status add_transports(const RuntimeOptions& options,
                            const std::shared_ptr<actors::Log>& log,
                            const xds::Bootstrap& bootstrap,
                            const std::shared_ptr<metrics::Instruments>& instruments,
                            actors::Environment& environment) {
  if (bootstrap.resources_file) {
    auto file = actors::make_file_ads_transport(
        file_options(options, log, *bootstrap.resources_file, instruments));
    if (!file.ok()) return file.status();
    environment.ads_transports.push_back(*std::move(file));
    environment.load_transports.push_back(nullptr);
  }
  std::set<ServerId> reported;
  for (const xds::ServerConfig& server : xds::distinct_servers(bootstrap)) {
    reported.insert(environment.load_transports.size());
    actors::GrpcAdsOptions stream = stream_options(options, log, server, instruments);
    environment.ads_transports.push_back(actors::make_grpc_ads_transport(stream));
    stream.method = actors::kLrsMethod;
    environment.load_transports.push_back(actors::make_grpc_ads_transport(std::move(stream)));
  }
  if (options.transport != EndpointTransport::kAssumed)
    environment.policy.load_book = std::make_shared<LoadBook>(std::move(reported));
  return {};
}

using Retire = std::function<void(std::unique_ptr<const Tracked>)>;

absl::StatusOr<std::shared_ptr<actors::Connector>> make_tcp_connector(const RuntimeOptions& options,
                                                                      Retire retire) {
  actors::TcpConnectorOptions tcp{.retire = std::move(retire)};
  if (options.keepalive_time) {
    tcp.keepalive = {.time = std::chrono::ceil<std::chrono::seconds>(*options.keepalive_time),
                     .timeout = std::chrono::ceil<std::chrono::seconds>(options.keepalive_timeout)};
  }
  return actors::TcpConnector::start(std::move(tcp));
}

std::shared_ptr<actors::Connector> make_grpc_connector(
    const RuntimeOptions& options,
    const std::shared_ptr<actors::Log>& log,
    const xds::Bootstrap& bootstrap,
    const std::shared_ptr<metrics::Instruments>& instruments,
    Retire retire) {
  actors::GrpcConnectorOptions connector;
  if (!bootstrap.certificate_providers.empty()) {
    instruments->count_config_rejected("certificate", 0);
    instruments->count_certificate_failure(kEndpoint, 0);
  }
  connector.cluster_credentials = actors::make_cluster_credentials(
      bootstrap.certificate_providers,
      [log = texts_to(log, LogKind::kCertificate), instruments](const std::string& text) {
        instruments->count_config_rejected("certificate");
        instruments->count_certificate_failure(kEndpoint);
        log(text);
      },
      shown_in(instruments, kEndpoint));
  connector.credentials = options.channel_credentials;
  connector.arguments = options.channel_arguments;
  if (options.keepalive_time) {
    connector.keepalive = {
        .time = std::chrono::ceil<std::chrono::milliseconds>(*options.keepalive_time),
        .timeout = std::chrono::ceil<std::chrono::milliseconds>(options.keepalive_timeout),
        .without_calls = options.keepalive_without_calls};
  }
  connector.sockets = options.socket_connections && actors::environment_allows_sockets();
  connector.stream_limit = options.streams_per_connection;
  connector.no_sockets = texts_to(log, LogKind::kConfigRefused);
  connector.retire = std::move(retire);
  return std::make_shared<actors::GrpcConnector>(std::move(connector));
}

// Makes the streams of the endpoints' load reports. If an endpoint has no OpenRcaService, the log
// says so once for each connection to the endpoint, unless the log's rate limit drops the line.
std::shared_ptr<actors::LoadStreams> make_load_streams(
    const std::shared_ptr<actors::Log>& log,
    const std::shared_ptr<metrics::Instruments>& instruments,
    std::uint64_t seed) {
  actors::GrpcLoadStreamsOptions streams;
  streams.count_report = [instruments](LoadReportResult result) {
    instruments->count_streamed_load_report(result);
  };
  streams.stream_ended = [log, instruments](const Address& address, LoadStreamEnd how) {
    instruments->count_endpoint_load_stream(how);
    if (how != LoadStreamEnd::kUnimplemented) return;
    log->write({LogLevel::kError,
                LogKind::kEndpointLoad,
                absl::StrCat("endpoint ",
                             address.str(),
                             " has no service xds.service.orca.v3.OpenRcaService "
                             "(UNIMPLEMENTED), which enable_oob_load_report needs: it has no "
                             "weight of its own until it reconnects; serve it there, or unset "
                             "enable_oob_load_report in its cluster")});
  };
  streams.seed = seed;
  return actors::make_grpc_load_streams(std::move(streams));
}

// Makes the connector of calls (environment.connector), as options.transport says, and the prober
// of health checks. gRPC health checks need a gRPC connector even with kTcp; with kGrpc, calls use
// the same connector. With kAssumed there are no health checks.
absl::Status add_connectors(const RuntimeOptions& options,
                            const std::shared_ptr<actors::Log>& log,
                            const xds::Bootstrap& bootstrap,
                            const std::shared_ptr<metrics::Instruments>& instruments,
                            actors::Environment& environment) {
  const Retire retire = [reclaimer = environment.reclaimer](std::unique_ptr<const Tracked> unused) {
    reclaimer->retire(std::move(unused));
  };
  if (options.transport == EndpointTransport::kAssumed) {
    environment.connector = std::make_shared<actors::AssumedConnector>(retire);
    return {};
  }
  const auto grpc = make_grpc_connector(options, log, bootstrap, instruments, retire);
  environment.connector = grpc;
  if (options.transport == EndpointTransport::kTcp) {
    auto tcp = make_tcp_connector(options, retire);
    if (!tcp.ok()) return tcp.status();
    environment.connector = *std::move(tcp);
  }
  if (!options.active_health_checks) return {};
  auto prober = actors::make_health_prober(grpc);
  if (!prober.ok()) return prober.status();
  environment.health_prober = *std::move(prober);
  return {};
}

std::uint64_t some_seed() {
  std::random_device entropy;
  return (static_cast<std::uint64_t>(entropy()) << 32U) | entropy();
}

// Adds what the actors have from this process: name look-up, log, seed.
void add_process(const RuntimeOptions& options,
                 const std::shared_ptr<actors::Log>& log,
                 actors::Environment& environment) {
  environment.name_lookup = make_lookup(options);
  environment.seed = options.seed.value_or(some_seed());
  environment.log = [log](LogLine line) { log->write(std::move(line)); };
}

metrics::LatencyScale scale_of(const RuntimeOptions& options) {
  return options.latency_buckets == LatencyBuckets::kGrpc ? metrics::LatencyScale::kGrpc
                                                          : metrics::LatencyScale::kShort;
}

metrics::CallMetrics call_metrics_of(const RuntimeOptions& options) {
  return options.metrics_detail == MetricsDetail::kNone ? metrics::CallMetrics::kOff
                                                        : metrics::CallMetrics::kOn;
}

}  // namespace

static_assert(RuntimeStatus::kChanges == actors::ChangeLog::kMost);

// The members are in the order of their construction, because later members use earlier ones.
struct Runtime::State {
  State(RuntimeOptions checked, xds::Bootstrap from)
      : options(std::move(checked)), bootstrap(std::move(from)) {}

  const RuntimeOptions options;
  const xds::Bootstrap bootstrap;
  std::shared_ptr<metrics::Instruments> instruments = std::make_shared<metrics::Instruments>(
      std::chrono::steady_clock::now, scale_of(options), call_metrics_of(options));
  const std::shared_ptr<actors::Log> log = make_log(options, instruments);
  channel::ParseOptionsPtr parsing;
  /// True once the runtime ends. Parsers then abandon the response that they are parsing.
  std::shared_ptr<std::atomic<bool>> ending = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<metrics::Exporter> exporter =
      std::make_shared<metrics::Exporter>(instruments, actors::read_process);
  const WallTime started = std::chrono::system_clock::now();
  std::shared_ptr<actors::ChangeLog> changes = std::make_shared<actors::ChangeLog>();
  std::shared_ptr<channel::ChannelCounts> counts = std::make_shared<channel::ChannelCounts>();
  actors::ReclaimerThread reclaimer;
  std::shared_ptr<actors::Recorder> recorder;  ///< Null: nothing is recorded.
  std::unique_ptr<actors::Host> host;
  std::shared_ptr<channel::HostLink> link;
  std::optional<channel::SessionCookies> session_cookies;
  channel::TargetTable targets;
  std::mutex mutex;  ///< Guards the members below.
  std::vector<std::unique_ptr<channel::MetricsServer>> servers;
  std::vector<std::unique_ptr<channel::AdminServer>> admins;
  std::vector<std::shared_ptr<void>> kept;

  absl::StatusOr<actors::Environment> make_environment();
  absl::Status add_extensions(actors::Environment& environment);
  absl::Status begin_record(actors::Environment& environment);
  absl::StatusOr<std::shared_ptr<channel::Target>> target(const std::string& name);
  std::shared_ptr<channel::Target> make_target(const std::string& name, std::string listener);
  RuntimeStatus status() const;
  absl::StatusOr<ResourceDump> dump() const;
  std::vector<AppliedConfig> applied() const;
  absl::StatusOr<std::string> explain(const channel::ExplainQuestion& question);
};

absl::StatusOr<std::shared_ptr<channel::Target>> Runtime::State::target(const std::string& name) {
  const auto listener = xds::listener_resource_name(bootstrap, name);
  if (!listener.ok()) return listener.status();
  return targets.find_or_make(name, [&] { return make_target(name, *listener); });
}

std::shared_ptr<channel::Target> Runtime::State::make_target(const std::string& name,
                                                             std::string listener) {
  auto fresh = std::make_shared<channel::Target>(
      lb::CallerNames{name, bootstrap.node.id},
      std::make_shared<const lb::Sessions>(session_cookies->terms(name, link)));
  if (const auto& throttling = options.retry_throttling) {
    fresh->throttle_retries(
        std::make_shared<lb::RetryThrottle>(throttling->max_tokens, throttling->token_ratio));
  }
  fresh->count_callers(instruments->caller_stats(name));
  fresh->trace_calls(tracing_of(options, log, name));
  actors::ChannelPort port;
  port.target = name;
  port.listener_resource = std::move(listener);
  port.authority = xds::data_plane_authority(name);
  port.status = std::make_shared<actors::TargetBoard>(name, changes);
  fresh->open(link, std::move(port));
  return fresh;
}

RuntimeStatus Runtime::State::status() const {
  const channel::Moment now{std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
  RuntimeStatus status;
  status.version = std::string(build_version());
  status.made = now.wall;
  status.started = started;
  status.node_id = bootstrap.node.id;
  status.ready = true;
  for (const auto& [name, target] : targets.in_use()) {
    status.targets.push_back(
        channel::status_of(name, target->board()->pieces(), options.aggregate_mode, now));
    if (target->callers() != nullptr) channel::add_calls(status.targets.back(), *target->callers());
    status.ready = status.ready && status.targets.back().ready;
  }
  for (const auto& change : changes->last())
    status.changes.push_back(channel::status_of(change, now));
  return status;
}

// Explains only targets in use. To open an unused target would connect to its endpoints, and so
// change the state that is to be explained.
absl::StatusOr<std::string> Runtime::State::explain(const channel::ExplainQuestion& question) {
  std::shared_ptr<channel::Target> found;
  std::vector<std::string> in_use;
  for (auto& [name, target] : targets.in_use()) {
    in_use.push_back(name);
    if (name == question.target) found = std::move(target);
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target: '",
        question.target,
        "' is not in use here",
        in_use.empty() ? "" : absl::StrCat("; there are: ", absl::StrJoin(in_use, ", "))));
  }
  const std::uint64_t seed = question.seed.value_or(next_seed());
  const channel::QuestionHeaders headers(question);
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  // With kAssumed there are no real calls, so round_robin has no real position to explain. The seed
  // decides instead, so that equal questions have equal answers.
  const Turns turns =
      options.transport == EndpointTransport::kAssumed ? Turns::kBySeed : Turns::kAsTheyAre;
  return xds::to_json_text({question.target, question.method, seed},
                           found->router().explain({question.method, &headers, seed}, now, turns));
}

// The longest wait for a dump. A working xDS client answers much sooner.
constexpr auto kDumpPatience = std::chrono::seconds(10);

absl::StatusOr<ResourceDump> Runtime::State::dump() const {
  auto reply = std::make_shared<actors::DumpReply>();
  auto answer = reply->future();
  link->with([&](actors::Host& to) { to.dump(std::move(reply)); });
  reply = nullptr;
  if (answer.wait_for(kDumpPatience) != std::future_status::ready)
    return absl::DeadlineExceededError("the xDS client has not answered in 10 s; it is stuck");
  auto dump = answer.get();
  if (dump.ok()) dump->applied = applied();
  return dump;
}

std::vector<AppliedConfig> Runtime::State::applied() const {
  std::vector<AppliedConfig> all;
  for (const auto& [name, target] : targets.in_use()) {
    for (AppliedConfig& config : target->applied())
      all.push_back(std::move(config));
  }
  return all;
}

// Adds the program's custom policies and filters. Their parsers go into the parse options, and the
// policies into the environment of the policy tree. The parsers make the filters, which routes run.
absl::Status Runtime::State::add_extensions(actors::Environment& environment) {
  const auto custom = channel::register_lb_policies(options.lb_policies, *instruments);
  if (!custom.ok()) return custom.status();
  auto filters = channel::register_http_filters(options.http_filters, *instruments);
  if (!filters.ok()) return filters.status();
  environment.policy.custom = custom->policies;
  parsing =
      channel::lasting_parse_options(options, *custom, *std::move(filters), bootstrap, ending);
  environment.make_decoder = channel::decoders(parsing, bootstrap, variable);
  return {};
}

// Puts the recorder between the actors and the outside, if RuntimeOptions::record is set.
absl::Status Runtime::State::begin_record(actors::Environment& environment) {
  if (!options.record) return absl::OkStatus();
  instruments->count_recording_dropped(0);
  instruments->count_recording_late(0);
  actors::RecorderOptions to;
  to.path = options.record->path;
  to.max_bytes = options.record->max_bytes;
  to.header = channel::header_of(options, bootstrap, environment.seed, variable);
  to.complain = texts_to(log, LogKind::kRecording);
  to.count_dropped = [counted = instruments](std::uint64_t events) {
    counted->count_recording_dropped(events);
  };
  to.count_late = [counted = instruments] { counted->count_recording_late(1); };
  auto opened = actors::Recorder::start(std::move(to));
  if (!opened.ok())
    return {opened.status().code(),
            absl::StrCat("RuntimeOptions::record: ", opened.status().message())};
  recorder = *std::move(opened);
  actors::record_outside(recorder, environment);
  return absl::OkStatus();
}

// Makes the environment of the actors. Returns the error of the first part that cannot be made.
absl::StatusOr<actors::Environment> Runtime::State::make_environment() {
  actors::Environment environment;
  channel::add_settings(options, bootstrap, variable, environment);
  const auto node =
      xds::make_node(bootstrap.node, options.aggregate_mode == AggregateMode::kTiered);
  if (!node.ok()) return node.status();
  environment.node_bytes = node->SerializeAsString();
  auto cookies = channel::SessionCookies::make(
      options.session_cookies, texts_to(log, LogKind::kSession), instruments);
  if (!cookies.ok()) return cookies.status();
  session_cookies = *std::move(cookies);
  absl::Status extensions = add_extensions(environment);
  if (!extensions.ok()) return extensions;
  absl::Status transports = add_transports(options, log, bootstrap, instruments, environment);
  if (!transports.ok()) return transports;
  if (options.trim_heap) environment.trimmer = std::make_shared<actors::HeapTrimmer>();
  environment.reclaimer = reclaimer.handle();
  absl::Status connectors = add_connectors(options, log, bootstrap, instruments, environment);
  if (!connectors.ok()) return connectors;
  add_process(options, log, environment);
  if (options.transport == EndpointTransport::kGrpc)
    environment.load_streams = make_load_streams(log, instruments, environment.seed);
  channel::add_counters(options, instruments, environment);
  absl::Status recording = begin_record(environment);
  if (!recording.ok()) return recording;
  return environment;
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::start(RuntimeOptions options) {
  if (!options.detect_deadlocks)
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (absl::Status valid = channel::check_options(options); !valid.ok()) return valid;
  auto bootstrap = read_bootstrap(options);
  if (!bootstrap.ok()) return bootstrap.status();

  auto state = std::make_unique<State>(channel::bounded(std::move(options)), *std::move(bootstrap));
  auto environment = state->make_environment();
  if (!environment.ok()) return environment.status();
  state->host = std::make_unique<actors::Host>(
      std::make_shared<const actors::Environment>(*std::move(environment)),
      state->options.scheduler_threads);
  state->link = std::make_shared<channel::HostLink>(*state->host);
  return std::unique_ptr<Runtime>(new Runtime(std::move(state)));
}

Runtime::Runtime(std::unique_ptr<State> state) : state_(std::move(state)) {}

// The actors end before the targets are closed: a late publication by an actor would replace the
// last snapshot that close() sets, which fails every call.
Runtime::~Runtime() {
  const auto open = state_->targets.in_use();
  state_->link->cut();
  state_->ending->store(true, std::memory_order_relaxed);
  state_->host.reset();
  if (state_->recorder != nullptr) state_->recorder->finish();
  state_->admins.clear();  // Waits for no dump: host.reset() has ended the dumps of running pages.
  const auto reclaimer = state_->reclaimer.handle();
  for (const auto& [name, target] : open) {
    target->close(absl::UnavailableError("the signalbox runtime was shut down"), *reclaimer);
  }
}

std::shared_ptr<grpc::ChannelInterface> Runtime::channel(const std::string& target,
                                                         Interceptors interceptors) {
  return channel(target, ChannelOptions{.interceptors = std::move(interceptors)});
}

std::shared_ptr<grpc::ChannelInterface> Runtime::channel(const std::string& target,
                                                         ChannelOptions own) {
  auto found = state_->target(target);
  if (const absl::Status valid = channel::check_authority(own.authority); found.ok() && !valid.ok())
    found = absl::InvalidArgumentError(absl::StrCat(target, ": ", valid.message()));
  if (found.ok() && state_->options.transport != EndpointTransport::kGrpc) {
    found = absl::FailedPreconditionError(absl::StrCat(
        target, ": no calls on channels: RuntimeOptions::transport is not kGrpc, use router()"));
  }
  const bool is_wrong_target = !found.ok();
  if (is_wrong_target) {
    // An invalid target gets a closed Target, which fails every call with the reason.
    auto lame =
        std::make_shared<channel::Target>(lb::CallerNames{target, state_->bootstrap.node.id});
    lame->count_callers(state_->instruments->caller_stats(target));
    lame->trace_calls(tracing_of(state_->options, state_->log, target));
    lame->close(absl::UnavailableError(found.status().message()), *state_->reclaimer.handle());
    found = std::move(lame);
  }
  channel::GrpcChannelOptions options{(*found)->router(),
                                      (*found)->waiting(),
                                      *found,
                                      state_->counts,
                                      target,
                                      std::move(own.interceptors),
                                      (*found)->retry_throttle(),
                                      state_->options.retry_buffer_bytes,
                                      state_->options.retry_elsewhere};
  options.is_wrong_target = is_wrong_target;
  options.callers = (*found)->callers();
  options.tracing = (*found)->tracing();
  options.authority = std::move(own.authority);
  if (options.authority.empty())
    options.authority = actors::default_authority(state_->options.channel_arguments);
  if (options.authority.empty()) options.authority = xds::data_plane_authority(target);
  return channel::make_grpc_channel(std::move(options));
}

absl::StatusOr<std::shared_ptr<Router>> Runtime::router(const std::string& target) {
  auto found = state_->target(target);
  if (!found.ok()) return found.status();
  return std::make_shared<Router>(*std::move(found));
}

std::shared_ptr<prometheus::Collectable> Runtime::metrics() const {
  return state_->exporter;
}

std::string Runtime::metrics_text() const {
  return state_->exporter->text();
}

absl::StatusOr<int> Runtime::serve_metrics(const std::string& address) {
  auto server = channel::MetricsServer::start(
      address,
      [exporter = state_->exporter] { return exporter->text(); },
      count_limits(kHttpLimits));
  if (!server.ok()) return server.status();
  const std::lock_guard lock(state_->mutex);
  state_->servers.push_back(*std::move(server));
  return state_->servers.back()->port();
}

absl::StatusOr<ResourceDump> Runtime::dump() const {
  return state_->dump();
}

absl::StatusOr<std::string> Runtime::dump_json() const {
  const auto dump = state_->dump();
  if (!dump.ok()) return dump.status();
  return xds::to_json_text(*dump);
}

absl::StatusOr<std::string> Runtime::explain_json(
    const std::string& target,
    const std::string& method,
    const std::vector<std::pair<std::string, std::string>>& headers,
    std::optional<std::uint64_t> seed) const {
  return state_->explain({target, method, headers, seed});
}

absl::StatusOr<Plan> Runtime::plan(PlanRequest request) const {
  const auto dump = state_->dump();
  if (!dump.ok()) return dump.status();
  request.aggregate_mode = state_->options.aggregate_mode;
  request.caller = channel::locality_of(state_->bootstrap.node);
  if (request.assumptions.panic_threshold == 0)
    request.assumptions.panic_threshold = state_->options.panic_threshold;
  return channel::plan_of(
      *dump,
      request,
      xds::parse_options_from(variable, /*trusted_server=*/false, *state_->parsing),
      state_->bootstrap);
}

absl::StatusOr<std::string> Runtime::serve_admin(const std::string& address) {
  auto server = channel::AdminServer::start(
      address,
      {.dump = [state = state_.get()] { return state->dump(); },
       .metrics = [exporter = state_->exporter] { return exporter->text(); },
       .explain =
           [state = state_.get()](const channel::ExplainQuestion& question) {
             return state->explain(question);
           },
       .status = [state = state_.get()] { return state->status(); },
       .ready = [&targets =
                     state_->targets](const std::string& target) { return targets.ready(target); },
       .certificates = [&bootstrap =
                            state_->bootstrap] { return channel::certificate_files(bootstrap); }},
      count_limits(kHttpLimits));
  if (!server.ok()) return server.status();
  const std::lock_guard lock(state_->mutex);
  state_->admins.push_back(*std::move(server));
  return state_->admins.back()->address();
}

void Runtime::keep(std::shared_ptr<void> object) {
  const std::lock_guard lock(state_->mutex);
  state_->kept.push_back(std::move(object));
}

LimitHit Runtime::count_limits(std::span<const AdminLimit> limits) const {
  for (const AdminLimit limit : limits)
    state_->instruments->count_admin_refused(limit, 0);
  return [instruments = state_->instruments](AdminLimit limit) {
    instruments->count_admin_refused(limit);
  };
}

std::map<std::string, bool> Runtime::readiness() const {
  return state_->targets.readiness();
}

RuntimeStatus Runtime::status() const {
  return state_->status();
}

std::optional<bool> Runtime::ready(const std::string& target) const {
  return state_->targets.ready(target);
}

std::int64_t Runtime::repicked() const {
  return state_->counts->repicked();
}

}  // namespace signalbox
