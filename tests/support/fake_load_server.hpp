// SPDX-License-Identifier: Apache-2.0
//
// FakeLoadServer — a server of load reports (LRS) in memory, which adds up the reported loads.
//
//   load_reporter actor ─▶ open, send ─▶ [FakeLoadServer] ─▶ received, closed
//   world ─▶ say(interval), drop_streams; faults ─┘
//
// A report counts as written when it arrives. If the stream ends before, the report is lost, and
// the client must report its counts again. The server asks for the loads of all clusters.
//
// Faults let the server be silent, answer late, ask for nonsense before it asks for loads, change
// its interval, and stop to read: then a report is not written.
//
// The server complains if the first request of a stream has no node, if a later one has a node, and
// if a client opens more than one stream a second. The server's random numbers are independent of
// other fakes.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/io/ads_transport.hpp"
#include "messages/load_reporting.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::testing {

/// Calls to one cluster, as they were reported or made.
struct CallLoad {
  std::uint64_t issued = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  /// Dropped picks by category. Key "": those of the circuit breaker.
  std::map<std::string, std::uint64_t> drops = {};
  /// The sums of endpoints' values, by their names in the reports. The names of the utilisations
  /// are those of CDS: "cpu_utilization".
  std::map<std::string, MetricSum> metrics = {};

  CallLoad& operator+=(const CallLoad& other);

  /// Whether every sum is at least that of `other`.
  bool has_all_of(const CallLoad& other) const;
  /// Everything that was counted, together; the totals of metrics do not count.
  std::uint64_t events() const;

  friend bool operator==(const CallLoad&, const CallLoad&) = default;
};

class FakeLoadServer final : public actors::AdsTransport {
 public:
  FakeLoadServer(FakeClock& clock,
                 FakeFaults& faults,
                 FakeComplaints& complaints,
                 std::uint64_t seed)
      : clock_(clock), faults_(faults), complaints_(complaints), chance_(seed ^ kOwnDice) {}

  std::unique_ptr<Stream> open(Events events) override;

  const std::string& server() const override { return name_; }

  /// Asks for one report per `interval`, on the open stream and on later streams.
  void say(Duration interval);

  void drop_streams();
  /// Closes the streams on which a fault made the server silent, or made it stop to read.
  void close_silent();

  /// The sums of all reports, by cluster.
  const std::map<std::string, CallLoad>& loads() const { return loads_; }

  /// The most events in one report; see CallLoad::events().
  std::uint64_t largest() const { return largest_; }

  std::size_t streams() const { return streams_.size(); }

 private:
  class FakeStream;

  static constexpr std::uint64_t kOwnDice = 0x10adULL;

  struct Open {
    Events events;
    bool silent = false;   // A fault: it never answers.
    bool stopped = false;  // A fault: it reads no more.
    bool closed = false;
    bool has_node = false;
    bool is_read = true;  // The client has asked for its next message.
    std::string unread;   // The newest response, if the client has not received it.
    Instant last_arrival;
  };

  Open* find(std::uint64_t stream);
  void close(std::uint64_t stream, const std::string& why);
  void arrive(std::uint64_t stream, const std::string& bytes);
  void answer(std::uint64_t stream);
  void answer_falsely(std::uint64_t stream);
  void jump_later(std::uint64_t stream);
  void respond(std::uint64_t stream, std::string bytes);
  void hand_over(std::uint64_t stream);

  FakeClock& clock_;
  FakeFaults& faults_;
  FakeComplaints& complaints_;
  FakeChance chance_;
  const std::string name_ = "fake-load-server";
  Duration interval_ = std::chrono::seconds(2);
  std::map<std::string, CallLoad> loads_;
  std::uint64_t largest_ = 0;
  std::uint64_t next_stream_ = 0;
  std::optional<Instant> last_open_;
  std::map<std::uint64_t, Open> streams_;
};

}  // namespace signalbox::testing
