// SPDX-License-Identifier: Apache-2.0
//
// A TCP proxy in front of a control plane. It cuts connections in the middle of responses.
//
//   Runtime ──▶ [CuttingProxy] ──▶ PeerPlane
//           ◀── n bytes, then the end
//
// A cut comes after a given number of bytes from the server, at any place in a frame. Both sides
// see the end of the connection. The proxy runs in threads of its own. Any thread may call its
// functions.

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

  /// `server`: the control plane's `ip:port`. The control plane may start later.
  CuttingProxy(const std::string& server, End end);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }

  /// Cuts the current or the next connection after this many more bytes from the server. Several
  /// cuts are made in order, each on a connection of its own.
  void cut_after(std::size_t bytes);
  /// The number of cuts made so far.
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
