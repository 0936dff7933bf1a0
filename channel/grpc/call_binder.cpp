// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/call_binder.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "actors/io/grpc_connector.hpp"
#include "actors/io/lost_connection.hpp"
#include "channel/grpc/ops_scope.hpp"
#include "messages/header_rules.hpp"

namespace signalbox::channel {
namespace {

using grpc::internal::Call;

// The metadata in the context. Keys are lower case: refuse_unsendable() has removed others.
class ContextHeaders final : public HeaderSource {
 public:
  explicit ContextHeaders(const grpc::ClientContext& context)
      : metadata_(GrpcAccess::metadata(context)) {}

  [[gnu::hot]] void each(absl::string_view name,
                         absl::FunctionRef<void(absl::string_view value)> visit) const override {
    if (metadata_.empty()) return;
    // The map looks up std::string keys only. One string serves all calls of the thread, so that a
    // long name does not allocate each time.
    thread_local std::string key;
    key.assign(name.data(), name.size());
    const auto [first, last] = metadata_.equal_range(key);
    for (auto header = first; header != last; ++header)
      visit(header->second);
  }

 private:
  const std::multimap<std::string, std::string>& metadata_;
};

const actors::GrpcConnection& connection_of(const lb::Pick& pick) {
  return static_cast<const actors::GrpcConnection&>(*pick.connection());
}

// The name of the anchor channel (make_anchor()) when the target is invalid, or when gRPC cannot
// parse the target.
const char kNoTarget[] = "unix:signalbox";

// Makes the anchor channel, which never connects: failed and waiting calls are made on it. Its name
// is the target, because ClientContext::peer() of a call without a server returns the channel's
// name. gRPC would resolve the name only to connect. With a name that gRPC cannot parse, gRPC makes
// a channel on which every call fails at once, so the anchor channel then gets the name kNoTarget.
std::shared_ptr<grpc::Channel> make_anchor(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  const auto named = [&](const std::string& name) {
    return grpc::CreateCustomChannel(name, grpc::InsecureChannelCredentials(), arguments);
  };
  auto anchor = named(target);
  const bool is_lame = anchor->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_IDLE;
  return is_lame ? named(kNoTarget) : anchor;
}

// Ends the call with `status`. gRPC's codes have the same numbers as absl's. A call keeps the first
// status that it gets, so batches that are started later complete with `status`.
void end(grpc_call* call, const absl::Status& status) {
  grpc_call_cancel_with_status(call,
                               static_cast<grpc_status_code>(status.code()),
                               std::string(status.message()).c_str(),
                               nullptr);
}

Duration until(gpr_timespec deadline) {
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  constexpr auto kMost = std::chrono::floor<std::chrono::seconds>(Duration::max());
  // The deadline has passed, perhaps so long ago that Duration cannot hold the difference.
  if (left.tv_sec < 0) return Duration::zero();
  if (left.tv_sec >= kMost.count()) return Duration::max();
  return std::chrono::seconds(left.tv_sec) + Duration(left.tv_nsec);
}

// Checks a header of the application; OK: it can be sent. The error has the code INTERNAL, as in
// gRPC's other languages. Values may be secret, so the text contains no value.
absl::Status what_is_wrong(absl::string_view name, absl::string_view value) {
  constexpr std::size_t kLongestName = 64;
  const std::string shown = absl::StrCat("\"", absl::CEscape(name.substr(0, kLongestName)), "\"");
  if (!is_header_name(name)) {
    return absl::InternalError(
        absl::StrCat("metadata: a name must be of a-z, 0-9, '-', '_' and '.', found ", shown));
  }
  if (!is_header_value(name, value)) {
    return absl::InternalError(absl::StrCat("metadata ",
                                            shown,
                                            ": a value must be printable ASCII, or the name end "
                                            "with -bin: ",
                                            unprintable_in(value)));
  }
  return absl::OkStatus();
}

// Checks the method or the authority of a call (`what`). Each is sent as a header, so the text must
// be a valid header value.
absl::Status what_is_wrong_with(absl::string_view what, absl::string_view text) {
  if (is_header_value(what, text)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", unprintable_in(text)));
}

// Owns the pick of a call without a call interceptor, until the call's context ends.
struct UnobservedCall {
  std::shared_ptr<void> channel;
  CallIntent intent;
};

}  // namespace

void attach_interceptor(grpc::ClientContext& context, AttemptedCall& interceptor) {
  GrpcAccess::attach(context, &interceptor);
}

CallBinder::CallBinder(GrpcChannelOptions options)
    : creators_(std::move(options.interceptors)),
      options_(std::move(options)),
      anchor_(make_anchor(options_.is_wrong_target ? kNoTarget : options_.target)) {}

CallIntent CallBinder::begin(grpc::ClientContext& context) {
  CallIntent intent;
  intent.seed = next_seed();
  intent.wait_for_ready = GrpcAccess::wait_for_ready(context);
  // wait_for_ready can still be cleared here: gRPC reads the flag only when the first batch is
  // made.
  if (intent.wait_for_ready) context.set_wait_for_ready(false);
  const gpr_timespec deadline = context.raw_deadline();
  if (deadline.clock_type != GPR_CLOCK_MONOTONIC)
    context.set_deadline(gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC));
  return intent;
}

absl::Status CallBinder::refuse_unsendable(const char* method, grpc::ClientContext& context) {
  absl::Status refused = what_is_wrong_with("method", method);
  const absl::Status authority = what_is_wrong_with("authority", GrpcAccess::authority(context));
  if (!authority.ok()) context.set_authority("");
  refused.Update(authority);
  const auto is_wrong = [&](const auto& header) {
    absl::Status wrong = what_is_wrong(header.first, header.second);
    refused.Update(wrong);
    return !wrong.ok();
  };
  bool has_wrong = false;
  for (const auto& header : GrpcAccess::metadata(context)) {
    has_wrong = is_wrong(header);
    if (has_wrong) break;
  }
  if (has_wrong) GrpcAccess::erase_metadata(context, is_wrong);
  return refused;
}

bool CallBinder::pick(CallIntent& intent, const char* path, grpc::ClientContext& context) const {
  const ContextHeaders headers(context);
  lb::CallArgs args{.path = path,
                    .headers = &headers,
                    .seed = intent.seed,
                    .authority = &intent.authority,
                    .tried = intent.tried.empty() ? nullptr : &intent.tried};
  TriedAddresses avoided;
  if (intent.lost != nullptr) [[unlikely]] {
    if (sequence() != intent.pick.sequence()) {
      intent.lost = nullptr;
    } else {
      avoided = intent.lost->avoided(args.tried);
      args.tried = &avoided;
    }
  }
  if (intent.is_picked) {
    options_.router.repick(intent.pick, args);
  } else {
    intent.pick = options_.router.pick(args);
    intent.is_picked = true;
    // The route's timeout counts from this time. The time is needed only if the route is not known
    // yet or has a timeout.
    if (intent.pick.cluster() == nullptr || intent.pick.timeout()) {
      intent.started = gpr_now(GPR_CLOCK_MONOTONIC);
    }
  }
  for (const auto& [name, value] : intent.pick.take_headers())
    context.AddMetadata(name, value);
  if (intent.is_limited || !intent.pick.timeout()) return false;
  intent.is_limited = true;
  const gpr_timespec limit = gpr_time_add(
      intent.started, gpr_time_from_nanos(intent.pick.timeout()->count(), GPR_TIMESPAN));
  // An interceptor of the application may have set another deadline, by any clock.
  const gpr_timespec deadline = gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_MONOTONIC);
  if (gpr_time_cmp(limit, deadline) >= 0) return false;
  context.set_deadline(limit);
  return true;
}

