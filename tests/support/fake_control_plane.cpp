// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_control_plane.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::testing {
namespace {

using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

bool is_full_state(ResourceType type) {
  return type == ResourceType::kListener || type == ResourceType::kCluster;
}

}  // namespace

class FakeControlPlane::FakeStream final : public actors::AdsTransport::Stream {
 public:
  FakeStream(FakeControlPlane* owner, std::uint64_t number) : owner_(owner), number_(number) {}

  ~FakeStream() override { owner_->streams_.erase(number_); }

  void send(std::string bytes) override {
    Open* open = owner_->find(number_);
    if (open == nullptr) return;
    const Duration delay = owner_->latency();
    open->last_arrival = std::max(open->last_arrival, owner_->clock_.now() + delay);
    owner_->clock_.after(open->last_arrival - owner_->clock_.now(),
                         [owner = owner_, number = number_, sent = std::move(bytes)] {
                           owner->written(number);
                           owner->send_arrives(number, sent);
                         });
  }

  void read_next() override {
    Open* open = owner_->find(number_);
    if (open == nullptr) return;
    open->is_read = true;
    owner_->clock_.after(Duration::zero(),
                         [owner = owner_, number = number_] { owner->hand_over(number); });
  }

 private:
  FakeControlPlane* owner_;
  std::uint64_t number_;
};

// --- streams ----------------------------------------------------------------

std::unique_ptr<actors::AdsTransport::Stream> FakeControlPlane::open(Events events) {
  complaints_.require(!last_open_ || clock_.now() - *last_open_ >= seconds(1),
                      "at most one new ADS stream per second [B8]");
  last_open_ = clock_.now();
  const std::uint64_t number = ++next_stream_;
  Open& open = streams_[number];
  open.events = std::move(events);
  open.silent = faults_.fires(Fault::kStreamSilent);
  open.answers_once = faults_.fires(Fault::kStreamAnswersOnce);
  const Duration delay = milliseconds(1) + latency();
  if (faults_.fires(Fault::kStreamRefused)) {
    clock_.after(delay, [this, number] { close(number, "connection refused"); });
  } else {
    clock_.after(delay, [this, number] { begin(number); });
  }
  if (open.silent) {
    clock_.after(faults_.dice(Fault::kStreamSilent).between(seconds(1), seconds(30)),
                 [this, number] { close(number, "keepalive timed out"); });
  }
  return std::make_unique<FakeStream>(this, number);
}

Duration FakeControlPlane::latency() {
  if (faults_.fires(Fault::kServerSlow))
    return faults_.dice(Fault::kServerSlow).between(Duration::zero(), seconds(6));
  return chance_.between(Duration::zero(), milliseconds(20));
}

FakeControlPlane::Open* FakeControlPlane::find(std::uint64_t stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() || found->second.closed ? nullptr : &found->second;
}

void FakeControlPlane::begin(std::uint64_t stream) {
  Open* open = find(stream);
  if (open == nullptr) return;
  open->live = true;
  open->events.opened();
}

void FakeControlPlane::written(std::uint64_t stream) {
  const Open* open = find(stream);
  if (open != nullptr) open->events.written();
}

void FakeControlPlane::close(std::uint64_t stream, const std::string& why) {
  Open* open = find(stream);
  if (open == nullptr) return;
  open->closed = true;
  open->live = false;
  open->events.closed(absl::UnavailableError(why));
}

void FakeControlPlane::drop_streams() {
  std::vector<std::uint64_t> all;
  for (const auto& [number, open] : streams_)
    all.push_back(number);
  for (const std::uint64_t number : all)
    close(number, "stream reset");
}

void FakeControlPlane::restart() {
  ++epoch_;
  version_ = 1;
  for (auto& [type, resources] : world_) {
    for (auto& [name, served] : resources)
      served.changed_in = version_;
  }
  drop_streams();
}

void FakeControlPlane::resend_forgotten() {
  for (auto& [number, open] : streams_) {
    for (auto& [type, subscription] : open.subscriptions) {
      if (!std::exchange(subscription.forgotten, {}).empty()) respond_later(number, type, true);
    }
  }
}

