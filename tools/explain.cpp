// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "prometheus/metric_family.h"
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "channel/admin/explain_page.hpp"
#include "signalbox/runtime.hpp"
#include "tools/admin_client.hpp"
#include "tools/commands.hpp"
#include "tools/explain_text.hpp"
#include "tools/stand_ins.hpp"
#include "xds/bootstrap.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"

namespace signalbox::tools {
namespace {

// The longest time for which settle() picks again, because a name look-up or a call still waits.
constexpr auto kConnectTime = std::chrono::seconds(10);
// is_at_rest() waits for at most so many rounds, each kRoundTime long.
constexpr int kRounds = 30;
constexpr auto kRoundTime = std::chrono::milliseconds(10);

absl::StatusOr<std::string> ask_process(const ExplainOptions& options) {
  const auto address = channel::parse_admin_address(options.admin);
  if (!address.ok()) return address.status();
  std::string page = absl::StrCat(
      "/explain?target=", query_value(options.target), "&method=", query_value(options.method));
  for (const std::string& header : options.headers)
    absl::StrAppend(&page, "&header=", query_value(header));
  for (const std::string& cookie : options.cookies)
    absl::StrAppend(&page, "&cookie=", query_value(cookie));
  if (options.seed) absl::StrAppend(&page, "&seed=", *options.seed);
  return admin_get(*address,
                   page,
                   std::chrono::round<std::chrono::milliseconds>(
                       std::chrono::duration<double>(options.timeout_seconds)));
}

// The bootstrap gives the node, the listeners' names and the certificate providers. Its servers are
// left out, because all resources come from the file.
absl::StatusOr<std::string> bootstrap_of(const ExplainOptions& options) {
  if (!xds::is_utf8(options.resources))
    return absl::InvalidArgumentError("--resources: the file's name is not UTF-8");
  auto bootstrap = nlohmann::json::object();
  if (!options.bootstrap.empty()) {
    const auto text = actors::read_file(options.bootstrap);
    if (!text.ok()) return text.status();
    const auto parsed = xds::parse_bootstrap(*text, options.bootstrap);
    if (!parsed.ok()) return parsed.status();
    bootstrap = nlohmann::json::parse(*text);
    bootstrap.erase("xds_servers");
    if (bootstrap.contains("authorities")) {
      for (auto& authority : bootstrap["authorities"])
        authority.erase("xds_servers");
    }
  }
  bootstrap["signalbox.resources"] = options.resources;
  return bootstrap.dump();
}

// The file must have the target's listener; without it there is nothing to explain.
absl::Status check_target(const ExplainOptions& options, const xds::Bootstrap& bootstrap) {
  const auto wanted = xds::listener_resource_name(bootstrap, options.target);
  if (!wanted.ok()) return wanted.status();
  const auto text = actors::read_file(options.resources);
  if (!text.ok()) return text.status();
  const auto resources =
      xds::parse_resources_text(*text, xds::format_of(options.resources), options.resources);
  if (!resources.ok()) return absl::InvalidArgumentError(resources.status().message());
  const bool is_renamed = bootstrap.client_default_listener_resource_name_template != "%s";
  std::vector<std::string> found;
  for (const xds::ResourceBytes& resource : *resources) {
    if (xds::resource_type_of(resource.type_url) != ResourceType::kListener) continue;
    if (resource.name == *wanted) return absl::OkStatus();
    found.push_back(is_renamed ? resource.name : absl::StrCat("xds:///", resource.name));
  }
  const std::string listener = is_renamed ? absl::StrCat(" (listener ", *wanted, ")") : "";
  return absl::InvalidArgumentError(
      absl::StrCat("--target: '",
                   options.target,
                   "'",
                   listener,
                   " is not in ",
                   options.resources,
                   found.empty() ? ", and no other is"
                                 : absl::StrCat("; there are: ", absl::StrJoin(found, ", "))));
}

double connecting(const Runtime& runtime) {
  double count = 0;
  for (const auto& family : runtime.metrics()->Collect()) {
    if (family.name != "signalbox_subchannels") continue;
    for (const auto& metric : family.metric) {
      if (metric.label.front().value == "connecting") count += metric.gauge.value;
    }
  }
  return count;
}

// True if nothing was published since the pick and no subchannel is connecting. In each round the
// runtime's one thread handles the messages that wait for it. On a busy machine a round takes
// longer, as the runtime does, so the limit grows with the load.
bool is_at_rest(const Runtime& runtime, const Router& router, const Pick& pick) {
  for (int round = 0; round < kRounds; ++round) {
    if (router.wait(pick, Router::Clock::now() + kRoundTime)) return false;
    // dump() returns after the messages before it have been handled. Neither its result nor an
    // error matters.
    static_cast<void>(runtime.dump());
  }
  return connecting(runtime) == 0;
}

// Picks until the runtime is at rest and the pick does not wait, because picks make policies create
// children and connect. Gives up after kConnectTime.
void settle(const Runtime& runtime, const Router& router, const CallArgs& call) {
  const auto deadline = Router::Clock::now() + kConnectTime;
  Pick pick = router.pick(call);
  while (Router::Clock::now() < deadline) {
    const bool is_over = pick.delay() == Duration::zero() && pick.outcome() != PickOutcome::kQueue;
    if (is_at_rest(runtime, router, pick) && is_over) return;
    pick.end_delay();
    router.repick(pick, call);
  }
}

// Explains with a runtime of its own, which takes all endpoints for connected. Its scheduler has
// one thread, so its policies never run in parallel.
absl::StatusOr<std::string> ask_file(const ExplainOptions& options) {
  const auto bootstrap_json = bootstrap_of(options);
  if (!bootstrap_json.ok()) return bootstrap_json.status();
  const auto bootstrap = xds::parse_bootstrap(*bootstrap_json, options.bootstrap);
  if (!bootstrap.ok()) return bootstrap.status();
  if (auto known = check_target(options, *bootstrap); !known.ok()) return known;
  std::multimap<std::string, std::string> query{{"target", options.target},
                                                {"method", options.method}};
  for (const std::string& header : options.headers)
    query.emplace("header", header);
  for (const std::string& cookie : options.cookies)
    query.emplace("cookie", cookie);
  const auto question = channel::parse_explain_query(query);
  if (!question.ok()) return question.status();

  const std::uint64_t seed = options.seed.value_or(next_seed());
  const auto is_quiet = std::make_shared<std::atomic<bool>>(false);
  RuntimeOptions runtime_options;
  runtime_options.seed = seed;
  runtime_options.scheduler_threads = 1;
  runtime_options.connection_attempt_delay =
      std::chrono::seconds(2);  // Assumed attempts succeed, so a second attempt is never needed.
  runtime_options.bootstrap_json = *bootstrap_json;
  runtime_options.transport = EndpointTransport::kAssumed;
  runtime_options.log = [is_quiet](const std::string& text) {
    if (!*is_quiet) say("explain", text);
  };
  for (const std::string& name : options.lb_policies)
    runtime_options.lb_policies.push_back(lb_policy_stand_in(name));
  for (const std::string& type : options.http_filters)
    runtime_options.http_filters.push_back(http_filter_stand_in(type));
  auto runtime = Runtime::start(std::move(runtime_options));
  if (!runtime.ok()) return runtime.status();
  const auto router = (*runtime)->router(options.target);
  if (!router.ok()) return router.status();
  channel::ExplainQuestion without_cookies = *question;
  std::erase_if(without_cookies.headers,
                [](const auto& header) { return header.first == "cookie"; });
  const auto settle_with = [&](const channel::ExplainQuestion& asked) {
    const channel::QuestionHeaders headers(asked);
    settle(**runtime, **router, {.path = asked.method, .headers = &headers, .seed = seed});
  };
  settle_with(without_cookies);
  if (without_cookies.headers.size() != question->headers.size()) {
    // The pick asks for the cookie's host, which is then connected. A faulty cookie is a step of
    // the explanation, so it is not logged as well.
    *is_quiet = true;
    settle_with(*question);
  }
  return (*runtime)->explain_json(question->target, question->method, question->headers, seed);
}

}  // namespace

int run_explain(const ExplainOptions& options) {
  const auto answer = options.admin.empty() ? ask_file(options) : ask_process(options);
  if (!answer.ok()) return fail_to_ask("explain", answer.status());
  const auto explanation = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!explanation.is_object() || !explanation.contains("steps")) {
    return fail_to_ask("explain",
                       absl::UnavailableError(
                           absl::StrCat(options.admin, ": what listens there is no signalbox")));
  }
  std::cout << (options.json ? *answer : explain_text(explanation));
  const auto outcome = explanation.find("outcome");
  const bool has_failed =
      outcome != explanation.end() && (*outcome == "fail" || *outcome == "drop");
  return has_failed ? kExitFailed : kExitOk;
}

}  // namespace signalbox::tools
