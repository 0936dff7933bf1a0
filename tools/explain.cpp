// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "channel/explain_page.hpp"
#include "signalbox/runtime.hpp"
#include "tools/admin_client.hpp"
#include "tools/commands.hpp"
#include "tools/explain_text.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox::tools {
namespace {

// How long endpoints that are assumed, and names that are looked up, may take at the most.
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kQuiet = std::chrono::milliseconds(300);

// It could not be asked as it was.
bool is_usage(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status);
}

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

// The file has to name the target's listener: else nothing could be told but that.
absl::Status check_target(const ExplainOptions& options) {
  const auto text = actors::read_file(options.resources);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  const auto resources =
      xds::parse_resources_text(*text, xds::format_of(options.resources), options.resources);
  if (!resources.ok()) return absl::InvalidArgumentError(resources.status().message());
  std::vector<std::string> targets;
  for (const xds::ResourceBytes& resource : *resources) {
    if (xds::resource_type_of(resource.type_url) == ResourceType::kListener)
      targets.push_back("xds:///" + resource.name);
    if (!targets.empty() && targets.back() == options.target) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--target: '",
                   options.target,
                   "' is not in ",
                   options.resources,
                   targets.empty() ? ", and no other is"
                                   : absl::StrCat("; there are: ", absl::StrJoin(targets, ", "))));
}

// Lets the tree grow: it does as it is picked from. It is done when nobody publishes any more.
void settle(const Router& router, const CallArgs& call) {
  const auto deadline = Router::Clock::now() + kPatience;
  Pick pick = router.pick(call);
  while (pick.delay() > Duration::zero() ||
         router.wait(pick, std::min(deadline, Router::Clock::now() + kQuiet))) {
    pick.end_delay();
    router.repick(pick, call);
  }
}

// A runtime of our own, whose endpoints are assumed to be connected.
absl::StatusOr<std::string> ask_file(const ExplainOptions& options) {
  const absl::Status known = check_target(options);
  if (!known.ok()) return known;
  std::multimap<std::string, std::string> query{{"target", options.target},
                                                {"method", options.method}};
  for (const std::string& header : options.headers)
    query.emplace("header", header);
  for (const std::string& cookie : options.cookies)
    query.emplace("cookie", cookie);
  const auto question = channel::parse_explain_query(query);
  if (!question.ok()) return question.status();

  const std::uint64_t seed = options.seed.value_or(next_seed());
  RuntimeOptions runtime_options;
  runtime_options.seed = seed;
  runtime_options.bootstrap_json =
      nlohmann::json{{"signalbox.resources", options.resources}}.dump();
  runtime_options.transport = EndpointTransport::kAssumed;
  runtime_options.log = [](const std::string& text) { say("explain", text); };
  auto runtime = Runtime::start(std::move(runtime_options));
  if (!runtime.ok()) return runtime.status();
  const auto router = (*runtime)->router(options.target);
  if (!router.ok()) return router.status();
  // What is wrong with a cookie is a step of the explanation, and nothing to be logged beside it.
  channel::ExplainQuestion without_cookies = *question;
  std::erase_if(without_cookies.headers,
                [](const auto& header) { return header.first == "cookie"; });
  const channel::QuestionHeaders headers(without_cookies);
  settle(**router, {.path = question->method, .headers = &headers, .seed = seed});
  return (*runtime)->explain_json(question->target, question->method, question->headers, seed);
}

int fail(const absl::Status& status) {
  say("explain", status.message());
  return is_usage(status) ? kExitUsage : kExitFailed;
}

}  // namespace

int run_explain(const ExplainOptions& options) {
  const auto answer = options.admin.empty() ? ask_file(options) : ask_process(options);
  if (!answer.ok()) return fail(answer.status());
  const auto explanation = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!explanation.is_object() || !explanation.contains("steps")) {
    return fail(absl::UnavailableError(
        absl::StrCat(options.admin, ": what listens there is no signalbox")));
  }
  std::cout << (options.json ? *answer : explain_text(explanation));
  return kExitOk;
}

}  // namespace signalbox::tools
