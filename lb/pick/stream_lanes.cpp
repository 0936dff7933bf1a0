// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/stream_lanes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint32_t kNoLimit = 0x7fffffff;

}  // namespace

// A call that waits. The hall's mutex guards the members.
class StreamWait::Place {
 public:
  /// A stream that the place was given. The uses keep the lane and its connection alive.
  struct Stream {
    Use lane;
    Use connection;
  };

  explicit Place(std::shared_ptr<StreamLanes::Hall> of, std::function<void()> woken)
      : hall(std::move(of)), wake(std::move(woken)) {}

  const std::shared_ptr<StreamLanes::Hall> hall;
  const std::function<void()> wake;
  bool is_waiting = true;
  std::optional<Stream> stream = {};
  std::list<std::shared_ptr<Place>>::iterator at;  // Set while the place waits.
};

using Places = std::vector<std::shared_ptr<StreamWait::Place>>;

// The state that lanes share with calls, which may outlive the StreamLanes.
struct StreamLanes::Hall {
  explicit Hall(std::function<void()> wants) : wanted(std::move(wants)) {}

  const Lane* next_free(const Lane* left) const;
  void grant(Places& granted, const Lane* left = nullptr);
  void serve(const Lane& left);
  void end_waits(Places& over);

  const std::function<void()> wanted;
  /// The lanes, in order, up to the first null. Only the owner of the mutex writes. A reader
  /// without the mutex may miss a lane, or see one twice; it then finds the truth under the mutex.
  std::array<std::atomic<const Lane*>, kMost + 1> order{};
  /// The size of `places`. A call that ends reads it after its stream was freed, and a call that
  /// waits writes it before it looks for a free stream. So one of the two sees the other (L4).
  std::atomic<std::size_t> waiting{0};

  std::mutex mutex;  ///< Guards the members below, and the members of all places.
  std::list<std::shared_ptr<StreamWait::Place>> places;
  bool is_asked = false;  ///< `wanted` was called, and is not called again yet (L6).
  /// The last known limit. A connection without a known limit gets it, too: as one without a
  /// limit it would take all calls, and they would wait in its transport.
  std::uint32_t limit = kNoLimit;
  /// All lanes of the StreamLanes; those that are not in `order` are used again when no call is on
  /// them.
  std::vector<std::shared_ptr<const Lane>> lanes;
};

// One connection and its calls. The word holds all that changes: whether the lane takes calls, the
// limit, and the number of calls. So one atomic operation decides.
class StreamLanes::Lane final : public CallTracker {
 public:
  explicit Lane(std::shared_ptr<Hall> hall) : hall_(std::move(hall)) {}

  void ended(const CallEnd& /*end*/) const noexcept override { release(); }

  /// Opens the lane for a connection. Preconditions: the hall's mutex is held, and is_unused().
  void open(std::uint64_t number,
            ConnectionPtr connection,
            bool is_shared,
            std::uint32_t limit) const {
    connection_ = std::move(connection);
    is_shared_ = is_shared;
    number_ = number;
    word_.store(kOpen | std::uint64_t{limit} << kLimitShift, std::memory_order_seq_cst);
  }

  /// Precondition: the hall's mutex is held.
  ConnectionPtr close() const {
    word_.fetch_and(~kOpen, std::memory_order_seq_cst);
    return bury();
  }

  /// Gives up the connection of a closed lane that has no calls. Precondition: the mutex is held.
  ConnectionPtr bury() const { return is_empty() ? std::move(connection_) : nullptr; }

  bool is_open() const { return (word_.load(std::memory_order_seq_cst) & kOpen) != 0; }

  /// Closed, and without calls.
  bool is_empty() const {
    const std::uint64_t word = word_.load(std::memory_order_seq_cst);
    return (word & kOpen) == 0 && calls_in(word) == 0;
  }

  /// Empty, and without a connection: the last call may have ended, and not given up the connection
  /// yet (undo()). Precondition: the mutex is held.
  bool is_unused() const { return is_empty() && connection_ == nullptr; }

  /// Takes a stream, unless the lane is closed, full, or its connection is dead. A lane with a
  /// taken stream keeps its connection. `leaving`: the uses of the connection by calls that have
  /// given up their streams.
  bool reserve(std::int64_t leaving = 0) const noexcept {
    std::uint64_t word = word_.load(std::memory_order_seq_cst);
    do {
      if ((word & kOpen) == 0 || calls_in(word) >= limit_in(word)) return false;
    } while (!word_.compare_exchange_weak(word, word + 1, std::memory_order_seq_cst));
    const bool is_crowded =
        is_shared_ && connection_->uses() - leaving >= static_cast<std::int64_t>(limit_in(word));
    if (!is_crowded && connection_->takes_calls()) return true;
    undo();
    return false;
  }

  void give(Pick& pick) const { pick.take_stream(*connection_, *this); }

  StreamWait::Place::Stream held() const { return {Use(*this), Use(*connection_)}; }