Verdict CallBinder::judge(CallIntent& intent) {
  switch (intent.pick.outcome()) {
    case PickOutcome::kComplete:
      if (const lb::StreamLanes* const streams = lanes(intent))
        return take_stream(intent, *streams);
      if (is_alive(intent)) return Verdict::kBind;
      put_off(intent);
      return Verdict::kWait;
    case PickOutcome::kQueue:
      return Verdict::kWait;
    case PickOutcome::kFail:
      return intent.wait_for_ready ? Verdict::kWait : Verdict::kFail;
    case PickOutcome::kDrop:
      return Verdict::kFail;
  }
  return Verdict::kFail;
}

Verdict CallBinder::take_stream(CallIntent& intent, const lb::StreamLanes& streams) {
  switch (streams.take(intent.pick)) {
    case lb::StreamLanes::Answer::kTaken:
      return Verdict::kBind;
    case lb::StreamLanes::Answer::kFull:
      return Verdict::kWait;
    case lb::StreamLanes::Answer::kGone:
      break;
  }
  put_off(intent);
  return Verdict::kWait;
}

const lb::StreamLanes* CallBinder::lanes(const CallIntent& intent) {
  return connection_of(intent.pick).lanes();
}

void CallBinder::put_off(CallIntent& intent) {
  if (intent.lost == nullptr) intent.lost = std::make_unique<LostPicks>();
  intent.lost->put_off(intent.pick);
}