void FakeControlPlane::close_silent() {
  std::vector<std::uint64_t> silent;
  for (const auto& [number, open] : streams_) {
    if (open.silent) silent.push_back(number);
  }
  for (const std::uint64_t number : silent)
    close(number, "keepalive timed out");
}

// --- the resources that the server has --------------------------------------

void FakeControlPlane::set(ResourceType type,
                           const std::string& name,
                           std::string bytes,
                           bool valid) {
  Served& served = world_[type][name];
  if (served.bytes == bytes && served.valid == valid) return;
  served = {std::move(bytes), valid, ++version_, std::move(served.bytes), served.valid};
  changed(type);
}

void FakeControlPlane::remove(ResourceType type, const std::string& name) {
  if (world_[type].erase(name) == 0) return;
  ++version_;
  if (is_full_state(type)) changed(type);
}

void FakeControlPlane::changed(ResourceType type) {
  for (auto& [number, open] : streams_) {
    if (open.subscriptions.contains(type)) respond_later(number, type, false);
  }
}

// --- requests ---------------------------------------------------------------

void FakeControlPlane::send_arrives(std::uint64_t stream, const std::string& bytes) {
  for (const char c : bytes)
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  Open* open = find(stream);
  if (open == nullptr) return;
  DiscoveryRequest request;
  const bool parsed = request.ParseFromString(bytes);
  const auto type = xds::resource_type_of(request.type_url());
  complaints_.require(parsed && type.has_value(), "a request can be read by the server");
  if (!parsed || !type) return;
  complaints_.require(!open->subscriptions.empty() || request.has_node(),
                      "the first request of a stream says who we are");

  const std::set<std::string> names(request.resource_names().begin(),
                                    request.resource_names().end());
  const auto [found, is_first] = open->subscriptions.try_emplace(*type);
  Subscription& subscription = found->second;
  const std::string& nonce = request.response_nonce();
  const bool names_changed = subscription.requested != names;
  subscription.requested = names;
  const auto expected = subscription.unanswered.find(nonce);
  if (expected != subscription.unanswered.end()) {
    const bool nack = request.has_error_detail();
    complaints_.require(nack == expected->second.nack,
                        "what is valid is ACKed and what is not is NACKed",
                        absl::StrCat(to_string(*type), " nonce ", nonce));
    complaints_.require(nack || request.version_info() == expected->second.version,
                        "an ACK carries the version of the response",
                        absl::StrCat(to_string(*type), " nonce ", nonce));
    const std::uint64_t age = expected->second.age;
    subscription.unanswered.erase(expected);
    std::erase_if(subscription.unanswered,
                  [&](const auto& other) { return other.second.age < age; });
  } else {
    complaints_.require(is_first || names_changed,
                        "each response is answered by exactly one ACK or NACK with its nonce",
                        absl::StrCat(to_string(*type), " nonce ", nonce, " once more"));
    complaints_.require(!request.has_error_detail(), "a NACK carries the nonce of its response");
  }
  // A request with an older nonce is ignored, as the protocol demands.
  if (nonce != subscription.nonce) {
    std::ranges::set_difference(
        subscription.names,
        names,
        std::inserter(subscription.unsubscribed_unheard, subscription.unsubscribed_unheard.end()));
    return;
  }
  for (const std::string& name : std::exchange(subscription.unsubscribed_unheard, {})) {
    if (names.contains(name)) subscription.forgotten.insert(name);
  }
  const bool news = is_first || subscription.names != names;
  subscription.names = names;
  if (news && !open->silent) respond_later(stream, *type, true);
}

// --- responses --------------------------------------------------------------

void FakeControlPlane::respond_later(std::uint64_t stream,
                                     ResourceType type,
                                     bool even_if_unchanged) {
  Open* open = find(stream);
  if (open == nullptr) return;
  Subscription& subscription = open->subscriptions.at(type);
  if (std::exchange(subscription.push_ordered, true) && !even_if_unchanged) return;
  Duration delay = latency();
  if (faults_.fires(Fault::kTypeLate))
    delay += faults_.dice(Fault::kTypeLate).between(Duration::zero(), seconds(5));
  clock_.after(
      delay, [this, stream, type, even_if_unchanged] { respond(stream, type, even_if_unchanged); });
}