  void release() const noexcept {
    undo();
    if (hall_->waiting.load(std::memory_order_seq_cst) != 0) hall_->serve(*this);
  }

  // The following functions need the hall's mutex.
  std::uint64_t number() const { return number_; }

  bool takes_calls() const { return connection_->takes_calls(); }

  std::uint64_t calls() const { return calls_in(word_.load(std::memory_order_seq_cst)); }

  std::int64_t uses() const { return connection_->uses(); }

 private:
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63U;
  static constexpr unsigned kLimitShift = 32;

  static std::uint64_t calls_in(std::uint64_t word) { return word & 0xffffffffU; }

  static std::uint64_t limit_in(std::uint64_t word) { return (word & ~kOpen) >> kLimitShift; }

  /// Frees a stream. The last call of a closed lane gives up the lane's connection.
  void undo() const noexcept {
    const std::uint64_t before = word_.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & kOpen) != 0 || calls_in(before) != 1) return;
    ConnectionPtr unused;  // Released after the unlock.
    const std::lock_guard lock(hall_->mutex);
    unused = bury();
  }

  const std::shared_ptr<Hall> hall_;
  mutable std::atomic<std::uint64_t> word_{0};
  // Written while the lane is empty, read by calls that have a stream.
  mutable ConnectionPtr connection_;
  mutable bool is_shared_ = false;
  mutable std::uint64_t number_ = 0;
};

// --- the hall ---------------------------------------------------------------------

// Takes a stream of the first lane that has one; null: there is none. `left`: a call has just given
// up a stream of this lane, and still uses its connection. Null: no call has.
const StreamLanes::Lane* StreamLanes::Hall::next_free(const Lane* left) const {
  for (const auto& place : order) {
    const Lane* const lane = place.load(std::memory_order_acquire);
    if (lane == nullptr) return nullptr;
    if (lane->reserve(lane == left ? 1 : 0)) return lane;
  }
  return nullptr;
}

// Gives free streams to the calls that wait. Precondition: the mutex is held. The caller wakes the
// calls in `granted` after the unlock.
void StreamLanes::Hall::grant(Places& granted, const Lane* left) {
  while (!places.empty()) {
    const Lane* const lane = next_free(left);
    if (lane == nullptr) break;
    const auto place = std::move(places.front());
    places.pop_front();
    place->is_waiting = false;
    place->stream = lane->held();
    granted.push_back(place);
  }
  waiting.store(places.size(), std::memory_order_seq_cst);
}

void StreamLanes::Hall::serve(const Lane& left) {
  Places granted;
  {
    const std::lock_guard lock(mutex);
    grant(granted, &left);
  }
  for (const auto& place : granted)
    place->wake();
}

// Precondition: the mutex is held.
void StreamLanes::Hall::end_waits(Places& over) {
  for (const auto& place : std::exchange(places, {})) {
    place->is_waiting = false;
    over.push_back(place);
  }
  waiting.store(0, std::memory_order_seq_cst);
  is_asked = false;
}

// --- calls ------------------------------------------------------------------------

StreamWait::StreamWait(std::shared_ptr<Place> place) : place_(std::move(place)) {}

StreamWait::~StreamWait() {
  std::optional<Place::Stream> unused;
  {
    const std::lock_guard lock(place_->hall->mutex);
    if (std::exchange(place_->is_waiting, false)) {
      place_->hall->places.erase(place_->at);
      place_->hall->waiting.store(place_->hall->places.size(), std::memory_order_seq_cst);
    }
    unused = std::exchange(place_->stream, std::nullopt);
  }
  if (unused) static_cast<const StreamLanes::Lane*>(unused->lane.get())->release();
}

bool StreamWait::is_over() const {
  const std::lock_guard lock(place_->hall->mutex);
  return !place_->is_waiting;
}

StreamWait::Answer StreamWait::claim(Pick& pick) {
  std::optional<Place::Stream> stream;
  {
    const std::lock_guard lock(place_->hall->mutex);
    if (place_->is_waiting) return Answer::kWaiting;
    stream = std::exchange(place_->stream, std::nullopt);
  }
  if (!stream) return Answer::kGone;
  static_cast<const StreamLanes::Lane*>(stream->lane.get())->give(pick);
  return pick.connection()->takes_calls() ? Answer::kTaken : Answer::kLost;
}

StreamLanes::Answer StreamLanes::take(Pick& pick) const {
  if (hall_->waiting.load(std::memory_order_seq_cst) == 0) {
    const Lane* const lane = hall_->next_free(nullptr);
    if (lane != nullptr) {
      lane->give(pick);
      return Answer::kTaken;
    }
  }
  const std::lock_guard lock(hall_->mutex);
  for (const auto& place : hall_->order) {
    const Lane* const lane = place.load(std::memory_order_relaxed);
    if (lane == nullptr) break;
    if (lane->takes_calls()) return Answer::kFull;
  }
  return Answer::kGone;
}

