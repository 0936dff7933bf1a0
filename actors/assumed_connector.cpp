// SPDX-License-Identifier: Apache-2.0
#include "actors/assumed_connector.hpp"

#include <mutex>
#include <utility>

namespace signalbox::actors {
namespace {

// An attempt's callback. The waker's thread and the Attempt share it, so that ~Attempt can wait for
// a running callback (C2 of connector.hpp).
struct Wish {
  std::mutex mutex;
  // The attempt's callback; empty: the attempt was destroyed.
  std::function<void(ConnectionPtr)> connected;
};

class AssumedAttempt final : public Connector::Attempt {
 public:
  explicit AssumedAttempt(std::shared_ptr<Wish> wish) : wish_(std::move(wish)) {}

  ~AssumedAttempt() override {
    const std::lock_guard lock(wish_->mutex);
    wish_->connected = nullptr;
  }

 private:
  const std::shared_ptr<Wish> wish_;
};

}  // namespace

std::unique_ptr<Connector::Attempt> AssumedConnector::connect(const Peer& peer,
                                                              Duration /*timeout*/,
                                                              Events events) {
  auto wish = std::make_shared<Wish>();
  wish->connected = std::move(events.connected);
  waker_.post([wish, address = peer.address, retire = retire_] {
    const std::lock_guard lock(wish->mutex);
    if (wish->connected == nullptr) return;
    wish->connected(ConnectionPtr(new Connection(address), [retire](const Connection* unused) {
      retire(std::unique_ptr<const Tracked>(unused));
    }));
  });
  return std::make_unique<AssumedAttempt>(std::move(wish));
}

}  // namespace signalbox::actors
