// SPDX-License-Identifier: Apache-2.0
#include "signalbox/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

#include "actors/host.hpp"
#include "actors/io/address_lookup.hpp"
#include "actors/io/assumed_connector.hpp"
#include "actors/io/file_ads_transport.hpp"
#include "actors/io/grpc_ads_transport.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/health_prober.hpp"
#include "actors/io/tcp_connector.hpp"
#include "channel/admin_server.hpp"
#include "channel/check_options.hpp"
#include "channel/explain_page.hpp"
#include "channel/grpc_channel.hpp"
#include "channel/http_filters.hpp"
#include "channel/lb_policies.hpp"
#include "channel/metrics_server.hpp"
#include "channel/plan_world.hpp"
#include "channel/policy_options.hpp"
#include "channel/session_cookies.hpp"
#include "channel/target.hpp"
#include "lb/request_limit.hpp"
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

absl::StatusOr<xds::Bootstrap> read_bootstrap(const RuntimeOptions& options) {
  if (options.bootstrap_path)
    return xds::load_bootstrap(xds::BootstrapFile{*options.bootstrap_path});
  if (options.bootstrap_json)
    return xds::load_bootstrap(xds::BootstrapText{*options.bootstrap_json});
  const auto get = [](const char* name) -> const char* { return std::getenv(name); };
  return xds::load_bootstrap(xds::BootstrapEnvironment{get});
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

void log_to_stderr(const std::string& text) {
  std::cerr << absl::StrCat("signalbox: ", text, "\n") << std::flush;
}

// Invalid resources are counted where they are refused, as those of servers are.
actors::FileAdsOptions file_options(const RuntimeOptions& options,
                                    const std::string& path,
                                    const std::shared_ptr<metrics::Instruments>& instruments) {
  instruments->count_config_rejected("unreadable", 0);
  instruments->count_config_rejected("parse", 0);
  instruments->count_config_rejected("limit", 0);
  return {.path = path,
          .limits = options.limits,
          .complain = [log = options.log, instruments](actors::FileTrouble trouble,
                                                       const std::string& text) {
            if (trouble == actors::FileTrouble::kUnreadable)
              instruments->count_config_rejected("unreadable");
            if (trouble == actors::FileTrouble::kUnparsable)
              instruments->count_config_rejected("parse");
            if (trouble == actors::FileTrouble::kBeyondLimit)
              instruments->count_config_rejected("limit");
            log(text);
          }};
}

std::shared_ptr<actors::AdsTransport> make_server_transport(
    const RuntimeOptions& options,
    const xds::ServerConfig& server,
    const std::shared_ptr<metrics::Instruments>& instruments) {
  for (const char* reason : {"limit", "parse", "certificate"})
    instruments->count_config_rejected(reason, 0);
  if (std::holds_alternative<xds::InsecureCredentials>(server.channel_creds) &&
      !xds::is_loopback(server.server_uri)) {
    options.log(
        absl::StrCat("xDS server ",
                     server.server_uri,
                     ": channel_creds are \"insecure\": configuration crosses the network in "
                     "plaintext, and anybody on the way can change it"));
  }
  actors::GrpcAdsOptions ads;
  ads.server_uri = server.server_uri;
  ads.credentials = actors::make_credentials(
      server.channel_creds,
      [log = options.log, instruments, name = server.server_uri](const std::string& text) {
        instruments->count_config_rejected("certificate");
        log(absl::StrCat("xDS server ", name, ": ", text));
      });
  ads.max_message_bytes =
      static_cast<int>(std::min<std::size_t>(options.limits.max_message_bytes, INT_MAX));
  ads.keepalive_time =
      std::chrono::duration_cast<std::chrono::milliseconds>(options.xds_keepalive_time);
  return actors::make_grpc_ads_transport(std::move(ads));
}

using Transports = std::vector<std::shared_ptr<actors::AdsTransport>>;

// A resource file is a server like any other.
absl::StatusOr<Transports> make_ads_transports(
    const RuntimeOptions& options,
    const xds::Bootstrap& bootstrap,
    const std::shared_ptr<metrics::Instruments>& instruments) {
  Transports transports;
  if (bootstrap.resources_file) {
    auto file = actors::make_file_ads_transport(
        file_options(options, *bootstrap.resources_file, instruments));
    if (!file.ok()) return file.status();
    transports.push_back(*std::move(file));
  }
  for (const xds::ServerConfig& server : xds::distinct_servers(bootstrap))
    transports.push_back(make_server_transport(options, server, instruments));
  return transports;
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
    const xds::Bootstrap& bootstrap,
    const std::shared_ptr<metrics::Instruments>& instruments,
    Retire retire) {
  actors::GrpcConnectorOptions connector;
  if (!bootstrap.certificate_providers.empty())
    instruments->count_config_rejected("certificate", 0);
  connector.cluster_credentials = actors::make_cluster_credentials(
      bootstrap.certificate_providers, [log = options.log, instruments](const std::string& text) {
        instruments->count_config_rejected("certificate");
        log(text);
      });
  connector.credentials = options.channel_credentials;
  connector.arguments = options.channel_arguments;
  if (options.keepalive_time) {
    connector.keepalive = {
        .time = std::chrono::ceil<std::chrono::milliseconds>(*options.keepalive_time),
        .timeout = std::chrono::ceil<std::chrono::milliseconds>(options.keepalive_timeout),
        .without_calls = options.keepalive_without_calls};
  }
  connector.retire = std::move(retire);
  return std::make_shared<actors::GrpcConnector>(std::move(connector));
}

// Calls go over one, the health checks by gRPC over the other: the same one where calls are gRPC's.
absl::Status add_connectors(const RuntimeOptions& options,
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
  const auto grpc = make_grpc_connector(options, bootstrap, instruments, retire);
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

// What of the parsing is the same for the life of a runtime.
struct DecoderTerms {
  xds::Limits limits;
  std::shared_ptr<const xds::CustomPolicyParsers> custom;
  std::shared_ptr<const xds::CustomFilters> filters;
  xds::NameSet certificate_providers;
  bool health_checks = true;
  bool grpc_paths_only = true;
  /// Set when the runtime ends: what is being parsed then is not worth waiting for.
  std::shared_ptr<std::atomic<bool>> abandoned = std::make_shared<std::atomic<bool>>(false);
};

using DecoderTermsPtr = std::shared_ptr<const DecoderTerms>;

DecoderTermsPtr decoder_terms(const RuntimeOptions& options,
                              const channel::RegisteredLbPolicies& custom,
                              std::shared_ptr<const xds::CustomFilters> filters,
                              const xds::Bootstrap& bootstrap) {
  auto terms = std::make_shared<DecoderTerms>();
  terms->limits = options.limits;
  terms->health_checks = options.active_health_checks;
  terms->grpc_paths_only = options.transport == EndpointTransport::kGrpc;
  terms->custom = custom.parsers;
  terms->filters = std::move(filters);
  for (const auto& [name, files] : bootstrap.certificate_providers)
    terms->certificate_providers.insert(name);
  return terms;
}

// The environment is asked at each response (A75-8).
xds::ParseOptions parse_options(const DecoderTerms& terms, bool trusted_server) {
  auto options =
      xds::parse_options_from([](const char* name) { return std::getenv(name); }, trusted_server);
  options.limits = terms.limits;
  options.custom_lb_policies = terms.custom;
  options.custom_http_filters = terms.filters;
  options.certificate_providers = terms.certificate_providers;
  options.health_checks = terms.health_checks;
  options.grpc_paths_only = terms.grpc_paths_only;
  return options;
}

// Each session has a decoder of its own, which knows what its own server sent.
xds::ResponseDecoder make_decoder(DecoderTermsPtr terms, bool trusted_server) {
  return [terms = std::move(terms),
          trusted_server,
          known = std::make_shared<xds::KnownResources>()](std::string bytes) {
    xds::ParseOptions options = parse_options(*terms, trusted_server);
    options.abandoned = terms->abandoned;
    return xds::decode_in_parts(std::move(bytes), std::move(options), known);
  };
}

std::function<xds::ResponseDecoder(ServerId)> decoders(DecoderTermsPtr terms,
                                                       const xds::Bootstrap& bootstrap) {
  return [terms = std::move(terms), servers = xds::client_options(bootstrap).servers](
             ServerId server) { return make_decoder(terms, servers.at(server).trusted); };
}

std::uint64_t some_seed() {
  std::random_device entropy;
  return (static_cast<std::uint64_t>(entropy()) << 32U) | entropy();
}

}  // namespace

// In the order of construction: what is below uses what is above.
struct Runtime::State {
  xds::Bootstrap bootstrap;
  EndpointTransport transport = EndpointTransport::kGrpc;
  DecoderTermsPtr decoding;
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  std::uint32_t panic_threshold = 0;
  std::shared_ptr<metrics::Instruments> instruments = std::make_shared<metrics::Instruments>();
  std::shared_ptr<metrics::Exporter> exporter = std::make_shared<metrics::Exporter>(instruments);
  std::shared_ptr<channel::ChannelCounts> counts = std::make_shared<channel::ChannelCounts>();
  std::string default_authority;  ///< Of all channels; empty: each target's own.
  std::size_t retry_buffer_bytes = 0;
  bool retry_elsewhere = true;
  std::optional<RetryThrottling> retry_throttling;
  actors::ReclaimerThread reclaimer;
  std::unique_ptr<actors::Host> host;
  std::shared_ptr<channel::HostLink> link;
  std::optional<channel::SessionCookies> session_cookies;
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<channel::Target>> targets;
  std::vector<std::unique_ptr<channel::MetricsServer>> servers;
  std::vector<std::unique_ptr<channel::AdminServer>> admins;

  absl::StatusOr<std::shared_ptr<channel::Target>> target(const std::string& name);
  absl::StatusOr<ResourceDump> dump() const;
  absl::StatusOr<std::string> explain(const channel::ExplainQuestion& question);
};

absl::StatusOr<std::shared_ptr<channel::Target>> Runtime::State::target(const std::string& name) {
  const auto listener = xds::listener_resource_name(bootstrap, name);
  if (!listener.ok()) return listener.status();
  const std::lock_guard lock(mutex);
  std::erase_if(targets, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<channel::Target>& known = targets[name];
  if (auto existing = known.lock()) return existing;
  auto fresh = std::make_shared<channel::Target>(
      lb::CallerNames{name, bootstrap.node.id},
      std::make_shared<const lb::Sessions>(session_cookies->terms(name, link)));
  if (retry_throttling) {
    fresh->throttle_retries(std::make_shared<lb::RetryThrottle>(retry_throttling->max_tokens,
                                                                retry_throttling->token_ratio));
  }
  actors::ChannelPort port;
  port.target = name;
  port.listener_resource = *listener;
  port.authority = xds::data_plane_authority(name);
  fresh->open(link, std::move(port));
  known = fresh;
  return fresh;
}

// Of targets that are in use: to open one would change the world that is looked at.
absl::StatusOr<std::string> Runtime::State::explain(const channel::ExplainQuestion& question) {
  std::shared_ptr<channel::Target> found;
  std::vector<std::string> in_use;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [name, known] : targets) {
      auto target = known.lock();
      if (target == nullptr) continue;
      in_use.push_back(name);
      if (name == question.target) found = std::move(target);
    }
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target: '",
        question.target,
        "' is none that is in use",
        in_use.empty() ? "" : absl::StrCat("; there are: ", absl::StrJoin(in_use, ", "))));
  }
  const std::uint64_t seed = question.seed.value_or(next_seed());
  const channel::QuestionHeaders headers(question);
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  // Without connections nothing takes turns that another run could repeat.
  const Turns turns = transport == EndpointTransport::kAssumed ? Turns::kBySeed : Turns::kAsTheyAre;
  return xds::to_json_text({question.target, question.method, seed},
                           found->router().explain({question.method, &headers, seed}, now, turns));
}