void FakeControlPlane::respond(std::uint64_t stream, ResourceType type, bool even_if_unchanged) {
  Open* open = find(stream);
  if (open == nullptr || open->silent) return;
  Subscription& subscription = open->subscriptions.at(type);
  subscription.push_ordered = false;
  if (faults_.fires(Fault::kStreamLost)) {
    close(stream, "stream reset");
    return;
  }
  if (faults_.fires(Fault::kResponseDropped)) {
    subscription.push_ordered = true;
    clock_.after(
        faults_.dice(Fault::kResponseDropped).between(milliseconds(100), seconds(5)),
        [this, stream, type, even_if_unchanged] { respond(stream, type, even_if_unchanged); });
    return;
  }
  DiscoveryResponse response;
  Expected expected;
  bool news = even_if_unchanged;
  bool leaves_out = false;
  for (const auto& [name, served] : world_[type]) {
    if (!subscription.names.contains(name)) continue;
    const bool is_new = served.changed_in > subscription.sent_version;
    news = news || is_new;
    if (!is_full_state(type) && !is_new && !even_if_unchanged) continue;
    if (faults_.fires(is_full_state(type) ? Fault::kResponseOmits : Fault::kResponsePartial)) {
      leaves_out = true;
      continue;
    }
    const bool stale = !served.before.empty() && faults_.fires(Fault::kResponseStale);
    leaves_out = leaves_out || stale;
    auto* any = response.add_resources();
    any->set_type_url(std::string(xds::type_url_of(type)));
    any->set_value(stale ? served.before : served.bytes);
    expected.nack = expected.nack || !(stale ? served.before_valid : served.valid);
  }
  // If a fault left out some resources, or sent old ones, the server sends another response for all
  // of them.
  if (leaves_out || faults_.fires(Fault::kResponseRepeated)) respond_later(stream, type, true);
  const bool nothing = response.resources().empty() && !is_full_state(type);
  if (nothing || (!news && !is_full_state(type)) || subscription.names.empty()) return;

  subscription.sent_version = version_;
  expected.version = absl::StrCat(epoch_, ".", version_);
  expected.age = ++nonces_;
  subscription.nonce = absl::StrCat("n", nonces_);
  subscription.unanswered.emplace(subscription.nonce, expected);
  response.set_version_info(expected.version);
  response.set_type_url(std::string(xds::type_url_of(type)));
  response.set_nonce(subscription.nonce);
  deliver(stream, response.SerializeAsString());
}

void FakeControlPlane::deliver(std::uint64_t stream, std::string bytes) {
  Open* open = find(stream);
  const Instant arrival = clock_.now() + milliseconds(1) + latency();
  open->last_delivery = std::max(open->last_delivery, arrival);
  clock_.after(open->last_delivery - clock_.now(), [this, stream, sent = std::move(bytes)] {
    Open* to = find(stream);
    if (to == nullptr) return;
    to->unread.push_back(sent);
    hand_over(stream);
  });
}

// Delivers the oldest unread message, if the client has asked for one. The client asks only after
// it has decoded the message before (flow control).
void FakeControlPlane::hand_over(std::uint64_t stream) {
  Open* open = find(stream);
  if (open == nullptr || open->unread.empty() || !std::exchange(open->is_read, false)) return;
  open->events.received(std::move(open->unread.front()));
  open->unread.pop_front();
  if (open->answers_once) close(stream, "that was all");
}

// --- what the server knows --------------------------------------------------

std::optional<std::set<std::string>> FakeControlPlane::subscribed(ResourceType type) const {
  for (const auto& [number, open] : streams_) {
    if (!open.live || open.closed) continue;
    const auto found = open.subscriptions.find(type);
    return found == open.subscriptions.end() ? std::set<std::string>{} : found->second.names;
  }
  return std::nullopt;
}

std::size_t FakeControlPlane::unanswered() const {
  std::size_t count = 0;
  for (const auto& [number, open] : streams_) {
    if (open.closed) continue;
    for (const auto& [type, subscription] : open.subscriptions)
      count += subscription.unanswered.size();
  }
  return count;
}

}  // namespace signalbox::testing
