// SPDX-License-Identifier: Apache-2.0
//
// A TCP proxy in front of a control plane that cuts connections in the middle of what it says.
//
//   Runtime ──▶ [CuttingProxy] ──▶ PeerPlane
//           ◀── n bytes, then the end
//
// A cut is made within a connection's bytes from the server, wherever they are in a frame; both
// sides see the connection's end. It lives in threads of its own; its functions may be called from
// any.

#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace signalbox::test {

class CuttingProxy {
 public:
  enum class End { kClosed, kReset };

  /// `ip:port` of the server, which need not be there yet.
  CuttingProxy(const std::string& server, End end);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }

  /// The connection that lives, or is the next to be made, is cut when so many bytes more have come
  /// from the server. Several are done one after the other, each on a connection of its own.
  void cut_after(std::size_t bytes);
  /// Of those that were wanted.
  std::size_t cuts() const;

 private:
  void accept_all();
  void serve(int client);
  bool pass(int from, int to, bool from_server);
  std::size_t allowance(std::size_t wanted);
  bool was_last_byte();

  const std::string server_;
  const End end_;
  std::string address_;
  int listener_ = -1;
  std::array<int, 2> stop_{-1, -1};  // A pipe: its end stops the threads.
  mutable std::mutex mutex_;
  std::deque<std::size_t> left_;  // Bytes until each cut; the first is counted down.
  std::size_t cuts_ = 0;
  std::vector<std::thread> connections_;
  std::thread acceptor_;
};

}  // namespace signalbox::test
