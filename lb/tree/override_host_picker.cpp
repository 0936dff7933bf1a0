// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/override_host_picker.hpp"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/session/session.hpp"
#include "lb/trace.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::lb {
namespace {

// Why a call cannot go to the cookie's host.
std::string reason_of(const HostSlot* known) {
  if (known == nullptr) return "no endpoint of the cluster has this address";
  if (!known->host->allowed) {
    return absl::StrCat("its health is ",
                        to_string(known->host->endpoint->health),
                        ", which override_host_status does not name");
  }
  return std::string(known->status.message());
}

struct Verdict {
  std::string decision;
  std::string reason;
};

// An explanation's text about one address of the cookie.
Verdict verdict_of(const HostSlot* slot) {
  if (slot == nullptr || !slot->host->allowed) return {"not taken", reason_of(slot)};
  const absl::string_view health = to_string(slot->host->endpoint->health);
  if (!slot->is_held) return {"no policy holds it", absl::StrCat("its health is ", health)};
  std::string details = absl::StrCat("it is ", to_string(slot->state), ", its health is ", health);
  if (!slot->status.ok()) absl::StrAppend(&details, "; ", slot->status.message());
  if (!slot->is_fit) return {"not taken", absl::StrCat("it is set aside; ", details)};
  switch (slot->state) {
    case ConnectivityState::kReady:
      return {"taken", std::move(details)};
    case ConnectivityState::kTransientFailure:
      return {"not taken", std::move(details)};
    default:
      return {"waited for, if no other is READY", std::move(details)};
  }
}

// The result when a call's session is strict, and its host cannot be used. An address that no
// endpoint has is not named: it comes from the call's metadata, which must not get into a status.
PickResult refuse(const HostSlot* known) {
  const std::string host = known == nullptr ? "the host of its cookie"
                                            : absl::StrCat("its host ", known->host->address.str());
  PickResult result;
  result.outcome = Drop{absl::UnavailableError(
      absl::StrCat("the session is strict, and ", host, " cannot be used: ", reason_of(known)))};
  return result;
}

// A pick reads all members: they are one cache line.
class alignas(kCacheLine) OverrideHostPicker final : public Picker {
 public:
  OverrideHostPicker(PickerPtr child, HostSlotsPtr slots, std::shared_ptr<const AskTarget> asks)
      : child_(std::move(child)), slots_(std::move(slots)), asks_(std::move(asks)) {}

  const SessionHint* session_hint() const override { return &slots_->seats(); }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    const SessionArgs* const session = session_of(args);
    if (session == nullptr) return child_.ask(args, sink);
    if constexpr (!Sink::kTells) {
      if (const Seat* const seat = slots_->seats().find(session->key, session->seat))
        return sit(*seat, *session);
    }
    return pick_host(args, sink);
  }

  // The result when the hash of the call's cookie has found a seat (the result of a pick for the
  // cookie's host). Prefetches the counter and the mark that the call writes: the router may not
  // have done so.
  static PickResult sit(const Seat& seat, const SessionArgs& session) {
    seat.prefetch_marks();
    const Affinity affinity{.result = seat.result, .hosts = seat.hosts, .as_cookie = true};
    return hit(seat.complete(), *seat.mark, affinity, session, Silent{});
  }

  template <typename Sink>
  static void tell(const Sink& sink, absl::string_view decision, absl::string_view reason) {
    sink.tell([&] {
      return PickStep{"override_host", std::string(decision), std::string(reason), "CDS"};
    });
  }

  // Explains whether one address of the cookie can take the call. An address that no endpoint has
  // is not named: if the cookie is sealed, its content is secret.
  template <typename Sink>
  static void tell_verdict(const Sink& sink, const HostSlot* slot) {
    sink.tell([&] {
      const auto [decision, reason] = verdict_of(slot);
      const std::string address = slot == nullptr ? "" : " " + slot->host->address.str();
      return PickStep{
          "override_host", absl::StrCat("cookie's host", address, ": ", decision), reason, "CDS"};
    });
  }

