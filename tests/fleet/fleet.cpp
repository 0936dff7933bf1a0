// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/fleet.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "messages/invariant.hpp"
#include "tests/fleet/client.hpp"
#include "tests/fleet/server.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"

namespace signalbox::fleet {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCalm = 30s;
constexpr Duration kTail = 5s;  // The run goes on so long after the last client was served.
constexpr int kStartsBelowCapacity = 2;  // Clients start at half the rate that the server can take.

class Fleet final : public Network {
 public:
  Fleet(Manner manner, const FleetOptions& options)
      : options_(options),
        chance_(options.seed),
        server_(clock_, record_, options.capacity, [this](auto connection, auto message) {
          deliver(connection, std::move(message));
        }) {
    for (std::size_t i = 0; i < options.clients; ++i) {
      latencies_.push_back(chance_.between(1ms, 20ms));
      clients_.push_back(std::make_unique<Client>(
          clock_, *this, manner, i, chance_.next(), [this, i](const ResourceVersions& versions) {
            took(i, versions);
          }));
    }
    has_.resize(options.clients);
  }

  void dial(ConnectionId connection) override {
    later(connection, [this, connection] { server_.dial(connection); });
  }

  void hang_up(ConnectionId connection) override {
    later(connection, [this, connection] { server_.hang_up(connection); });
  }

  void send(ConnectionId connection, std::string bytes) override {
    later(connection,
          [this, connection, sent = std::move(bytes)] { server_.receive(connection, sent); });
  }

  Outcome run(const Scenario& scenario) {
    start_all();
    for (const Step& step : scenario.steps) {
      clock_.after_exactly(event_ + step.at - clock_.now(),
                           [this, &step] { step.take(server_, options_.capacity); });
    }
    run_until(event_ + scenario.published());
    want_newest();
    const Instant published = clock_.now();
    while (missing_ > 0 && clock_.next() && *clock_.next() < published + options_.limit)
      clock_.run_next();
    run_until(clock_.now() + kTail);
    record_.at(clock_.now());
    return outcome(published);
  }

 private:
  void later(ConnectionId connection, std::function<void()> action) {
    clock_.after_exactly(latencies_[connection.client], std::move(action));
  }

  void deliver(ConnectionId connection, FromServer message) {
    later(connection, [this, connection, sent = std::move(message)] {
      clients_[connection.client]->on(connection.number, sent);
    });
  }

  // The clients start at even distances. The event is in the second that begins after the calm.
  void start_all() {
    const std::chrono::duration<double> apart(kStartsBelowCapacity * kMessagesOfStart /
                                              options_.capacity);
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const auto delay = std::chrono::duration_cast<Duration>(apart * static_cast<double>(i));
      clock_.after_exactly(delay, [this, i] { clients_[i]->start(); });
    }
    want_newest();
    while (missing_ > 0) {
      SIGNALBOX_INVARIANT(clock_.next().has_value(), "every client is served before the event");
      clock_.run_next();
    }
    event_ = std::chrono::ceil<std::chrono::seconds>(clock_.now()) + kCalm;
    run_until(event_ - 1ns);
    record_.reset_longest_wait();
  }

  void run_until(Instant end) {
    for (auto next = clock_.next(); next && *next <= end; next = clock_.next())
      clock_.run_next();
    clock_.advance_to(end);
  }

  // From now on, the server's newest versions are those that clients should have.
  void want_newest() {
    const auto versions = server_.versions();
    for (std::size_t i = 0; i < versions.size(); ++i)
      newest_[i] = std::to_string(versions[i]);
    missing_ = clients_.size();
    std::ranges::fill(has_, std::nullopt);
  }

  void took(std::size_t client, const ResourceVersions& versions) {
    if (versions != newest_ || has_[client]) return;
    has_[client] = clock_.now();
    --missing_;
  }

  Outcome outcome(Instant published) const {
    Outcome outcome;
    const auto first = static_cast<std::ptrdiff_t>(event_.time_since_epoch() / kTenth);
    outcome.tenths.assign(record_.tenths().begin() + first, record_.tenths().end());
    for (const auto& when : has_) {
      if (when) outcome.reached.push_back(*when - published);
    }
    std::ranges::sort(outcome.reached);
    for (const auto& [client, nacks] : record_.nacks()) {
      outcome.nacks += nacks;
      outcome.most_nacks = std::max(outcome.most_nacks, nacks);
    }
    outcome.wasted = record_.wasted();
    outcome.longest_wait = record_.longest_wait();
    return outcome;
  }

  FleetOptions options_;
  testing::FakeClock clock_{Instant()};
  testing::FakeChance chance_;
  Record record_;
  Server server_;
  std::vector<Duration> latencies_;
  std::vector<std::unique_ptr<Client>> clients_;
  Instant event_;
  ResourceVersions newest_;
  std::vector<std::optional<Instant>> has_;  // When the client took the newest version.
  std::size_t missing_ = 0;                  // The clients that lack the newest version.
};

// The largest sum of so many consecutive tenths.
template <typename Count>
std::uint64_t most_of(const std::vector<Arrivals>& tenths, std::size_t tenths_long, Count count) {
  std::uint64_t most = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tenths.size(); ++i) {
    sum += std::invoke(count, tenths[i]);
    if (i >= tenths_long) sum -= std::invoke(count, tenths[i - tenths_long]);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

std::optional<Duration> Outcome::reached_by(double percent) const {
  const auto wanted =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(options.clients)));
  if (wanted == 0 || wanted > reached.size()) return std::nullopt;
  return reached[wanted - 1];
}

std::vector<Arrivals> Outcome::seconds() const {
  std::vector<Arrivals> seconds((tenths.size() + kTenthsOfSecond - 1) / kTenthsOfSecond);
  for (std::size_t i = 0; i < tenths.size(); ++i)
    seconds[i / kTenthsOfSecond] += tenths[i];
  return seconds;
}

Arrivals Outcome::total() const {
  Arrivals total;
  for (const Arrivals& tenth : tenths)
    total += tenth;
  return total;
}

std::uint64_t Outcome::peak() const {
  return most_of(tenths, kTenthsOfSecond, &Arrivals::arrived);
}

std::uint64_t Outcome::peak_connections(std::size_t tenths_long) const {
  return most_of(tenths, tenths_long, [](const Arrivals& tenth) { return tenth.connections; });
}

Outcome run_fleet(const Scenario& scenario, Manner manner, const FleetOptions& options) {
  Outcome outcome = Fleet(manner, options).run(scenario);
  outcome.scenario = std::string(scenario.name);
  outcome.manner = manner;
  outcome.options = options;
  return outcome;
}

}  // namespace signalbox::fleet
