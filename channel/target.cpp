// SPDX-License-Identifier: Apache-2.0
#include "channel/target.hpp"

#include <limits>
#include <utility>

namespace signalbox::channel {
namespace {

// Passes publications to the target, without owning it. The target's actors own this
// PublicationListener, and the target's destructor ends these actors. So an owning pointer would
// keep the target and its actors until the runtime's end, even when no channel and no router uses
// the target.
class ToTarget final : public actors::PublicationListener {
 public:
  explicit ToTarget(std::weak_ptr<Target> target) : target_(std::move(target)) {}

  void published(std::uint64_t /*sequence*/, ConnectivityState state) override {
    if (const auto target = target_.lock()) target->published(state);
  }

 private:
  std::weak_ptr<Target> target_;
};

}  // namespace

Target::Target(lb::CallerNames names, lb::SessionsPtr sessions)
    : names_(std::move(names)),
      sessions_(std::move(sessions)),
      cell_(std::make_shared<lb::SnapshotCell>()),
      waiting_(std::make_shared<WaitList>()) {}

Target::~Target() {
  if (host_ == nullptr) return;
  host_->with([this](actors::Host& host) { host.close(port_); });
}

void Target::open(std::shared_ptr<HostLink> host, actors::ChannelPort port) {
  port.cell = cell_;
  port.listener = std::make_shared<ToTarget>(weak_from_this());
  port_ = std::make_shared<const actors::ChannelPort>(std::move(port));
  host_ = std::move(host);
  host_->with([this](actors::Host& to) { to.open(port_); });
}

void Target::close(const absl::Status& why, actors::Reclaimer& reclaimer) {
  auto last = std::make_unique<lb::Snapshot>();
  last->failure = why;
  last->sequence = std::numeric_limits<std::uint64_t>::max();
  reclaimer.retire(cell_->exchange(std::move(last)), [] {});
  if (port_ != nullptr) port_->status->drop_config();
  state_.store(ConnectivityState::kTransientFailure, std::memory_order_release);
  waiting_->close();
  tell_watchers();
}

// Called on a thread of the actors' scheduler, which must not block. So the host's waker thread
// wakes the waiting calls and tells the watchers.
void Target::published(ConnectivityState state) {
  const bool changed = state_.exchange(state, std::memory_order_acq_rel) != state;
  host_->with([this, changed](actors::Host& host) {
    host.waker().post([self = shared_from_this(), changed] {
      self->waiting_->publish();
      if (changed) self->tell_watchers();
    });
  });
}

ConnectivityState Target::state(bool try_to_connect) {
  if (try_to_connect && host_ != nullptr) {
    host_->with([this](actors::Host& host) { host.exit_idle(port_); });
  }
  return state_.load(std::memory_order_acquire);
}

std::string Target::awaited() const {
  return port_ == nullptr ? ConnectivitySource::awaited() : port_->awaited->get();
}

std::vector<AppliedConfig> Target::applied() const {
  return port_ == nullptr ? std::vector<AppliedConfig>() : port_->applied->newest_last();
}

// A target may outlive its channels. Nothing removes the watcher of a destroyed channel until the
// next watch(), which does so here.
void Target::watch(std::weak_ptr<const void> owner, std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [](const Watcher& watcher) { return watcher.owner.expired(); });
  watchers_.push_back({std::move(owner), std::move(changed)});
}

void Target::tell_watchers() {
  std::vector<Watcher> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers = watchers_;
  }
  for (const Watcher& watcher : watchers)
    watcher.changed();
}

}  // namespace signalbox::channel