bool CallBinder::is_alive(const CallIntent& intent) {
  return connection_of(intent.pick).is_ready();
}

void CallBinder::refuse_credentials(const CallIntent& intent,
                                    const grpc::ClientContext& context,
                                    grpc_call* call) {
  if (!GrpcAccess::has_credentials(context) || !has_connection(intent)) return;
  if (!connection_of(intent.pick).is_socket()) return;
  end(call,
      absl::UnauthenticatedError("Established channel does not have a sufficient security level to "
                                 "transfer call credential."));
}

Call CallBinder::bind(CallIntent intent, CallSite&& site) {
  grpc_call* const call = connect(intent, site.method.name(), site.context, *site.cq);
  const Interception made = intercept(site);
  GrpcAccess::set_call(site.context, call, std::move(site.channel));
  hand_over(intent, made.interceptor);
  if (made.interceptor != nullptr) {
    const Call real(call, made.interceptor, site.cq, made.info);
    if (!is_callback_cq(site.cq)) return real;
    return made.interceptor->stand_behind(
        GrpcAccess::make_bare_call(*anchor_, site.method.name(), *site.cq), real);
  }
  auto unobserved = std::make_shared<UnobservedCall>();
  *unobserved = {GrpcAccess::owned(site.context), std::move(intent)};
  GrpcAccess::own(site.context, std::move(unobserved));
  return {call, this, site.cq, made.info};
}

Call CallBinder::fail(const absl::Status& status, CallIntent& intent, const CallSite& site) {
  grpc_call* const call = GrpcAccess::make_call(
      GrpcAccess::c_channel(*anchor_), site.method.name(), site.context, site.cq->cq());
  const Interception made = intercept(site);
  GrpcAccess::set_call(site.context, call, site.channel);
  end(call, status);
  hand_over_failed(intent, made.interceptor);
  if (made.interceptor != nullptr) return {call, &made.interceptor->filler(), site.cq, made.info};
  return {call, this, site.cq, made.info};
}

Interception CallBinder::intercept(const CallSite& site) const {
  auto* const info = GrpcAccess::intercept(
      site.context, site.method, site.channel.get(), creators_, site.position);
  return {info, static_cast<AttemptedCall*>(GrpcAccess::attached(site.context))};
}

grpc_call* CallBinder::connect(const CallIntent& intent,
                               const char* method,
                               const grpc::ClientContext& context,
                               grpc::CompletionQueue& cq) const {
  const actors::GrpcConnection& connection = connection_of(intent.pick);
  const absl::string_view own =
      options_.authority.empty() ? connection.authority() : options_.authority;
  const absl::string_view authority = intent.authority.empty() ? own : intent.authority;
  grpc_call* const call =
      GrpcAccess::make_call(connection.c_channel(), method, context, cq.cq(), authority);
  refuse_credentials(intent, context, call);
  return call;
}

grpc_call* CallBinder::refuse(const absl::Status& status,
                              const char* method,
                              grpc::CompletionQueue& cq) const {
  grpc_call* const call = GrpcAccess::make_bare_call(*anchor_, method, cq);
  end(call, status);
  return call;
}

void CallBinder::hand_over(CallIntent& intent, AttemptedCall* interceptor) {
  if (interceptor != nullptr) interceptor->bound(*this, std::move(intent));
}

void CallBinder::hand_over_failed(CallIntent& intent, AttemptedCall* interceptor) {
  if (intent.pick.outcome() == PickOutcome::kFail && !intent.pick.retry().is_none())
    hand_over(intent, interceptor);
}

const CallStats* CallBinder::stats(const CallIntent& intent) {
  return has_connection(intent) ? intent.pick.stats() : nullptr;
}

