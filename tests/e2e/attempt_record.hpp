// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the tests of connectors: a record of an attempt's events, an owner of retired
// connections (Graveyard), and a port that accepts connections but sends nothing (MuteSocket).
//
//   MuteSocket ◀─ Connector ─▶ Record, Graveyard

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/io/connector.hpp"
#include "actors/io/grpc_connector.hpp"
#include "messages/invariant.hpp"

namespace signalbox::test {

/// All events of one attempt, in order.
class Record {
 public:
  actors::Connector::Events events() {
    return {[this](ConnectionPtr connection) {
              note("connected", absl::OkStatus(), std::move(connection));
            },
            [this](absl::Status status) { note("failed", std::move(status), nullptr); },
            [this](absl::Status status) { note("closed", std::move(status), nullptr); }};
  }

  bool wait_for(std::size_t count, std::chrono::seconds at_most = std::chrono::seconds(10)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, at_most, [&] { return words_.size() >= count; });
  }

  std::vector<std::string> words() {
    const std::lock_guard lock(mutex_);
    return words_;
  }

  ConnectionPtr connection() {
    const std::lock_guard lock(mutex_);
    return connection_;
  }

  void forget_connection() {
    const std::lock_guard lock(mutex_);
    connection_ = nullptr;
  }

  absl::Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  void note(std::string word, absl::Status status, ConnectionPtr connection) {
    const std::lock_guard lock(mutex_);
    words_.push_back(std::move(word));
    status_ = std::move(status);
    if (connection != nullptr) connection_ = std::move(connection);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> words_;
  absl::Status status_;
  ConnectionPtr connection_;
};

/// Keeps the connections that a connector retires (GrpcConnectorOptions::retire) until clear().
class Graveyard {
 public:
  std::function<void(std::unique_ptr<const Tracked>)> retire() {
    return [this](std::unique_ptr<const Tracked> tracked) {
      const std::lock_guard lock(mutex_);
      retired_.push_back(std::move(tracked));
      changed_.notify_all();
    };
  }

  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(
        lock, std::chrono::seconds(10), [&] { return retired_.size() >= count; });
  }

  const Tracked& front() { return *retired_.front(); }

  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return retired_.size();
  }

  void clear() {
    std::vector<std::unique_ptr<const Tracked>> dead;
    const std::lock_guard lock(mutex_);
    dead.swap(retired_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<const Tracked>> retired_;
};

/// The silence of tests in which each good server must speak in time, however slow the machine is.
inline constexpr std::chrono::seconds kPatientSilence(60);

/// Options without TLS; connections that the connector retires go to the graveyard.
inline actors::GrpcConnectorOptions connector_options(Graveyard& graveyard) {
  actors::GrpcConnectorOptions options;
  options.credentials = grpc::InsecureChannelCredentials();
  options.sockets = actors::environment_allows_sockets();
  options.retire = graveyard.retire();
  return options;
}

/// A port that accepts TCP connections and never sends a byte. Until listen(), and after close(),
/// it refuses connections.
class MuteSocket {
 public:
  MuteSocket() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    SIGNALBOX_INVARIANT(socket_ >= 0, "the system makes sockets");
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    socklen_t length = sizeof(name);
    REQUIRE(::bind(socket_, generic, length) == 0);
    REQUIRE(::getsockname(socket_, generic, &length) == 0);
    port_ = ntohs(name.sin_port);
  }

  ~MuteSocket() { ::close(socket_); }

  MuteSocket(const MuteSocket&) = delete;
  MuteSocket& operator=(const MuteSocket&) = delete;

  /// From now on the kernel accepts connections into the backlog.
  void listen() { REQUIRE(::listen(socket_, 16) == 0); }

  Address address() const { return Address("127.0.0.1:" + std::to_string(port_)); }

  /// For poll(): readable when a connection can be taken.
  int descriptor() const { return socket_; }

  /// Accepts the next connection, and closes it.
  void close_one() {
    const int taken = ::accept(socket_, nullptr, nullptr);
    REQUIRE(taken >= 0);
    ::close(taken);
  }

  /// Accepts the next connection.
  int take_one() { return ::accept(socket_, nullptr, nullptr); }

  /// From now on connections are refused.
  void close() { ::close(std::exchange(socket_, -1)); }

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace signalbox::test