  // Looks the hosts of the call's cookie up, and uses the first rule that applies:
  //  - The first READY host takes the call.
  //  - The call waits for the first IDLE host, or else for a CONNECTING one.
  //  - The call waits for the first host without a subchannel.
  //  - The child picks, or the call fails if its session is strict.
  template <typename Sink>
  [[gnu::noinline]] PickResult pick_host(const PickArgs& args, const Sink& sink) const {
    const SessionArgs& session = *session_of(args);
    const absl::string_view hosts = hosts_of(session);
    if (hosts.empty()) {
      tell(sink, "a session begins", "the call has no cookie that names a host");
      return delegate(args, AffinityResult::kNew, sink);
    }
    const NamedHosts named =
        slots_->look_up(hosts, [&](const HostSlot* slot) { tell_verdict(sink, slot); });
    if (named.ready != nullptr) {
      const Host& host = *named.ready->host;
      return hit(named.ready->complete, *host.mark, affinity_to(host), session, sink);
    }
    if (named.idle != nullptr) {
      tell(sink, "the call waits", "its host is not connected; a pick lets it connect");
      return wait(AffinityResult::kQueued, sink, named.idle, PickAsk::Kind::kConnect);
    }
    if (named.is_connecting) {
      tell(sink, "the call waits", "its host is being connected");
      return wait(AffinityResult::kQueued, sink);
    }
    if (named.unheld != nullptr) {
      tell(sink, "the call waits", "no policy holds its host; a pick has it connected");
      return wait(AffinityResult::kCreated, sink, named.unheld, PickAsk::Kind::kCreate);
    }
    const auto why =
        named.known == nullptr ? AffinityResult::kUnknownHost : AffinityResult::kUnhealthy;
    if (!session.strict) {
      tell(sink, "the session moves", "no host of its cookie can be used, and it is not strict");
      return delegate(args, why, sink);
    }
    tell(sink, "the call is dropped", "no host of its cookie can be used, and it is strict");
    PickResult result = refuse(named.known);
    result.affinity.result = why;
    return result;
  }

  template <typename Sink>
  [[gnu::always_inline]] static PickResult hit(const Complete& complete,
                                               const SessionMark& mark,
                                               const Affinity& affinity,
                                               const SessionArgs& session,
                                               const Sink& sink) {
    sink.leave([&] { mark.touch(session.now); });
    tell(sink, "the session stays", "its host takes the call");
    PickResult result;
    result.outcome = complete;
    result.affinity = affinity;
    return result;
  }

  // Makes the call wait. The first call that waits for `slot` also sends the ask for its host.
  template <typename Sink>
  PickResult wait(AffinityResult why,
                  const Sink& sink,
                  const HostSlot* slot = nullptr,
                  PickAsk::Kind kind = PickAsk::Kind::kConnect) const {
    PickResult result;
    result.affinity.result = why;
    if (slot == nullptr || asks_ == nullptr) return result;
    sink.leave([&] {
      if (slot->asked.load(std::memory_order_relaxed)) return;
      if (slot->asked.exchange(true, std::memory_order_relaxed)) return;
      result.ask = PickAsk{kind, slot->host->address};
      result.ask_target = asks_.get();
    });
    return result;
  }

  // Lets the child pick. The session continues, or begins, on the endpoint that the child picks.
  template <typename Sink>
  PickResult delegate(const PickArgs& args, AffinityResult why, const Sink& sink) const {
    PickResult result = child_.ask(args, sink);
    result.affinity = {why};
    const auto* complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr || complete->connection == nullptr) return result;
    const HostSlot* const slot = slots_->find(complete->connection->address().str());
    if (slot == nullptr) return result;
    sink.leave([&] { slot->host->mark->touch(session_of(args)->now); });
    result.affinity.hosts = &slot->host->hosts;
    return result;
  }

  ChildPicker child_;
  HostSlotsPtr slots_;
  std::shared_ptr<const AskTarget> asks_;
};

}  // namespace

PickerPtr make_override_host_picker(PickerPtr child,
                                    HostSlotsPtr slots,
                                    std::shared_ptr<const AskTarget> asks) {
  return std::make_shared<const OverrideHostPicker>(
      std::move(child), std::move(slots), std::move(asks));
}

}  // namespace signalbox::lb