std::optional<Duration> CallBinder::retry(CallIntent& intent, const EndedAttempt& ended) const {
  const bool had_connection = has_connection(intent);
  const grpc::StatusCode code = ended.status.error_code();
  lb::AttemptEnd end{.code = code};
  auto reach = actors::Reach::kServer;
  if (code != grpc::StatusCode::OK) {
    if (had_connection && code == grpc::StatusCode::UNAVAILABLE)
      reach = actors::reach_of(ended.context, connection_of(intent.pick), ended.was_taken);
    end.is_unsent = ended.request_bytes && reach == actors::Reach::kNowhere;
    end.is_refused = ended.request_bytes && reach == actors::Reach::kRefused;
    end.is_committed = had_connection && GrpcAccess::has_headers(ended.context);
    end.is_kept = ended.request_bytes && *ended.request_bytes <= options_.retry_buffer_bytes;
    end.time_left = until(ended.context.raw_deadline());
    const auto& trailers = ended.context.GetServerTrailingMetadata();
    const auto pushback = trailers.find("grpc-retry-pushback-ms");
    if (pushback != trailers.end())
      end.pushback.emplace(pushback->second.data(), pushback->second.size());
  }
  const auto decision =
      intent.retry.after(end, intent.pick.retry(), intent.seed, options_.throttle.get());
  const bool is_over = !ended.is_wanted || !decision.delay;
  if (had_connection && is_over) name_endpoint(intent, reach, ended);
  const bool is_no_attempt = ended.is_wanted && decision.is_transparent;
  if (!end.is_unsent && !is_no_attempt) intent.pick.end(code);
  if (!ended.is_wanted) return std::nullopt;
  if (decision.result) {  // Set only if the call has a route, so stats() may be called.
    if (const CallStats* const stats = intent.pick.stats()) stats->count_retry(*decision.result);
  }
  if (!decision.delay) return std::nullopt;
  if (decision.is_transparent) {
    counts().count_repicked();
  } else {  // A6: a retry may go to another endpoint, so it gets another seed.
    intent.seed = draw(intent.seed, Salt::kRetryPick);
  }
  const bool elsewhere = options_.retry_elsewhere || intent.pick.retry().avoids_tried();
  if (elsewhere && had_connection) intent.tried.push_back(intent.pick.connection()->address());
  intent.pick.put_off();
  return decision.delay;
}

// gRPC's texts for a broken connection name neither the endpoint nor the call's target, so this
// function adds both. Statuses of servers, deadlines and cancellations keep their texts.
void CallBinder::name_endpoint(const CallIntent& intent,
                               actors::Reach reach,
                               const EndedAttempt& ended) const {
  const grpc::StatusCode code = ended.status.error_code();
  const bool may_be_the_connection = code == grpc::StatusCode::UNAVAILABLE ||
                                     code == grpc::StatusCode::INTERNAL ||
                                     code == grpc::StatusCode::UNKNOWN;
  if (!may_be_the_connection || actors::is_from_server(ended.context, reach)) return;
  const absl::Status why(static_cast<absl::StatusCode>(code),
                         absl::StrCat("endpoint ",
                                      connection_of(intent.pick).address().str(),
                                      ": ",
                                      ended.status.error_message()));
  ended.status = grpc::Status(
      code, std::string(describe(why, intent).message()), ended.status.error_details());
}

absl::Status CallBinder::describe(const absl::Status& why, const CallIntent& intent) const {
  return options_.router.describe(why, intent.pick.cluster());
}

absl::Status CallBinder::closed() const {
  const lb::Pick last = options_.router.pick({});
  if (last.outcome() == PickOutcome::kFail) return last.status();
  return options_.router.describe(
      absl::UnavailableError("the signalbox runtime has been shut down"));
}

grpc::CompletionQueue* CallBinder::callback_cq() {
  grpc::CompletionQueue* known = callback_cq_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  poller_.keep_callback_threads();
  known = GrpcAccess::callback_cq(*anchor_);
  callback_cq_.store(known, std::memory_order_release);
  return known;
}

void CallBinder::PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops, Call* call) {
  const OpsScope scope(ops, *call);
  ops->FillOps(call);
}

}  // namespace signalbox::channel
