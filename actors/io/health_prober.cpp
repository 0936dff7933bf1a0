// SPDX-License-Identifier: Apache-2.0
#include "actors/io/health_prober.hpp"

#include <deque>
#include <mutex>
#include <utility>
#include <variant>

#include "actors/io/grpc_prober.hpp"
#include "actors/io/socket_prober.hpp"

namespace signalbox::actors {
namespace {

/// The state of one ProbeByTurns: its probe waits in Turns::waiting_, is in progress (has_turn), or
/// does neither.
struct Seat {
  explicit Seat(std::unique_ptr<HealthProber::Probe> made) : probe(std::move(made)) {}

  std::mutex mutex;                            ///< Guards `probe`.
  std::unique_ptr<HealthProber::Probe> probe;  ///< The probe; null: the ProbeByTurns was destroyed.
  HealthProber::Answer answer;
  bool delayed = false;
  bool has_turn = false;  ///< Guarded by Turns::mutex_.
};

using SeatPtr = std::shared_ptr<Seat>;

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  explicit Turns(std::size_t most) : most_(most) {}

  void enter(const SeatPtr& seat) {
    {
      const std::lock_guard lock(mutex_);
      seat->delayed = under_way_ == most_;
      if (seat->delayed) return waiting_.push_back(seat);
      ++under_way_;
      seat->has_turn = true;
    }
    begin(seat);
  }

  /// If the seat's probe waits, removes the seat from waiting_. If the probe is in progress,
  /// records its end, and begins the probe of the seat that has waited longest.
  void leave(const SeatPtr& seat) {
    SeatPtr next;
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(seat->has_turn, false)) {
        std::erase(waiting_, seat);
        return;
      }
      if (waiting_.empty()) {
        --under_way_;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
      next->has_turn = true;
    }
    begin(next);
  }

 private:
  // Begins the seat's probe. Does nothing if the seat's ProbeByTurns was destroyed meanwhile:
  // ~ProbeByTurns calls leave(), so the next waiting probe begins.
  void begin(const SeatPtr& seat) {
    const std::lock_guard lock(seat->mutex);
    if (seat->probe == nullptr) return;
    seat->probe->begin(
        [seat, self = shared_from_this(), tell = std::move(seat->answer), delayed = seat->delayed](
            ProbeAnswer answer) {
          self->leave(seat);
          answer.delayed = delayed;
          tell(std::move(answer));
        });
  }

  const std::size_t most_;
  std::mutex mutex_;  ///< Guards the members below.
  std::size_t under_way_ = 0;
  std::deque<SeatPtr> waiting_;
};

class ProbeByTurns final : public HealthProber::Probe {
 public:
  ProbeByTurns(std::shared_ptr<Turns> turns, std::unique_ptr<Probe> probe)
      : turns_(std::move(turns)), seat_(std::make_shared<Seat>(std::move(probe))) {}

  ~ProbeByTurns() override {
    std::unique_ptr<Probe> unwanted;
    {
      const std::lock_guard lock(seat_->mutex);
      unwanted = std::move(seat_->probe);
    }
    unwanted = nullptr;
    turns_->leave(seat_);
  }

  void begin(HealthProber::Answer answer) override {
    seat_->answer = std::move(answer);
    turns_->enter(seat_);
  }

 private:
  const std::shared_ptr<Turns> turns_;
  const SeatPtr seat_;
};

class ProberByTurns final : public HealthProber {
 public:
  ProberByTurns(std::shared_ptr<HealthProber> prober, std::size_t most)
      : prober_(std::move(prober)), turns_(std::make_shared<Turns>(most)) {}

  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override {
    return std::make_unique<ProbeByTurns>(turns_, prober_->prepare(target, check));
  }

 private:
  const std::shared_ptr<HealthProber> prober_;
  const std::shared_ptr<Turns> turns_;
};

class ProberOfAllKinds final : public HealthProber {
 public:
  ProberOfAllKinds(std::shared_ptr<Connector> connector, std::unique_ptr<SocketProber> by_socket)
      : by_grpc_(std::move(connector)), by_socket_(std::move(by_socket)) {}

  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override {
    const bool is_grpc = std::holds_alternative<HealthCheck::Grpc>(check.probe);
    return is_grpc ? by_grpc_.prepare(target, check) : by_socket_->prepare(target, check);
  }

 private:
  GrpcProber by_grpc_;
  const std::unique_ptr<SocketProber> by_socket_;
};

}  // namespace

std::shared_ptr<HealthProber> make_prober_with_turns(std::shared_ptr<HealthProber> prober,
                                                     std::size_t most_at_once) {
  return std::make_shared<ProberByTurns>(std::move(prober), most_at_once);
}

absl::StatusOr<std::shared_ptr<HealthProber>> make_health_prober(
    std::shared_ptr<Connector> connector) {
  auto by_socket = SocketProber::make();
  if (!by_socket.ok()) return by_socket.status();
  return make_prober_with_turns(
      std::make_shared<ProberOfAllKinds>(std::move(connector), *std::move(by_socket)));
}

}  // namespace signalbox::actors
