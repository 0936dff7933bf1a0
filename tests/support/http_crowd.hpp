// SPDX-License-Identifier: Apache-2.0
//
// http_crowd — thousands of clients that ask an HTTP server on 127.0.0.1 for a page at one time.
//
//   http_crowd(port, "/metrics") ─▶ 10,000 × HttpPeer ─▶ CrowdEnds: how the requests ended

#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include "tests/support/http_peer.hpp"

namespace signalbox::channel {

/// How the requests of a crowd ended. A connection closed without an answer is in no count.
struct CrowdEnds {
  std::size_t clients = 0;
  std::atomic<std::size_t> served{0};
  std::atomic<std::size_t> busy{0};  ///< 503.
  std::atomic<std::size_t> other{0};
};

/// Raises the soft limit of open files to the hard limit. The destructor restores the soft limit.
class RaisedFileLimit {
 public:
  RaisedFileLimit() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit raised = before_;
    raised.rlim_cur = raised.rlim_max;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &raised) == 0);
  }

  ~RaisedFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  RaisedFileLimit(const RaisedFileLimit&) = delete;
  RaisedFileLimit& operator=(const RaisedFileLimit&) = delete;

  std::size_t files() const { return static_cast<std::size_t>(before_.rlim_max); }

 private:
  rlimit before_{};
};

/// Runs the crowd, and counts the ends of its requests in `ends`. All connections are open before
/// the first answer is read. There are ten thousand clients, or fewer if this process may not have
/// that many descriptors: each client takes one, and 1,500 are left for the server.
inline void http_crowd(int port, const std::string& page, CrowdEnds& ends) {
  const RaisedFileLimit limit;
  ends.clients = std::min<std::size_t>(10'000, limit.files() - 1'500);
  constexpr std::size_t kThreads = 16;
  std::barrier together(static_cast<std::ptrdiff_t>(kThreads));
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::vector<std::unique_ptr<HttpPeer>> peers;
      for (std::size_t i = 0; i < ends.clients / kThreads; ++i) {
        peers.push_back(std::make_unique<HttpPeer>(port));
        peers.back()->send("GET " + page + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      }
      together.arrive_and_wait();
      for (auto& peer : peers) {
        const std::string answer = peer->receive();
        if (answer.starts_with("HTTP/1.1 200")) {
          ++ends.served;
        } else if (answer.starts_with("HTTP/1.1 503")) {
          ++ends.busy;
        } else if (!answer.empty()) {
          ++ends.other;
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace signalbox::channel
