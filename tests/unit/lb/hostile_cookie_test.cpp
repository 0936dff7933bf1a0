// SPDX-License-Identifier: Apache-2.0
//
// Cookies that signalbox's clients never send: forged, foreign, cut, oversized. Whatever a cookie
// says, a call goes to an endpoint of a cluster that its route names.

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/session_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;

constexpr int kCookies = 100'000;

// A cookie, and how the policy must read it; nullopt: any reading is fine.
struct Forgery {
  std::string cookie;
  std::optional<AffinityResult> result;
};

class Forger {
 public:
  explicit Forger(std::uint64_t seed) : dice_(seed) {
    for (int i = 0; i < 10'000; ++i)
      absl::StrAppend(&crumbs_, "c", i, "=", i, "; ");
    crumbs_ += cookie("10.0.0.2:80;a");
    megabyte_ = cookie("10.0.0.2:80;a" + std::string(3 << 18, 'x'));
  }

  Forgery next() {
    switch (below(1'000) == 0 ? 100 : below(20)) {
      case 0:
        return unknown("127.0.0.", ";a");
      case 1:
        return {cookie("169.254.169.254:80;b"), AffinityResult::kUnknownHost};
      case 2:
        return unknown("192.168.7.", ";b");
      case 3:
        return {cookie(absl::StrCat("[fe80::", below(9'999), "]:80,[::]:1;a")),
                AffinityResult::kUnknownHost};
      case 4:  // An endpoint of cluster c, in a cookie that names cluster a.
        return {cookie("10.0.2.1:80;a"), AffinityResult::kUnknownHost};
      // An endpoint of cluster c, in a cookie that names cluster c. The call's route does not lead
      // to cluster c.
      case 5:
        return {cookie("10.0.2.1:80;c"), AffinityResult::kOtherCluster};
      case 6:
        return {"s=" + some_text(below(40)) + "!", AffinityResult::kBadCookie};
      case 7: {
        std::string good = cookie("10.0.0.2:80,10.0.0.3:80;a");
        good.resize(2 + below(good.size() - 2));
        return {good, std::nullopt};
      }
      case 8:
        return {"s=" + std::string(kLongestCookieValue + 1 + below(10'000), 'A'),
                AffinityResult::kBadCookie};
      case 9:  // Begins like a sealed cookie, but no key of ours sealed it.
        return {cookie("\x01" + some_text(60)), AffinityResult::kBadCookie};
      case 10:
        return {cookie(absl::StrCat("10.0.0.", below(9), ":80,", some_text(below(9)), ";a")),
                std::nullopt};
      case 11:  // Text that would be a header of its own if it were copied into the response.
        return {cookie("10.9.9.9:80;a\r\nset-cookie: s=1\r\n"), AffinityResult::kOtherCluster};
      case 12:
        return {cookie("orders.internal:80;a"), AffinityResult::kBadCookie};
      case 13:
        return {some_text(below(200)), std::nullopt};
      case 14: {  // Envoy's cookie, cut before the end of its address, even before its first byte.
        const std::string whole = envoys("10.0.0.2:80", 1'800'000'000);
        return {cookie(whole.substr(0, below(13))), AffinityResult::kBadCookie};
      }
      case 15:  // Envoy's cookie with an unknown field of any content.
        return {cookie(envoys("10.0.0.2:80", 7) + "\x22\x03" + some_text(3)),
                AffinityResult::kBadCookie};
      case 16:
        return {cookie(envoys(absl::StrCat("10.0.0.2:", below(2) == 0 ? "http" : "70000"), 7)),
                AffinityResult::kBadCookie};
      case 17:  // gRPC reads one host in this text, and Envoy another.
        return {cookie("10.0.0.2:80;<" + envoys("10.0.0.3:80", 7)), AffinityResult::kBadCookie};
      case 18:
        return {cookie(envoys(absl::StrCat("172.16.0.", 1 + below(250), ":80"), below(1'000'000))),
                AffinityResult::kUnknownHost};
      case 19: {  // More addresses than a cookie may have: each would be looked up in each leaf.
        std::string many = "10.0.0.2:80";
        for (std::size_t more = kMostCookieHosts + below(200); more > 0; --more)
          absl::StrAppend(&many, ",10.9.9.", 1 + below(250), ":80");
        return {cookie(many + ";a"), AffinityResult::kBadCookie};
      }
      default:
        return {below(2) == 0 ? crumbs_ : megabyte_, AffinityResult::kBadCookie};
    }
  }

 private:
  static std::string cookie(const std::string& text) { return "s=" + base64(text); }

  static std::string envoys(const std::string& address, std::uint64_t expires) {
    std::string text;
    lb::write_envoy_cookie(address, "", expires, text);
    return text;
  }

  Forgery unknown(const char* net, const char* cluster) {
    return {cookie(absl::StrCat(net, 1 + below(254), ":", below(65'536), cluster)),
            AffinityResult::kUnknownHost};
  }

  std::string some_text(std::size_t size) {
    std::string text;
    while (text.size() < size)
      text += static_cast<char>(below(256));
    return text;
  }

  std::size_t below(std::size_t bound) { return dice_() % bound; }

  std::mt19937_64 dice_;
  std::string crumbs_;
  std::string megabyte_;
};

struct Besieged : SessionFixture {
  Besieged() {
    for (const char* cluster : {"a", "b", "c"}) {
      const int net = cluster[0] - 'a';
      for (int host = 1; host <= 3; ++host)
        add(cluster, absl::StrCat("10.0.", net, ".", host, ":80"));
    }
    configure(
        config_of({route(exact("/s/C"), to("c")), route(prefix(""), to({{"a", 1}, {"b", 1}}))}),
        session_by("s"));
  }

  bool is_of(const Pick& pick, const char* cluster) const {
    const auto& all = backends.at(cluster);
    return pick.cluster() == &ref(cluster) && std::ranges::any_of(all, [&](const Backend& one) {
             return one.connection.get() == pick.connection();
           });
  }

  std::array<std::int64_t, kAffinityResults> counts() const {
    std::array<std::int64_t, kAffinityResults> sums{};
    for (std::size_t i = 0; i < kAffinityResults; ++i) {
      const auto result = static_cast<AffinityResult>(i);
      sums[i] = counted("a", result) + counted("b", result);
    }
    return sums;
  }
};

TEST_CASE_METHOD(Besieged,
                 "session: 100,000 hostile cookies lead nowhere but where the route leads",
                 "[lb][session][limits][B9][A55-17][A55-18][A55-19]") {
  Forger forger(20'260'603);
  int outside = 0;
  int unanswered = 0;
  int unexpected = 0;
  int unprintable = 0;
  std::string first_unexpected;
  for (int i = 0; i < kCookies; ++i) {
    const Forgery forgery = forger.next();
    const auto before = counts();
    const Pick pick = call(forgery.cookie, "/s/M", static_cast<std::uint64_t>(i));
    auto after = counts();
    if (pick.outcome() != PickOutcome::kComplete) ++unanswered;
    if (!is_of(pick, "a") && !is_of(pick, "b")) ++outside;
    if (!std::ranges::all_of(pick.set_cookie(), absl::ascii_isprint)) ++unprintable;
    if (forgery.result) {
      --after[static_cast<std::size_t>(*forgery.result)];
      if (after != before && ++unexpected == 1) first_unexpected = forgery.cookie.substr(0, 200);
    }
  }
  CHECK(outside == 0);
  CHECK(unanswered == 0);
  CHECK(unprintable == 0);
  INFO(first_unexpected);
  CHECK(unexpected == 0);
  // Each cookie is counted, by its result.
  std::int64_t all = 0;
  for (const std::int64_t sum : counts())
    all += sum;
  CHECK(all == kCookies);
  CHECK(ref("c").stats()->picks(PickOutcome::kComplete) == 0);
  CHECK(warnings.size() == 1);
}

TEST_CASE_METHOD(Besieged,
                 "session: with a seal, no cookie that we did not make leads anywhere",
                 "[lb][session][sealed][B9]") {
  SealKey key{};
  SealKey other{};
  other.fill(7);
  const CookieSeal theirs({other});
  use({.seal = std::make_shared<const CookieSeal>(SealKeys{key})});
  Forger forger(20'260'604);
  int followed = 0;
  for (int i = 0; i < kCookies / 10; ++i) {
    std::string sealed = "s=";
    const std::string purpose = std::string("s") + '\0' + "xds:///orders";
    REQUIRE(theirs.seal("10.0.0.2:80;a", purpose, sealed));
    for (const std::string& cookie : {sealed, forger.next().cookie}) {
      const Pick pick = call(cookie, "/s/M", static_cast<std::uint64_t>(i));
      const bool is_first = address_of(pick) == "10.0.0.1:80" || address_of(pick) == "10.0.1.1:80";
      if (!is_first) ++followed;
    }
  }
  CHECK(followed == 0);
  CHECK(std::ranges::all_of(wishes, [](const std::string& hosts) { return hosts.empty(); }));
}

}  // namespace
}  // namespace signalbox::lb