// Far more than an actor takes that is alive.
constexpr auto kDumpPatience = std::chrono::seconds(10);

absl::StatusOr<ResourceDump> Runtime::State::dump() const {
  auto reply = std::make_shared<actors::DumpReply>();
  auto answer = reply->future();
  link->with([&](actors::Host& to) { to.dump(std::move(reply)); });
  reply = nullptr;
  if (answer.wait_for(kDumpPatience) != std::future_status::ready)
    return absl::DeadlineExceededError("the xDS client has not answered in 10 s; it is stuck");
  return answer.get();
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::start(RuntimeOptions options) {
  if (!options.detect_deadlocks)
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (!options.log) options.log = log_to_stderr;
  if (absl::Status valid = channel::check_options(options); !valid.ok()) return valid;
  auto bootstrap = read_bootstrap(options);
  if (!bootstrap.ok()) return bootstrap.status();
  lb::PolicyOptions policy = channel::policy_options(
      options, [](const char* name) -> const char* { return std::getenv(name); });
  const auto node =
      xds::make_node(bootstrap->node, policy.aggregate_mode == AggregateMode::kTiered);
  if (!node.ok()) return node.status();

  auto state = std::make_unique<State>();
  state->bootstrap = *std::move(bootstrap);
  state->transport = options.transport;
  auto cookies =
      channel::SessionCookies::make(options.session_cookies, options.log, state->instruments);
  if (!cookies.ok()) return cookies.status();
  state->session_cookies = *std::move(cookies);
  state->default_authority = actors::default_authority(options.channel_arguments);
  state->retry_buffer_bytes = options.retry_buffer_bytes;
  state->retry_elsewhere = options.retry_elsewhere;
  state->retry_throttling = options.retry_throttling;
  const auto custom = channel::register_lb_policies(options.lb_policies, *state->instruments);
  if (!custom.ok()) return custom.status();
  auto filters = channel::register_http_filters(options.http_filters, *state->instruments);
  if (!filters.ok()) return filters.status();
  auto ads_transports = make_ads_transports(options, state->bootstrap, state->instruments);
  if (!ads_transports.ok()) return ads_transports.status();
  actors::Environment environment;
  environment.reclaimer = state->reclaimer.handle();
  const absl::Status connectors =
      add_connectors(options, state->bootstrap, state->instruments, environment);
  if (!connectors.ok()) return connectors;
  environment.ads_transports = *std::move(ads_transports);
  environment.name_lookup = make_lookup(options);
  environment.instruments = state->instruments;
  state->decoding = decoder_terms(options, *custom, *std::move(filters), state->bootstrap);
  environment.make_decoder = decoders(state->decoding, state->bootstrap);
  environment.node_bytes = node->SerializeAsString();
  environment.node_id = state->bootstrap.node.id;
  environment.seed = options.seed.value_or(some_seed());
  environment.client = xds::client_options(state->bootstrap);
  environment.client.resource_timeout = options.resource_timeout;
  if (options.missing_cluster_fails_aggregate)
    environment.missing_leaf = xds::MissingLeaf::kFailAggregate;
  environment.policy = std::move(policy);
  state->aggregate_mode = environment.policy.aggregate_mode;
  state->panic_threshold = environment.policy.panic_threshold;
  environment.policy.request_limits = lb::RequestLimits::of_process();
  environment.policy.drop_counters = state->instruments;
  environment.policy.custom = custom->policies;
  environment.faults = {lb::active_faults_of_process(), state->instruments->faults()};
  environment.log = options.log;
  environment.subchannel.initial_backoff = options.initial_backoff;
  environment.subchannel.max_backoff = options.max_backoff;
  environment.subchannel.lost_backoff = options.lost_backoff;
  state->host = std::make_unique<actors::Host>(
      std::make_shared<const actors::Environment>(std::move(environment)),
      options.scheduler_threads);
  state->link = std::make_shared<channel::HostLink>(*state->host);
  return std::unique_ptr<Runtime>(new Runtime(std::move(state)));
}

Runtime::Runtime(std::unique_ptr<State> state) : state_(std::move(state)) {}

// First nobody publishes any more; then whoever still waits is told.
Runtime::~Runtime() {
  std::vector<std::shared_ptr<channel::Target>> open;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [name, known] : state_->targets) {
      if (auto target = known.lock()) open.push_back(std::move(target));
    }
  }
  state_->link->cut();
  state_->decoding->abandoned->store(true, std::memory_order_relaxed);
  state_->host.reset();
  state_->admins.clear();  // Who waits for a dump in there has heard that there is none.
  const auto reclaimer = state_->reclaimer.handle();
  for (const auto& target : open) {
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
  if (found.ok() && state_->transport != EndpointTransport::kGrpc) {
    found = absl::FailedPreconditionError(absl::StrCat(
        target, ": no calls on channels: RuntimeOptions::transport is not kGrpc, use router()"));
  }
  const bool is_wrong_target = !found.ok();
  if (is_wrong_target) {
    // A target that nobody serves: closed from the beginning, and saying why.
    auto lame =
        std::make_shared<channel::Target>(lb::CallerNames{target, state_->bootstrap.node.id});
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
                                      state_->retry_buffer_bytes,
                                      state_->retry_elsewhere};
  options.is_wrong_target = is_wrong_target;
  options.authority = !own.authority.empty()               ? std::move(own.authority)
                      : !state_->default_authority.empty() ? state_->default_authority
                                                           : xds::data_plane_authority(target);
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
      address, [exporter = state_->exporter] { return exporter->text(); });
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
  request.aggregate_mode = state_->aggregate_mode;
  if (request.assumptions.panic_threshold == 0)
    request.assumptions.panic_threshold = state_->panic_threshold;
  return channel::plan_of(
      *dump, request, parse_options(*state_->decoding, /*trusted_server=*/false));
}

absl::StatusOr<std::string> Runtime::serve_admin(const std::string& address) {
  auto server = channel::AdminServer::start(
      address,
      {.dump = [state = state_.get()] { return state->dump(); },
       .metrics = [exporter = state_->exporter] { return exporter->text(); },
       .explain =
           [state = state_.get()](const channel::ExplainQuestion& question) {
             return state->explain(question);
           }});
  if (!server.ok()) return server.status();
  const std::lock_guard lock(state_->mutex);
  state_->admins.push_back(*std::move(server));
  return state_->admins.back()->address();
}

std::int64_t Runtime::repicked() const {
  return state_->counts->repicked();
}

}  // namespace signalbox
