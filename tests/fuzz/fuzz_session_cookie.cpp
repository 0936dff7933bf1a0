// SPDX-License-Identifier: Apache-2.0
//
// The bytes are the cookie headers of a call, one on each line. The name of the session's cookie is
// "s".
//
//   lb::find_cookie finds the same cookie as Jar below, which has no limits, unless the headers
//   exceed a limit. An address that is read from the cookie can be written and read again. No
//   input passes as a sealed cookie, since only the holder of the key can seal one.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "lb/session/sealed_cookie.hpp"
#include "lb/session/session_cookie.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

constexpr char kName[] = "s";

class Lines final : public HeaderSource {
 public:
  explicit Lines(absl::string_view text) : lines_(absl::StrSplit(text, '\n')) {}

  const std::vector<absl::string_view>& all() const { return lines_; }

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view)> visit) const override {
    SIGNALBOX_FUZZ_EXPECT(name == "cookie", "it asks for cookies", std::string(name));
    for (const absl::string_view line : lines_)
      visit(line);
  }

 private:
  std::vector<absl::string_view> lines_;
};

// Reads the headers without limits: counts all bytes and cookies, and keeps the session's cookie.
struct Jar {
  explicit Jar(const Lines& lines) {
    for (const absl::string_view line : lines.all()) {
      bytes += line.size() + 1;
      for (const absl::string_view cookie : absl::StrSplit(line, ';')) {
        ++cookies;
        const std::pair<absl::string_view, absl::string_view> parts =
            absl::StrSplit(cookie, absl::MaxSplits('=', 1));
        if (!value && absl::StripAsciiWhitespace(parts.first) == kName)
          value = std::string(absl::StripAsciiWhitespace(parts.second));
      }
    }
  }

  std::size_t bytes = 0;
  std::size_t cookies = 0;
  std::optional<std::string> value;
};

std::string without_quotes(const std::string& value) {
  const bool is_quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return is_quoted ? value.substr(1, value.size() - 2) : value;
}

void check_finding(const Jar& jar, const lb::FoundCookie& found) {
  SIGNALBOX_FUZZ_EXPECT(!found.value || !found.is_cut, "found, or not looked for", "both");
  if (found.value) {
    SIGNALBOX_FUZZ_EXPECT(jar.value && without_quotes(*jar.value) == *found.value,
                          "A55: the first cookie of the name",
                          std::string(*found.value));
  } else if (!found.is_cut) {
    SIGNALBOX_FUZZ_EXPECT(!jar.value, "A55: a cookie that is there is found", *jar.value);
  }
  const bool is_much = jar.bytes > lb::kMostCookieBytes || jar.cookies > lb::kMostCookies;
  SIGNALBOX_FUZZ_EXPECT(!found.is_cut || is_much,
                        "all of a little is looked at",
                        absl::StrCat(jar.bytes, " bytes, ", jar.cookies, " cookies"));
}

void check_reading(absl::string_view value) {
  std::string text;
  const auto flaw = lb::decode_cookie(value, text);
  if (flaw) return;
  SIGNALBOX_FUZZ_EXPECT(text.size() < 4096, "less than 4 KiB", absl::StrCat(text.size()));
  lb::CookieHost host;
  if (lb::parse_cookie_host(text, host)) {
    SIGNALBOX_FUZZ_EXPECT(host == lb::CookieHost{}, "a flaw, or a host", std::string(host.hosts));
    return;
  }
  for (const absl::string_view one : absl::StrSplit(host.hosts, ',')) {
    SIGNALBOX_FUZZ_EXPECT(lb::is_ip_and_port(one), "each is an address", std::string(one));
    SIGNALBOX_FUZZ_EXPECT(
        one.size() <= sizeof("[1111:2222:3333:4444:5555:6666:255.255.255.255]:65535"),
        "an address is short",
        std::string(one));
  }
  std::string written;
  if (host.form == lb::CookieForm::kEnvoy) {
    SIGNALBOX_FUZZ_EXPECT(lb::is_ip_and_port(host.hosts), "Envoy names one address", text);
    lb::write_envoy_cookie(host.hosts, host.cluster, 0, written);
  } else {
    lb::write_cookie_host(host.hosts, host.cluster, written);
    const auto message = lb::read_envoy_cookie(text);
    SIGNALBOX_FUZZ_EXPECT(
        !message || message->address.empty(), "Envoy finds no other host in it", text);
  }
  std::string again;
  const bool is_readable = !lb::decode_cookie(absl::Base64Escape(written), again);
  SIGNALBOX_FUZZ_EXPECT(is_readable || written.size() >= 4096, "it can be written", written);
  lb::CookieHost same;
  const auto flaw_of_same = lb::parse_cookie_host(written, same);
  SIGNALBOX_FUZZ_EXPECT(!flaw_of_same && same == host, "and is the same then", written);
}

void check_sealing(absl::string_view value) {
  static const lb::CookieSeal seal({lb::SealKey{}});
  std::string text;
  SIGNALBOX_FUZZ_EXPECT(seal.open(value, kName, text) == lb::CookieSeal::Opened::kNo,
                        "nobody else seals",
                        std::string(value));
  const absl::string_view some = value.substr(0, 64);
  std::string sealed;
  SIGNALBOX_FUZZ_EXPECT(seal.seal(some, value, sealed) &&
                            seal.open(sealed, value, text) == lb::CookieSeal::Opened::kYes &&
                            text == some,
                        "what we sealed we open",
                        std::string(some));
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace signalbox;
  const fuzz::Lines lines(fuzz::text_of(data, size));
  const lb::FoundCookie found = lb::find_cookie(lines, fuzz::kName);
  fuzz::check_finding(fuzz::Jar(lines), found);
  if (!found.value) return 0;
  fuzz::check_reading(*found.value);
  fuzz::check_sealing(*found.value);
  return 0;
}
