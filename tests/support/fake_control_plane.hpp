// SPDX-License-Identifier: Apache-2.0
//
// FakeControlPlane — an xDS server in memory that speaks real bytes, and that faults disturb.
//
//   ads_stream actor ─▶ open, send ─▶ [FakeControlPlane] ─▶ received, closed
//   world ─▶ set(resource), remove, drop_streams, restart; faults ─┘
//
// The server speaks the state-of-the-world protocol: for each type, it answers a stream with all
// named resources that exist. Every message takes time; order is kept within a stream. The server
// complains when a response gets not exactly one ACK or NACK with its nonce. The answer to a later
// response may stand for it. The server also complains when streams come faster than one a second.
// A request counts as written when it arrives, so client actions during a request's flight are
// seen, too.

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "actors/io/ads_transport.hpp"
#include "messages/resource.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::testing {

class FakeControlPlane final : public actors::AdsTransport {
 public:
  FakeControlPlane(FakeClock& clock,
                   FakeChance& chance,
                   FakeFaults& faults,
                   FakeComplaints& complaints)
      : clock_(clock), chance_(chance), faults_(faults), complaints_(complaints) {}

  std::unique_ptr<Stream> open(Events events) override;

  const std::string& server() const override { return name_; }

  /// `bytes`: the serialised resource. `valid`: whether a client should accept it.
  void set(ResourceType type, const std::string& name, std::string bytes, bool valid = true);
  void remove(ResourceType type, const std::string& name);

  void drop_streams();
  /// Closes all streams. Versions count from 1 again, in a new epoch.
  void restart();
  /// Sends resources again that a client unsubscribed and subscribed again in requests that were
  /// ignored for their old nonce. The server never learned that the client forgot such a resource.
  /// The client waits in vain, and after its timeout takes the resource for missing. The protocol
  /// has this gap; it lasts until the resource changes.
  void resend_forgotten();
  /// Closes streams that got stuck.
  void close_silent();

  /// Names that the only live stream subscribes to; nullopt: there is no live stream.
  std::optional<std::set<std::string>> subscribed(ResourceType type) const;
  std::size_t unanswered() const;

  std::size_t streams() const { return streams_.size(); }

  /// FNV-1a over all bytes that the client ever sent.
  std::uint64_t hash_of_requests() const { return hash_; }

 private:
  class FakeStream;

  struct Served {
    std::string bytes;
    bool valid = true;
    std::uint64_t changed_in = 0;
    std::string before;  ///< The resource's bytes before the last change; empty: it is the first.
    bool before_valid = true;
  };

  struct Expected {
    std::string version;
    bool nack = false;
    std::uint64_t age = 0;  ///< Rises from response to response.
  };

  struct Subscription {
    std::set<std::string> names;      ///< In force.
    std::set<std::string> requested;  ///< The last request's names, in force or not.
    std::uint64_t sent_version = 0;
    std::string nonce;                           ///< The newest response's.
    std::map<std::string, Expected> unanswered;  ///< By nonce.
    std::set<std::string> unsubscribed_unheard;  ///< In force, but not in an ignored request.
    std::set<std::string> forgotten;             ///< Of these, those that were named again.
    bool push_ordered = false;
  };

  struct Open {
    Events events;
    bool live = false;
    bool silent = false;
    bool answers_once = false;
    bool closed = false;
    Instant last_arrival;
    Instant last_delivery;
    bool is_read = true;             ///< The client takes one more message.
    std::deque<std::string> unread;  ///< Arrived, but not taken yet.
    std::map<ResourceType, Subscription> subscriptions;
  };

  Duration latency();
  Open* find(std::uint64_t stream);
  void begin(std::uint64_t stream);
  void written(std::uint64_t stream);
  void close(std::uint64_t stream, const std::string& why);
  void send_arrives(std::uint64_t stream, const std::string& bytes);
  void respond_later(std::uint64_t stream, ResourceType type, bool even_if_unchanged);
  void respond(std::uint64_t stream, ResourceType type, bool even_if_unchanged);
  void deliver(std::uint64_t stream, std::string bytes);
  void hand_over(std::uint64_t stream);
  void changed(ResourceType type);

  FakeClock& clock_;
  FakeChance& chance_;
  FakeFaults& faults_;
  FakeComplaints& complaints_;
  const std::string name_ = "fake-control-plane";
  std::map<ResourceType, std::map<std::string, Served>> world_;
  std::uint64_t epoch_ = 1;
  std::uint64_t version_ = 1;
  std::uint64_t nonces_ = 0;
  std::uint64_t next_stream_ = 0;
  std::optional<Instant> last_open_;
  std::map<std::uint64_t, Open> streams_;
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace signalbox::testing
