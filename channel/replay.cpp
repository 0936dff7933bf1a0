// SPDX-License-Identifier: Apache-2.0
#include "channel/replay.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "actors/channel_port.hpp"
#include "actors/io/file_ads_transport.hpp"
#include "channel/recorded_options.hpp"
#include "channel/status_of.hpp"
#include "lb/pick/router.hpp"
#include "lb/request_limit.hpp"
#include "messages/build_facts.hpp"
#include "messages/counting/load_book.hpp"
#include "xds/explanation_json.hpp"

namespace signalbox::channel {
namespace {

void warn(const Replay::Log& log, std::string text) {
  log({LogLevel::kWarning, LogKind::kRecording, std::move(text), 0});
}

// The names of the bootstrap's servers, in the order of their ids: a resource file comes first (see
// channel/runtime.cpp).
std::vector<std::string> servers_of(const xds::Bootstrap& bootstrap) {
  std::vector<std::string> names;
  if (bootstrap.resources_file)
    names.push_back(actors::file_server_name(*bootstrap.resources_file));
  for (xds::ServerConfig& server : xds::distinct_servers(bootstrap))
    names.push_back(std::move(server.server_uri));
  return names;
}

// `target` is empty or none of the ports. If it is empty, there is not just one port.
absl::Status no_such_target(const std::string& target, const actors::ReplayHost& host) {
  const actors::ReplayHost::Ports& ports = host.ports();
  const std::string in_use_at =
      absl::StrCat("in use at ", absl::FormatDuration(absl::FromChrono(host.elapsed())));
  const std::string in_use =
      absl::StrJoin(ports, ", ", [](std::string* out, const auto& port) { *out += port.first; });
  if (!target.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: '",
                     target,
                     "' is not ",
                     in_use_at,
                     in_use.empty() ? "" : absl::StrCat("; there are: ", in_use)));
  }
  if (in_use.empty()) return absl::InvalidArgumentError("no target is " + in_use_at);
  return absl::InvalidArgumentError(
      absl::StrCat("target: must be given, because several are ", in_use_at, ": ", in_use));
}

// Latencies are not shown, so the clock of the instruments may stand still.
std::chrono::steady_clock::time_point no_time() {
  return {};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replay>> Replay::start(Recording recording, Log log) {
  std::vector<std::string> unknown;
  auto options = options_of(recording.header, unknown);
  if (!options.ok()) return options.status();
  auto bootstrap = xds::parse_bootstrap(recording.header.bootstrap, "the recording's bootstrap");
  if (!bootstrap.ok()) return bootstrap.status();
  if (!unknown.empty()) {
    warn(log,
         absl::StrCat("signalbox ",
                      recording.header.version,
                      " recorded settings that this one does not have, and ignores: ",
                      absl::StrJoin(unknown, ", ")));
  }
  if (!recording.header.extensions.empty()) {
    warn(
        log,
        absl::StrCat("the recorded program has policies or filters of its own, which a replay does "
                     "not have: ",
                     absl::StrJoin(recording.header.extensions, ", ")));
  }
  return std::unique_ptr<Replay>(
      new Replay(std::move(recording), *std::move(options), *std::move(bootstrap), std::move(log)));
}

Replay::Replay(Recording recording, RuntimeOptions options, xds::Bootstrap bootstrap, Log log)
    : recording_(std::move(recording)),
      options_(std::move(options)),
      bootstrap_(std::move(bootstrap)),
      log_(std::move(log)),
      instruments_(std::make_shared<metrics::Instruments>(no_time)),
      host_(std::make_unique<actors::ReplayHost>(
          recording_, make_environment(), servers_of(bootstrap_), [this](const std::string& name) {
            return make_port(name);
          })) {}

actors::Environment Replay::make_environment() const {
  actors::Environment environment;
  add_settings(options_, bootstrap_, variables_of(recording_.header), environment);
  environment.policy.load_book = std::make_shared<LoadBook>(std::set<ServerId>());
  environment.seed = options_.seed.value_or(0);
  environment.log = log_;
  environment.make_decoder =
      decoders(lasting_parse_options(options_, {}, nullptr, bootstrap_, nullptr),
               bootstrap_,
               variables_of(recording_.header));
  add_counters(options_, instruments_, environment);
  // Other runtimes of this process have nothing to do with the recorded one.
  environment.policy.request_limits = std::make_shared<lb::RequestLimits>();
  return environment;
}

std::shared_ptr<actors::ChannelPort> Replay::make_port(const std::string& target) const {
  auto listener = xds::listener_resource_name(bootstrap_, target);
  if (!listener.ok()) {
    warn(log_, absl::StrCat(target, ": ", listener.status().message()));
    return nullptr;
  }
  auto port = std::make_shared<actors::ChannelPort>();
  port->target = target;
  port->listener_resource = *std::move(listener);
  port->authority = xds::data_plane_authority(target);
  port->status = std::make_shared<actors::TargetBoard>(target, changes_);
  return port;
}

void Replay::run(Duration until, const Seen& seen) {
  while (run_instant(until)) {
    if (seen == nullptr) continue;
    Revisions now = revisions();
    if (std::exchange(seen_, now) != now) seen(host_->elapsed(), status());
  }
}

Replay::Revisions Replay::revisions() const {
  Revisions now;
  now.boards.reserve(host_->ports().size());
  for (const auto& [name, port] : host_->ports())
    now.boards.emplace_back(port->status, port->status->revision());
  now.changes = changes_->number();
  return now;
}

RuntimeStatus Replay::status() const {
  const Moment now{
      host_->now(),
      recording_.header.started + std::chrono::duration_cast<WallTime::duration>(elapsed())};
  RuntimeStatus status;
  status.version = std::string(build_version());
  status.made = now.wall;
  status.started = recording_.header.started;
  status.node_id = bootstrap_.node.id;
  status.ready = true;
  for (const auto& [name, port] : host_->ports()) {
    status.targets.push_back(status_of(name, port->status->pieces(), options_.aggregate_mode, now));
    status.ready = status.ready && status.targets.back().ready;
  }
  for (const auto& change : changes_->last())
    status.changes.push_back(status_of(change, now));
  return status;
}

absl::StatusOr<std::string> Replay::explain_json(const ExplainQuestion& question) const {
  const auto& ports = host_->ports();
  auto found = ports.find(question.target);
  if (question.target.empty() && ports.size() == 1) found = ports.begin();
  if (found == ports.end()) return no_such_target(question.target, *host_);
  const auto& [name, port] = *found;
  const std::uint64_t seed = question.seed.value_or(0);
  const QuestionHeaders headers(question);
  const bool has_cookie = std::ranges::any_of(
      question.headers, [](const auto& header) { return header.first == "cookie"; });
  if (options_.session_cookies.key_file && has_cookie) {
    warn(log_,
         "the recorded process sealed its session cookies: a replay, which has no keys, takes the "
         "cookie for a plain one");
  }
  const lb::Router router(port->cell, {name, bootstrap_.node.id});
  return xds::to_json_text(
      {name, question.method, seed},
      router.explain({.path = question.method, .headers = &headers, .seed = seed},
                     host_->now(),
                     Turns::kBySeed));
}

}  // namespace signalbox::channel