std::unique_ptr<StreamWait> StreamLanes::wait(std::function<void()> wake) const {
  const auto place = std::make_shared<StreamWait::Place>(hall_, std::move(wake));
  auto wait = std::make_unique<StreamWait>(place);
  Places granted;
  bool is_first_demand = false;
  {
    const std::lock_guard lock(hall_->mutex);
    if (hall_->order.front().load(std::memory_order_relaxed) == nullptr) {
      place->is_waiting = false;  // L5
      return wait;
    }
    place->at = hall_->places.insert(hall_->places.end(), place);
    hall_->waiting.store(hall_->places.size(), std::memory_order_seq_cst);
    hall_->grant(granted);
    is_first_demand = !hall_->places.empty() && !std::exchange(hall_->is_asked, true);
  }
  for (const auto& other : granted)
    if (other != place) other->wake();
  if (is_first_demand) hall_->wanted();
  return wait;
}

// --- the subchannel ---------------------------------------------------------------

StreamLanes::StreamLanes(std::shared_ptr<Retirement> retirement, std::function<void()> wanted)
    : retirement_(std::move(retirement)), hall_(std::make_shared<Hall>(std::move(wanted))) {}

StreamLanes::~StreamLanes() {
  close();
  // Lanes own the hall, so the hall must not own them any longer.
  std::vector<std::shared_ptr<const Lane>> lanes;
  const std::lock_guard lock(hall_->mutex);
  lanes.swap(hall_->lanes);
}

void StreamLanes::add(std::uint64_t number, ConnectionPtr connection, bool is_shared) {
  Places granted;
  {
    const std::lock_guard lock(hall_->mutex);
    const auto unused =
        std::ranges::find_if(hall_->lanes, [](const auto& lane) { return lane->is_unused(); });
    const Lane* lane = unused != hall_->lanes.end() ? unused->get() : nullptr;
    if (lane == nullptr)
      lane = hall_->lanes.emplace_back(make_tracked<Lane>(retirement_, hall_)).get();
    hall_->limit = std::min(connection->stream_limit().value_or(hall_->limit), kNoLimit);
    lane->open(number, std::move(connection), is_shared, hall_->limit);
    const auto end = std::ranges::find_if(hall_->order, [](const auto& place) {
      return place.load(std::memory_order_relaxed) == nullptr;
    });
    SIGNALBOX_INVARIANT(end < hall_->order.end() - 1, "an endpoint has at most kMost lanes");
    end->store(lane, std::memory_order_release);
    hall_->grant(granted);
  }
  for (const auto& place : granted)
    place->wake();
}

void StreamLanes::remove(std::uint64_t number) {
  Places over;
  ConnectionPtr unused;  // Released after the unlock.
  {
    const std::lock_guard lock(hall_->mutex);
    auto& order = hall_->order;
    const auto found = std::ranges::find_if(order, [number](const auto& place) {
      const Lane* const lane = place.load(std::memory_order_relaxed);
      return lane != nullptr && lane->number() == number;
    });
    if (found == order.end()) return;
    unused = found->load(std::memory_order_relaxed)->close();
    for (auto at = found; at->load(std::memory_order_relaxed) != nullptr; ++at)
      at->store((at + 1)->load(std::memory_order_relaxed), std::memory_order_release);
    if (order.front().load(std::memory_order_relaxed) == nullptr) hall_->end_waits(over);
  }
  for (const auto& place : over)
    place->wake();
}

bool StreamLanes::has_demand() {
  Places granted;
  bool has = false;
  {
    const std::lock_guard lock(hall_->mutex);
    hall_->grant(granted);
    has = hall_->is_asked = !hall_->places.empty();
  }
  for (const auto& place : granted)
    place->wake();
  return has;
}

void StreamLanes::close() {
  Places over;
  std::vector<ConnectionPtr> unused;  // Released after the unlock.
  {
    const std::lock_guard lock(hall_->mutex);
    for (auto& place : hall_->order) {
      const Lane* const lane = place.load(std::memory_order_relaxed);
      if (lane == nullptr) break;
      unused.push_back(lane->close());
      place.store(nullptr, std::memory_order_release);
    }
    hall_->end_waits(over);
  }
  for (const auto& place : over)
    place->wake();
}

std::int64_t StreamLanes::calls() const {
  const std::lock_guard lock(hall_->mutex);
  std::int64_t calls = 0;
  for (const auto& place : hall_->order) {
    const Lane* const lane = place.load(std::memory_order_relaxed);
    if (lane == nullptr) break;
    calls += lane->uses();
  }
  return calls;
}

std::string StreamLanes::text() const {
  const std::lock_guard lock(hall_->mutex);
  std::uint64_t calls = 0;
  std::size_t open = 0;
  for (const auto& lane : hall_->lanes) {
    if (!lane->is_open()) continue;
    ++open;
    calls += lane->calls();
  }
  return absl::StrCat("all ",
                      calls,
                      calls == 1 ? " stream of " : " streams of ",
                      open,
                      open == 1 ? " connection are in use" : " connections are in use");
}

}  // namespace signalbox::lb
