// SPDX-License-Identifier: Apache-2.0
#include "tools/load/peer.hpp"

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("peer: its address, in every form that gRPC has", "[tools]") {
  struct Row {
    const char* peer;
    const char* address;
  };

  const auto row = GENERATE(values<Row>({
      {"ipv4:127.0.0.1:40001", "127.0.0.1:40001"},
      {"ipv4:///127.0.0.1:40001", "127.0.0.1:40001"},
      {"ipv6:%5B::1%5D:40001", "[::1]:40001"},
      {"ipv6:///[::1]:40001", "[::1]:40001"},
      {"ipv6:%5Bfe80::1%25eth0%5D:1", "[fe80::1%eth0]:1"},
      {"unix:/run/a.sock", "unix:/run/a.sock"},
      {"xds:///orders", ""},
      {"", ""},
  }));
  CHECK(address_of_peer(row.peer) == row.address);
}

}  // namespace signalbox::tools
