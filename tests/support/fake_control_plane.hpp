// SPDX-License-Identifier: Apache-2.0
//
// FakeControlPlane — an xDS server in memory. It sends and reads serialised messages, and the
// faults of the simulation disturb it.
//
//   ads_stream actor ─▶ open, send ─▶ [FakeControlPlane] ─▶ received, closed
//   world ─▶ set(resource), remove, drop_streams, restart; faults ─┘
//
// The server speaks the state-of-the-world protocol. A response of LDS or CDS has all resources
// that the stream has subscribed to and that exist. A response of RDS or EDS has those that have
// changed, or after a change of the subscription all of them. Every message takes time, and
// messages of one stream stay in order.
//
// The server complains if the client breaks the protocol. Each response must get exactly one ACK or
// NACK with its nonce, unless the client answers a later response of the type instead. The client
// may open at most one stream a second. The client learns that a request was written only when the
// request arrives, so the client can act while its request is on the way.

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
  /// Works around a gap of the protocol. A client unsubscribes from a resource, and thereby drops
  /// it, in a request with an old nonce, which the server ignores. The client then subscribes
  /// again. The server never learned that the client had dropped the resource, so it does not send
  /// the resource until the resource changes. This function sends such resources.
  void resend_forgotten();
  /// Closes the streams on which a fault made the server silent.
  void close_silent();

  /// The names of the type that the live stream has subscribed to; nullopt: there is no live
  /// stream. At most one stream is live.
  std::optional<std::set<std::string>> subscribed(ResourceType type) const;
  std::size_t unanswered() const;

  std::size_t streams() const { return streams_.size(); }

  /// A hash (FNV-1a) of all requests that have arrived. Equal seeds must give equal hashes.
  std::uint64_t hash_of_requests() const { return hash_; }

 private:
  class FakeStream;

  struct Served {
    std::string bytes;
    bool valid = true;
    std::uint64_t changed_in = 0;
    /// The resource's bytes before its last change; empty: it has not changed yet.
    std::string before;
    bool before_valid = true;
  };

  struct Expected {
    std::string version;
    bool nack = false;
    std::uint64_t age = 0;  ///< The response's number; later responses have larger ones.
  };

  struct Subscription {
    std::set<std::string> names;  ///< The names by the last request that the server did not ignore.
    /// The names of the last request, even if the server ignored it.
    std::set<std::string> requested;
    std::uint64_t sent_version = 0;
    std::string nonce;  ///< The nonce of the newest response.
    /// The responses without an answer. Keys: their nonces.
    std::map<std::string, Expected> unanswered;
    /// The entries of `names` that a later, ignored request left out.
    std::set<std::string> unsubscribed_unheard;
    /// The entries of unsubscribed_unheard that a later request named again.
    std::set<std::string> forgotten;
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
    bool is_read = true;  ///< The client has asked for its next message.
    /// Messages that have arrived, and that the client has not asked for.
    std::deque<std::string> unread;
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
