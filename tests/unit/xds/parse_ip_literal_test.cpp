// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <random>

#include <arpa/inet.h>
#include <catch2/catch.hpp>

#include "xds/parse/ip_literal.hpp"

namespace signalbox::xds {
namespace {

// The C library's spelling of the address; nullopt: the C library finds no address in the text.
std::optional<std::string> libc_ip(const std::string& text) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  std::array<unsigned char, sizeof(in6_addr)> address{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, text.c_str(), address.data()) != 1) continue;
    return inet_ntop(family, address.data(), out.data(), out.size());
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("canonical_ip: every address has one spelling", "[xds][parse][A27]") {
  struct Row {
    const char* text;
    const char* canonical;
  };

  const auto row =
      GENERATE(Row{"0.0.0.0", "0.0.0.0"},
               Row{"255.255.255.255", "255.255.255.255"},
               Row{"::", "::"},
               Row{"0:0:0:0:0:0:0:0", "::"},
               Row{"::1", "::1"},
               Row{"1::", "1::"},
               Row{"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
               Row{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
               Row{"2001:db8::0:1:1:1:1", "2001:db8::1:1:1:1"},
               Row{"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
               Row{"0001:02:003:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
               Row{"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
               Row{"::ffff:102:304", "::ffff:1.2.3.4"},
               Row{"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
               Row{"::1:ffff:1.2.3.4", "::1:ffff:102:304"},
               Row{"0000:0000:0000:0000:0000:ffff:255.255.255.255", "::ffff:255.255.255.255"});
  CHECK(canonical_ip(row.text) == std::string(row.canonical));
}

TEST_CASE("canonical_ip: what is no address is none", "[xds][parse][A27]") {
  const auto text = GENERATE(as<absl::string_view>{},
                             "",
                             " ",
                             "localhost",
                             "1.2.3",
                             "1.2.3.4.5",
                             "1.2.3.256",
                             "01.2.3.4",
                             "1.2.3.4 ",
                             "1..2.3",
                             "1.2.3.",
                             "+1.2.3.4",
                             ":",
                             ":::",
                             "1:2:3:4:5:6:7",
                             "1:2:3:4:5:6:7:8:9",
                             "1::2::3",
                             "1:2:3:4::5:6:7:8",
                             ":1:2:3:4:5:6:7",
                             "1:2:3:4:5:6:7:",
                             "12345::",
                             "g::",
                             "[::1]",
                             "::1%eth0",
                             "::1.2.3",
                             "1.2.3.4::",
                             "1.2.3.4:1::",
                             "1:2:3:4:5:6:7:1.2.3.4",
                             "::-1");
  CHECK(canonical_ip(text) == std::nullopt);
}

TEST_CASE("canonical_ip: agrees with the C library", "[xds][parse][A27]") {
  // Pieces that make many valid and nearly valid texts. RFC 5952 leaves open how to write the
  // deprecated addresses "::1.2.3.4", and the C library writes them with dots. So the test compares
  // the spellings after each side has read the other's.
  constexpr std::array kPieces = {"::",
                                  ":",
                                  "0",
                                  "0",
                                  "1",
                                  "a",
                                  "F0f",
                                  "ffff",
                                  "10",
                                  "255",
                                  "1.2.3.4",
                                  ".",
                                  ":0:",
                                  ":1:",
                                  "12345",
                                  "0:0:0"};
  std::mt19937 dice(20211102);
  int valid = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const auto length = 1 + dice() % 10;
    for (unsigned i = 0; i < length; ++i)
      text += kPieces[dice() % kPieces.size()];
    const auto ours = canonical_ip(text);
    const auto theirs = libc_ip(text);
    INFO(text);
    REQUIRE(ours.has_value() == theirs.has_value());
    if (!ours.has_value()) continue;
    ++valid;
    REQUIRE(libc_ip(*ours) == theirs);
    REQUIRE(canonical_ip(*theirs) == ours);
  }
  CHECK(valid > 300);
}

}  // namespace signalbox::xds
