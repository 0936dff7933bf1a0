// SPDX-License-Identifier: Apache-2.0
//
// Server — a control plane with a capacity: it works on one message after the other, in the order
// of their arrival.
//
//   network ─▶ dial, request ─▶ [queue] ─▶ 1 / capacity s each ─▶ accepted, response ─▶ network
//   scenario ─▶ stop, start, slow down, publish ─┘
//
// The unit of work is a message. A connection (TLS and the stream), a request with its response, an
// ACK or NACK, and a response that is pushed cost the same. The server works for a connection that
// its client has given up, because it notices the end only then.
//
// Rules of answers (state of the world)
//   A1  The first request of a type on a stream is answered, even if the client's version is the
//       newest.
//   A2  A request that answers the last response is answered only if there is a newer version, or
//       if it is a NACK and the server sends refused responses again (`sends_again`).
//   A3  A request with an old nonce is ignored.
//   A4  A published version is pushed to each stream without an unanswered response of the type. A
//       stream with one gets the version after its answer (A2).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <variant>

#include "messages/resource.hpp"
#include "tests/fleet/connection.hpp"
#include "tests/fleet/record.hpp"
#include "tests/support/fake_clock.hpp"

namespace signalbox::fleet {

inline constexpr std::array kTypes = {ResourceType::kListener,
                                      ResourceType::kRouteConfig,
                                      ResourceType::kCluster,
                                      ResourceType::kEndpoints};

struct Accepted {};

/// The connection was refused, or has ended.
struct Ended {};

struct Response {
  std::string bytes;
};

using FromServer = std::variant<Accepted, Ended, Response>;

class Server {
 public:
  using Deliver = std::function<void(ConnectionId, FromServer)>;

  Server(testing::FakeClock& clock, Record& record, double capacity, Deliver deliver);

  // --- arrivals ---
  void dial(ConnectionId connection);
  void hang_up(ConnectionId connection);
  void receive(ConnectionId connection, std::string bytes);

  // --- the scenario's orders ---
  /// Ends all connections and drops all work.
  void stop();

  void start() { is_up_ = true; }

  /// Messages a second, for the work that begins from now on.
  void set_capacity(double capacity) { capacity_ = capacity; }

  void set_sends_again(bool sends_again) { sends_again_ = sends_again; }

  /// Makes the next version of the type, and pushes it.
  void publish(ResourceType type, bool valid = true);

  /// The newest versions, by ResourceType.
  std::array<std::uint64_t, kTypes.size()> versions() const;

 private:
  struct Subscription {
    std::uint64_t sent = 0;  // The version of the last response.
    std::uint64_t nonce = 0;
    bool is_unanswered = false;
    bool is_queued = false;  // A push of the type waits in the queue.
  };

  using Subscriptions = std::map<ResourceType, Subscription>;

  struct Published {
    std::uint64_t version = 0;
    std::string bytes;  // The response without its nonce.
  };

  struct Handshake {};

  struct Request {
    std::string bytes;
  };

  struct Push {
    ResourceType type = ResourceType::kListener;
  };

  struct Work {
    ConnectionId connection;
    std::variant<Handshake, Request, Push> what;
    Instant arrived;
  };

  void add(Work work);
  void work_on_next();
  void run(const Work& work);
  void on(ConnectionId connection, Subscriptions& subscriptions, const Handshake& handshake);
  void on(ConnectionId connection, Subscriptions& subscriptions, const Request& request);
  void on(ConnectionId connection, Subscriptions& subscriptions, const Push& push);
  void respond(ConnectionId connection, ResourceType type, Subscription& subscription);

  Published& published(ResourceType type) { return published_[static_cast<std::size_t>(type)]; }

  testing::FakeClock& clock_;
  Record& record_;
  double capacity_;
  Deliver deliver_;
  bool is_up_ = true;
  bool sends_again_ = false;
  std::array<Published, kTypes.size()> published_;
  std::map<ConnectionId, Subscriptions> connections_;
  std::deque<Work> queue_;
  bool is_working_ = false;
  std::uint64_t epoch_ = 0;  // Counts stops, after which the work under way is void.
  std::uint64_t nonces_ = 0;
};

}  // namespace signalbox::fleet
