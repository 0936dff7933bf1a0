// SPDX-License-Identifier: Apache-2.0
#include "xds/client/ads_session.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>

#include "messages/overloaded.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_at_once.hpp"
#include "tests/support/decode_response.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

constexpr auto kLds = ResourceType::kListener;
constexpr auto kRds = ResourceType::kRouteConfig;
constexpr auto kCds = ResourceType::kCluster;
constexpr auto kEds = ResourceType::kEndpoints;

// Responses of the tests are text. "LDS v1 n1" is a good response, and "LDS+a v1 n1" also brings
// the resource `a`. "LDS v1 n1 reason" is NACKed for this reason. "other" is of an unknown type,
// "large" exceeds the limit, and any other text is no response.
absl::StatusOr<DecodedResponse> decode(absl::string_view bytes) {
  const std::vector<std::string> words = absl::StrSplit(bytes, absl::MaxSplits(' ', 3));
  for (const ResourceType type : {kLds, kRds, kCds, kEds}) {
    const std::vector<std::string> what = absl::StrSplit(words[0], '+');
    if (words.size() < 3 || what[0] != to_string(type)) continue;
    DecodedResponse response;
    if (what.size() > 1) response.received.resources.push_back({.name = what[1]});
    response.received.type = type;
    response.received.version = words[1];
    response.nonce = words[2];
    if (words.size() > 3) response.nack_detail = words[3];
    return response;
  }
  if (bytes == "other") return absl::UnimplementedError("no type of ours");
  if (bytes == "large") return absl::ResourceExhaustedError("beyond the limit");
  return absl::InvalidArgumentError("no response");
}

std::string serialised_node() {
  envoy::config::core::v3::Node node;
  node.set_id("node-1");
  return node.SerializeAsString();
}

// "LDS v1/n1 [a b]", then " node=node-1" and " NACK 3: reason" if the request has them.
std::string describe_request(const std::string& bytes) {
  envoy::service::discovery::v3::DiscoveryRequest request;
  REQUIRE(request.ParseFromString(bytes));
  const auto type = resource_type_of(request.type_url());
  REQUIRE(type.has_value());
  std::string text = absl::StrCat(to_string(*type),
                                  " ",
                                  request.version_info(),
                                  "/",
                                  request.response_nonce(),
                                  " [",
                                  absl::StrJoin(request.resource_names(), " "),
                                  "]");
  if (request.has_node()) absl::StrAppend(&text, " node=", request.node().id());
  if (request.has_error_detail()) {
    absl::StrAppend(
        &text, " NACK ", request.error_detail().code(), ": ", request.error_detail().message());
  }
  return text;
}

std::string describe(const AdsSessionEffect& effect) {
  return std::visit(
      Overloaded{
          [](const OpenStream& open) { return absl::StrCat("open ", open.stream); },
          [](const CloseStream& close) { return absl::StrCat("close ", close.stream); },
          [](const SendBytes& send) {
            return absl::StrCat("send ", send.stream, ": ", describe_request(send.bytes));
          },
          [](const ReadNext& read) { return absl::StrCat("read ", read.stream); },
          [](const ResourcesReceived& received) {
            return absl::StrCat("received ", to_string(received.type), " ", received.version);
          },
          [](const ResponseRefused& refused) {
            return absl::StrCat("refused: ", to_string(refused.reason));
          },
          [](const StreamEnded&) { return std::string("ended"); },
          [](const SubscriptionSent& sent) {
            return absl::StrCat(
                "asked ", to_string(sent.type), " [", absl::StrJoin(sent.names, " "), "]");
          },
          [](const ServerStatusChanged& status) { return status.status.ToString(); },
          [](const StartTimer& start) { return absl::StrCat("timer ", start.timer.name); },
          [](const CancelTimer& cancel) { return absl::StrCat("cancel ", cancel.timer.name); },
      },
      effect);
}

class Session {
 public:
  explicit Session(std::uint64_t seed = 1, ResponseDecoder decoder = decode_at_once(decode))
      : Session(AdsSessionOptions{"cp:1", serialised_node(), seed, std::move(decoder)}) {}

  explicit Session(AdsSessionOptions options) : core_(std::move(options)) {}

  Lines step(const AdsSessionEvent& event) {
    Lines lines;
    for (const AdsSessionEffect& effect : core_.step(event, now)) {
      if (std::holds_alternative<ReadNext>(effect)) {
        ++reads;
        continue;
      }
      if (const auto* ended = std::get_if<StreamEnded>(&effect)) {
        ends.push_back(ended->how);
        continue;
      }
      if (const auto* received = std::get_if<ResourcesReceived>(&effect)) last = *received;
      if (const auto* start = std::get_if<StartTimer>(&effect)) timer = *start;
      lines.push_back(describe(effect));
      const auto* sent = std::get_if<SendBytes>(&effect);
      if (sent == nullptr || is_blocked) continue;
      for (const std::string& line : step(AdsBytesWritten{sent->stream}))
        lines.push_back(line);
    }
    return lines;
  }

  // The transport has written the oldest request that was not written yet.
  Lines written(std::uint64_t stream) { return step(AdsBytesWritten{stream}); }

  Lines subscribe(ResourceType type, std::set<std::string> names) {
    return step(Subscribe{type, std::move(names)});
  }

  Lines opened(std::uint64_t stream) { return step(AdsStreamOpened{stream}); }

  Lines bytes(std::uint64_t stream, std::string text) {
    return step(AdsBytesReceived{stream, std::move(text)});
  }

  Lines closed(std::uint64_t stream, absl::Status status = absl::OkStatus()) {
    return step(AdsStreamClosed{stream, std::move(status)});
  }

  // Lets the timer elapse that was started last.
  Lines elapse() {
    now += timer.delay;
    return step(TimerFired{timer.timer});
  }

  Instant now;
  StartTimer timer;
  bool is_blocked = false;      // True: requests stay unwritten. False: they are written at once.
  int reads = 0;                // The number of ReadNext effects.
  std::vector<StreamEnd> ends;  // How each stream has ended, in order.
  ResourcesReceived last;       // The response that was reported last.

 private:
  AdsSession core_;
};

}  // namespace

TEST_CASE("ads session: opens a stream when something is wanted, and asks once it is open",
          "[xds][ads_session][A57]") {
  Session session;
  CHECK(session.subscribe(kLds, {}).empty());
  CHECK(session.subscribe(kLds, {"l"}) == Lines{"open 1"});
  CHECK(session.subscribe(kCds, {"b", "a"}).empty());
  CHECK(session.opened(1) == Lines{"send 1: LDS / [l] node=node-1",
                                   "asked LDS [l]",
                                   "send 1: CDS / [a b]",
                                   "asked CDS [a b]"});
}

TEST_CASE("ads session: a response is answered by exactly one ACK or NACK with its nonce",
          "[xds][ads_session][A46]") {
  Session session;
  session.subscribe(kCds, {"a"});
  session.opened(1);
  CHECK(session.bytes(1, "CDS v1 n1") == Lines{"send 1: CDS v1/n1 [a]", "received CDS v1"});
  // A NACK has the version of the last good response. Valid resources of the refused response are
  // reported, too.
  CHECK(session.bytes(1, "CDS v2 n2 cluster a: bad") ==
        Lines{"send 1: CDS v1/n2 [a] NACK 3: cluster a: bad", "received CDS v2"});
  CHECK(session.bytes(1, "CDS v3 n3") == Lines{"send 1: CDS v3/n3 [a]", "received CDS v3"});
}

TEST_CASE("ads session: a stream that ends is told with how it ended, once",
          "[xds][ads_session][metrics]") {
  using Ends = std::vector<StreamEnd>;
  Session session;
  session.subscribe(kCds, {"a"});
  SECTION("it was never open") {
    session.closed(1, absl::UnavailableError("refused"));
    CHECK(session.ends == Ends{StreamEnd::kNoResponse});
  }
  SECTION("it had no response") {
    session.opened(1);
    session.closed(1);
    CHECK(session.ends == Ends{StreamEnd::kNoResponse});
  }
  SECTION("it had a response") {
    session.opened(1);
    session.bytes(1, "CDS v1 n1");
    session.closed(1);
    CHECK(session.ends == Ends{StreamEnd::kOk});
    session.elapse();
    session.opened(2);
    session.bytes(2, "CDS v1 n2");
    session.closed(2, absl::UnavailableError("reset"));
    CHECK(session.ends == Ends{StreamEnd::kOk, StreamEnd::kError});
  }
  SECTION("its response was beyond the limit") {
    session.opened(1);
    session.closed(1, absl::ResourceExhaustedError("too large"));
    CHECK(session.ends == Ends{StreamEnd::kError});
  }
  SECTION("it is another stream") {
    session.opened(1);
    session.closed(7);
    CHECK(session.ends.empty());
  }
}

TEST_CASE("ads session: a response is told with its size and the time when it came",
          "[xds][ads_session][metrics]") {
  Session session;
  session.now = Instant(std::chrono::hours(3));
  session.subscribe(kCds, {"a"});
  session.opened(1);
  session.bytes(1, "CDS v1 n1");
  CHECK(session.last.bytes == 9);
  CHECK(session.last.at == Instant(std::chrono::hours(3)));
}

TEST_CASE("ads session: what xds/parse finds wrong is what the NACK says",
          "[xds][ads_session][A46]") {
  AdsSessionOptions options;
  options.node = serialised_node();
  options.decode = decode_at_once([](absl::string_view bytes) { return decode_response(bytes); });
  AdsSession session(options);
  session.step(Subscribe{kCds, {"a"}}, {});
  session.step(AdsStreamOpened{1}, {});
  session.step(AdsBytesWritten{1}, {});

  envoy::service::discovery::v3::DiscoveryResponse response;
  response.set_type_url(std::string(kClusterTypeUrl));
  response.set_version_info("v1");
  response.set_nonce("n1");
  auto& any = *response.add_resources();
  any.set_type_url(std::string(kClusterTypeUrl));
  any.set_value("not a cluster");
  const auto effects = session.step(AdsBytesReceived{1, response.SerializeAsString()}, {});
  REQUIRE(effects.size() == 3);
  const auto& sent = std::get<SendBytes>(effects[0]);
  const auto& received = std::get<ResourcesReceived>(effects[1]);
  REQUIRE(received.unnamed_errors.size() == 1);
  CHECK(describe_request(sent.bytes) == "CDS /n1 [a] NACK 3: " + received.unnamed_errors[0]);
}

TEST_CASE("ads session: a NACK before anything was accepted has no version", "[xds][ads_session]") {
  Session session;
  session.subscribe(kEds, {"e"});
  session.opened(1);
  CHECK(session.bytes(1, "EDS v1 n1 bad") ==
        Lines{"send 1: EDS /n1 [e] NACK 3: bad", "received EDS v1"});
}

TEST_CASE("ads session: a changed subscription is sent at once, with version and nonce",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kCds, {"a"});
  session.opened(1);
  session.bytes(1, "CDS v1 n1");
  CHECK(session.subscribe(kCds, {"a", "b"}) == Lines{"send 1: CDS v1/n1 [a b]", "asked CDS [a b]"});
  CHECK(session.subscribe(kCds, {"a", "b"}).empty());
}

TEST_CASE("ads session: an empty list unsubscribes, but is never a wildcard by accident",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.opened(1);
  CHECK(session.subscribe(kCds, {}).empty());
  session.subscribe(kCds, {"a"});
  session.bytes(1, "CDS v1 n1");
  CHECK(session.subscribe(kCds, {}) == Lines{"send 1: CDS v1/n1 []", "asked CDS []"});
  CHECK(session.subscribe(kCds, {}).empty());
  // A response that crosses the unsubscription is still answered.
  CHECK(session.bytes(1, "CDS v2 n2") == Lines{"send 1: CDS v2/n2 []", "received CDS v2"});

  SECTION("nor is it on the next stream") {
    session.closed(1);
    session.elapse();
    CHECK(session.opened(2) == Lines{"send 2: LDS / [l] node=node-1", "asked LDS [l]"});
  }
}

TEST_CASE("ads session: what is wanted again after nothing was is asked for without a version",
          "[xds][ads_session][A27]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.subscribe(kRds, {"r"});
  session.opened(1);
  session.bytes(1, "RDS v1 n1");
  session.subscribe(kRds, {});

  SECTION("the nonce goes on") {
    CHECK(session.subscribe(kRds, {"r"}) == Lines{"send 1: RDS /n1 [r]", "asked RDS [r]"});
  }
  SECTION("nor with that of a response that crossed the unsubscription") {
    CHECK(session.bytes(1, "RDS v2 n2") == Lines{"send 1: RDS v2/n2 []", "received RDS v2"});
    CHECK(session.subscribe(kRds, {"r"}) == Lines{"send 1: RDS /n2 [r]", "asked RDS [r]"});
  }
  SECTION("nor on the next stream") {
    session.subscribe(kRds, {"r"});
    session.now += 10s;
    session.closed(1);
    CHECK(session.opened(2) == Lines{"send 2: LDS / [l] node=node-1",
                                     "asked LDS [l]",
                                     "send 2: RDS / [r]",
                                     "asked RDS [r]"});
  }
}

TEST_CASE(
    "ads session: what nobody wanted while there was no stream is asked for without a version",
    "[xds][ads_session][A27]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.subscribe(kRds, {"r"});
  session.opened(1);
  session.bytes(1, "LDS v1 n1");
  session.bytes(1, "RDS v1 n1");
  session.closed(1);
  session.subscribe(kRds, {});
  session.subscribe(kRds, {"r"});
  session.elapse();
  CHECK(session.opened(2) == Lines{"send 2: LDS v1/ [l] node=node-1",
                                   "asked LDS [l]",
                                   "send 2: RDS / [r]",
                                   "asked RDS [r]"});
}

TEST_CASE("ads session: a version does not survive a stream that ended before it was given up",
          "[xds][ads_session][A27]") {
  Session session;
  session.subscribe(kRds, {"r"});
  session.opened(1);
  session.bytes(1, "RDS v1 n1");
  session.subscribe(kRds, {"r", "s"});                           // Sent, but not answered.
  CHECK(session.subscribe(kRds, {}) == Lines{"timer request"});  // So this change waits.
  session.closed(1);                                             // It is never sent.
  session.subscribe(kRds, {"r"});
  session.elapse();
  CHECK(session.opened(2) == Lines{"send 2: RDS / [r] node=node-1", "asked RDS [r]"});
}

TEST_CASE("ads session: what was never asked for on this stream is not answered",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.opened(1);
  CHECK(session.bytes(1, "CDS v1 n1").empty());
  CHECK(session.bytes(1, "other").empty());
  CHECK(session.bytes(1, "LDS v1 n1").size() == 2);
}

TEST_CASE("ads session: versions outlive the stream, nonces and the node's introduction do not",
          "[xds][ads_session][A57]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.opened(1);
  session.bytes(1, "LDS v7 n9");
  session.bytes(1, "LDS v8 n10 bad");
  session.now += 10s;
  CHECK(session.closed(1) == Lines{"asked LDS []", "open 2"});
  CHECK(session.opened(2) == Lines{"send 2: LDS v7/ [l] node=node-1", "asked LDS [l]"});
}

TEST_CASE("ads session: a stream that closes without a response is an error until one comes",
          "[xds][ads_session][A57]") {
  Session session;
  session.subscribe(kLds, {"l"});
  CHECK(session.closed(1, absl::UnavailableError("connection refused")) ==
        Lines{"UNAVAILABLE: xDS server cp:1: connection refused", "timer reopen"});
  CHECK(session.elapse() == Lines{"open 2"});
  session.opened(2);
  CHECK(session.closed(2) == Lines{"asked LDS []",
                                   "UNAVAILABLE: xDS server cp:1: stream closed without a response",
                                   "timer reopen"});
  session.elapse();
  session.opened(3);
  CHECK(session.bytes(3, "LDS v1 n1") == Lines{"OK", "send 3: LDS v1/n1 [l]", "received LDS v1"});
  CHECK(session.bytes(3, "LDS v2 n2").size() == 2);
}

TEST_CASE("ads session: a server without the method is asked whether it is a control plane",
          "[xds][ads_session][A57]") {
  for (const auto& [message, told] : {std::pair("", "stream closed without a response"),
                                      std::pair("no such service", "no such service")}) {
    Session session;
    session.subscribe(kLds, {"l"});
    CHECK(session.closed(1, absl::UnimplementedError(message)) ==
          Lines{absl::StrCat("UNAVAILABLE: xDS server cp:1: ",
                             told,
                             ": UNIMPLEMENTED: is this address a control plane?"),
                "timer reopen"});
  }
}

TEST_CASE("ads session: a stream that closes after a response is no error",
          "[xds][ads_session][A57]") {
  struct Row {
    const char* when;
    Duration age;
    Lines told;
  };

  const auto row = GENERATE(values<Row>({
      {"at once, where it had lasted", 10s, {"asked LDS []", "open 2"}},
      {"after a back-off, where it had not", 9'999ms, {"asked LDS []", "timer reopen"}},
  }));
  DYNAMIC_SECTION(row.when) {
    Session session;
    session.subscribe(kLds, {"l"});
    session.opened(1);
    session.bytes(1, "LDS v1 n1");
    session.now += row.age;
    CHECK(session.closed(1, absl::UnavailableError("reset")) == row.told);
  }
}

TEST_CASE("ads session: backs off 1 s x 1.6 up to 120 s, 20 % either way, until a response",
          "[xds][ads_session][A57]") {
  const auto seed = GENERATE(range(0, 50));
  Session session(static_cast<std::uint64_t>(seed));
  session.subscribe(kLds, {"l"});
  double base = 1.0;
  std::uint64_t stream = 1;
  for (int attempt = 0; attempt < 14; ++attempt) {
    session.closed(stream++);
    const double seconds = std::chrono::duration<double>(session.timer.delay).count();
    CHECK(seconds >= std::max(1.0, 0.8 * base) - 1e-6);
    CHECK(seconds <= 1.2 * base + 1e-6);
    CHECK(session.elapse() == Lines{absl::StrCat("open ", stream)});
    base = std::min(base * 1.6, 120.0);
  }
  session.opened(stream);
  session.bytes(stream, "LDS v1 n1");
  session.now += 1h;
  CHECK(session.closed(stream).back() == absl::StrCat("open ", stream + 1));
  session.closed(stream + 1);
  CHECK(session.timer.delay <= 1200ms);
}

TEST_CASE("ads session: waits differ between seeds and are equal for one", "[xds][ads_session]") {
  const auto first_wait = [](std::uint64_t seed) {
    Session session(seed);
    session.subscribe(kLds, {"l"});
    session.closed(1);
    session.elapse();
    session.closed(2);
    return session.timer.delay;
  };
  CHECK(first_wait(1) == first_wait(1));
  CHECK(first_wait(1) != first_wait(2));
}

TEST_CASE("ads session: never opens two streams within a second", "[xds][ads_session][B8]") {
  const auto seed = GENERATE(range(0, 20));
  Session session(static_cast<std::uint64_t>(seed));
  session.subscribe(kLds, {"l"});
  Instant last_opened = session.now;
  for (std::uint64_t stream = 1; stream < 100; ++stream) {
    // Some streams bring a response and close at once, some only close, some never open.
    const auto fate = (stream + static_cast<std::uint64_t>(seed)) % 3;
    if (fate > 0) session.opened(stream);
    if (fate > 1) session.bytes(stream, "LDS v1 n1");
    session.now += 1ms;
    const Lines closing = session.closed(stream);
    REQUIRE(closing.back() == "timer reopen");
    REQUIRE(session.elapse() == Lines{absl::StrCat("open ", stream + 1)});
    REQUIRE(session.now - last_opened >= 1s);
    last_opened = session.now;
  }
}

TEST_CASE("ads session: a response that is of no use ends its stream, is told and counted",
          "[xds][ads_session][B7]") {
  struct Row {
    const char* when;
    const char* bytes;
    Lines told;
  };

  const auto row = GENERATE(values<Row>({
      {"beyond the limit",
       "large",
       {"close 1",
        "asked LDS []",
        "refused: limit",
        "UNAVAILABLE: xDS server cp:1: beyond the limit",
        "timer reopen"}},
      {"no response at all",
       "garbage",
       {"close 1",
        "asked LDS []",
        "refused: parse",
        "UNAVAILABLE: xDS server cp:1: no response",
        "timer reopen"}},
  }));
  const bool is_answered = GENERATE(false, true);
  DYNAMIC_SECTION(row.when << (is_answered ? ", after a good one" : ", as the first")) {
    Session session;
    session.subscribe(kLds, {"l"});
    session.opened(1);
    if (is_answered) session.bytes(1, "LDS v1 n1");
    session.now += 1h;
    CHECK(session.bytes(1, row.bytes) == row.told);
    CHECK(session.timer.delay >= 800ms);
    // Later events of the broken stream are ignored. After a good response on the next stream, the
    // status of the server is OK.
    CHECK(session.bytes(1, "LDS v2 n2").empty());
    CHECK(session.closed(1).empty());
    session.elapse();
    session.opened(2);
    CHECK(session.bytes(2, "LDS v3 n3").front() == "OK");
  }
}

TEST_CASE("ads session: a response that was too large for the transport is told and counted",
          "[xds][ads_session][B7]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.opened(1);
  session.bytes(1, "LDS v1 n1");
  session.now += 1h;
  CHECK(session.closed(1, absl::ResourceExhaustedError("65 MiB of at most 64")) ==
        Lines{"asked LDS []",
              "refused: limit",
              "UNAVAILABLE: xDS server cp:1: 65 MiB of at most 64",
              "timer reopen"});
}

TEST_CASE("ads session: a response that is of no use again and again is never a hot loop",
          "[xds][ads_session][B7][S9]") {
  Session session;
  session.subscribe(kLds, {"l"});
  std::uint64_t stream = 1;
  for (; session.now < Instant{} + 1h; ++stream) {
    session.opened(stream);
    // The good response resets the back-off of streams without a response (A57). The back-off of
    // refused responses still grows.
    session.bytes(stream, "LDS v1 n1");
    session.bytes(stream, "large");
    session.elapse();
  }
  CHECK(stream < 50);
}

TEST_CASE("ads session: the NACK of what repeats a refused response waits longer each time",
          "[xds][ads_session][B8]") {
  Session session;
  session.subscribe(kCds, {"a"});
  session.subscribe(kEds, {"e"});
  session.opened(1);
  session.bytes(1, "CDS v1 n1");
  CHECK(session.bytes(1, "CDS v2 n2 bad") ==
        Lines{"send 1: CDS v1/n2 [a] NACK 3: bad", "received CDS v2"});

  // For an hour the server answers each NACK at once with the same response.
  int nacks = 0;
  double base = 1.0;
  for (int n = 3; session.now < Instant{} + 1h; ++n, ++nacks) {
    REQUIRE(session.bytes(1, absl::StrCat("CDS v2 n", n, " bad")) ==
            Lines{"timer nack", "received CDS v2"});
    const double seconds = std::chrono::duration<double>(session.timer.delay).count();
    REQUIRE(seconds >= 0.8 * base - 1e-6);
    REQUIRE(seconds <= 1.2 * base + 1e-6);
    base = std::min(base * 1.6, 10.0);
    // Responses of other types are answered at once.
    REQUIRE(session.bytes(1, absl::StrCat("EDS v", n, " m", n)).size() == 2);
    REQUIRE(session.elapse() == Lines{absl::StrCat("send 1: CDS v1/n", n, " [a] NACK 3: bad")});
  }
  CHECK(nacks < 450);
}

TEST_CASE("ads session: what takes the place of a NACK that waits", "[xds][ads_session][B8]") {
  Session session;
  session.subscribe(kCds, {"a"});
  session.opened(1);
  session.bytes(1, "CDS v1 n1");
  session.bytes(1, "CDS v2 n2 bad");
  REQUIRE(session.bytes(1, "CDS v2 n3 bad").front() == "timer nack");

  SECTION("nothing: it goes out when its time has come, once") {
    CHECK(session.elapse() == Lines{"send 1: CDS v1/n3 [a] NACK 3: bad"});
    CHECK(session.elapse().empty());
  }
  SECTION("the same again: there is one wait, and the newest nonce is answered") {
    CHECK(session.bytes(1, "CDS v2 n4 bad") == Lines{"received CDS v2"});
    CHECK(session.elapse() == Lines{"send 1: CDS v1/n4 [a] NACK 3: bad"});
  }
  SECTION("a good response: it is ACKed at once") {
    CHECK(session.bytes(1, "CDS v3 n4").front() == "send 1: CDS v3/n4 [a]");
    CHECK(session.elapse().empty());
    // After a good response, the NACK of a version that was refused before is sent at once.
    CHECK(session.bytes(1, "CDS v2 n5 bad").front() == "send 1: CDS v3/n5 [a] NACK 3: bad");
  }
  SECTION("another version with the same errors: it is NACKed at once") {
    CHECK(session.bytes(1, "CDS v3 n4 bad").front() == "send 1: CDS v1/n4 [a] NACK 3: bad");
    CHECK(session.elapse().empty());
  }
  SECTION("the same version with other errors: it is NACKed at once") {
    CHECK(session.bytes(1, "CDS v2 n4 worse").front() == "send 1: CDS v1/n4 [a] NACK 3: worse");
    CHECK(session.elapse().empty());
  }
  SECTION("a changed subscription takes it along") {
    CHECK(session.subscribe(kCds, {"a", "b"}) ==
          Lines{"send 1: CDS v1/n3 [a b] NACK 3: bad", "asked CDS [a b]"});
    CHECK(session.elapse().empty());
    // After a changed subscription, the NACK of the first response is sent at once.
    CHECK(session.bytes(1, "CDS v2 n4 bad").front() == "send 1: CDS v1/n4 [a b] NACK 3: bad");
    CHECK(session.bytes(1, "CDS v2 n5 bad").front() == "timer nack");
  }
  SECTION("the end of the stream: the next one knows of nothing refused") {
    const StartTimer nack = session.timer;
    session.closed(1);
    CHECK(session.step(TimerFired{nack.timer}).empty());
    session.elapse();
    session.opened(2);
    CHECK(session.bytes(2, "CDS v2 m1 bad").front() == "send 2: CDS v1/m1 [a] NACK 3: bad");
  }
}

// --- one request at a time ----------------------------------------------------

TEST_CASE(
    "ads session: before a type's first response there is one request, however many names come",
    "[xds][ads_session][A57]") {
  Session session;
  session.subscribe(kLds, {"0"});
  session.opened(1);
  std::set<std::string> names{"0"};
  for (int i = 1; i < 200; ++i) {
    names.insert(std::to_string(i));
    const Lines lines = session.subscribe(kLds, names);
    CHECK(lines == (i == 1 ? Lines{"timer request"} : Lines{}));
  }
  SECTION("and the answer takes all of them along") {
    CHECK(session.bytes(1, "LDS v1 n1") ==
          Lines{absl::StrCat("send 1: LDS v1/n1 [", absl::StrJoin(names, " "), "]"),
                absl::StrCat("asked LDS [", absl::StrJoin(names, " "), "]"),
                "received LDS v1"});
    CHECK(session.elapse().empty());
  }
  SECTION("and without an answer they are asked for after a while: a server need not answer") {
    CHECK(session.timer.delay >= 80ms);
    CHECK(session.timer.delay <= 120ms);
    CHECK(session.elapse() == Lines{absl::StrCat("send 1: LDS / [", absl::StrJoin(names, " "), "]"),
                                    absl::StrCat("asked LDS [", absl::StrJoin(names, " "), "]")});
  }
}

TEST_CASE("ads session: a server that does not answer is asked ever more rarely",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"0"});
  session.opened(1);
  int requests = 1;
  std::set<std::string> names{"0"};
  const Instant end = session.now + 15s;
  while (session.now < end) {
    names.insert(std::to_string(names.size()));
    REQUIRE(session.subscribe(kLds, names) == Lines{"timer request"});
    REQUIRE(session.elapse().size() == 2);
    ++requests;
  }
  CHECK(requests <= 8);
  // The last request is as old as RequestTurnOptions::patience (15 s), so a later subscription does
  // not wait for its answer.
  session.now += 15s;
  names.insert("last");
  CHECK(session.subscribe(kLds, names).size() == 2);
}

TEST_CASE("ads session: a request that was answered holds nothing up, nor does another type",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"a"});
  session.opened(1);
  CHECK(session.subscribe(kRds, {"r"}) == Lines{"send 1: RDS / [r]", "asked RDS [r]"});
  session.bytes(1, "LDS v1 n1");
  CHECK(session.subscribe(kLds, {"a", "b"}) == Lines{"send 1: LDS v1/n1 [a b]", "asked LDS [a b]"});
  CHECK(session.subscribe(kLds, {"a", "b", "c"}) == Lines{"timer request"});
  CHECK(session.bytes(1, "LDS v2 n2") ==
        Lines{"send 1: LDS v2/n2 [a b c]", "asked LDS [a b c]", "received LDS v2"});
}

TEST_CASE("ads session: names that are given up do not hold up new ones, but one another",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"a", "b", "c", "d"});
  session.opened(1);
  session.bytes(1, "LDS v1 n1");
  CHECK(session.subscribe(kLds, {"a", "b", "c"}).size() == 2);
  CHECK(session.subscribe(kLds, {"a", "b"}) == Lines{"timer request"});
  SECTION("together, after a while") {
    CHECK(session.subscribe(kLds, {"a"}).empty());
    CHECK(session.elapse() == Lines{"send 1: LDS v1/n1 [a]", "asked LDS [a]"});
  }
  SECTION("with a new name") {
    CHECK(session.subscribe(kLds, {"a", "e"}) ==
          Lines{"send 1: LDS v1/n1 [a e]", "asked LDS [a e]"});
    // This request had all changes and ended their wait, so the next change starts a timer.
    CHECK(session.subscribe(kLds, {"a", "e", "f"}) == Lines{"timer request"});
  }
  SECTION("with the next answer") {
    CHECK(session.bytes(1, "LDS v2 n2").front() == "send 1: LDS v2/n2 [a b]");
  }
}

TEST_CASE("ads session: a name that is given up and wanted again is missing in one request",
          "[xds][ads_session][A27]") {
  Session session;
  session.subscribe(kEds, {"a", "b"});
  session.opened(1);
  session.bytes(1, "EDS v1 n1");
  session.subscribe(kEds, {"a", "b", "c"});  // This request is not answered.
  REQUIRE(session.subscribe(kEds, {"b", "c"}) == Lines{"timer request"});
  REQUIRE(session.subscribe(kEds, {"a", "b", "c"}).empty());
  SECTION("alone, after a while") {
    CHECK(session.elapse() == Lines{"send 1: EDS v1/n1 [b c]", "asked EDS [b c]", "timer request"});
    CHECK(session.elapse() == Lines{"send 1: EDS v1/n1 [a b c]", "asked EDS [a b c]"});
  }
  SECTION("with an answer that does not bring it") {
    const Lines lines = session.bytes(1, "EDS v2 n2");
    CHECK(lines == Lines{"send 1: EDS v2/n2 [b c]",
                         "asked EDS [b c]",
                         "send 1: EDS v2/n2 [a b c]",
                         "asked EDS [a b c]",
                         "received EDS v2"});
  }
  SECTION("not where an answer brings it") {
    CHECK(session.bytes(1, "EDS+a v2 n2") == Lines{"send 1: EDS v2/n2 [a b c]", "received EDS v2"});
  }
}

TEST_CASE("ads session: nothing that was wanted meanwhile makes a type start without a version",
          "[xds][ads_session][A27]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.subscribe(kRds, {"r"});
  session.opened(1);
  session.bytes(1, "RDS v1 n1");
  session.subscribe(kRds, {"r", "s"});
  REQUIRE(session.subscribe(kRds, {}) == Lines{"timer request"});
  REQUIRE(session.subscribe(kRds, {"t"}).empty());
  CHECK(session.elapse() == Lines{"send 1: RDS /n1 [t]", "asked RDS [t]"});
  CHECK(session.bytes(1, "RDS v2 n2 bad").front() == "send 1: RDS /n2 [t] NACK 3: bad");
}

TEST_CASE("ads session: a change that waited, and was undone, leaves the next one to wait",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"a"});
  session.opened(1);
  REQUIRE(session.subscribe(kLds, {"a", "b"}) == Lines{"timer request"});
  CHECK(session.subscribe(kLds, {"a"}).empty());
  CHECK(session.elapse().empty());
  CHECK(session.subscribe(kLds, {"a", "c"}) == Lines{"timer request"});
}

TEST_CASE("ads session: while a request has not left the next one waits, and tells of no names",
          "[xds][ads_session][A57]") {
  Session session;
  session.subscribe(kCds, {"a"});
  session.is_blocked = true;
  CHECK(session.opened(1) == Lines{"send 1: CDS / [a] node=node-1"});
  CHECK(session.subscribe(kEds, {"e"}) == Lines{"send 1: EDS / [e]"});
  CHECK(session.subscribe(kCds, {"a", "b"}).empty());
  SECTION("then both are told, each with its own request") {
    CHECK(session.written(1) == Lines{"asked CDS [a]", "timer request"});
    CHECK(session.written(1) == Lines{"asked EDS [e]"});
    CHECK(session.written(1).empty());
  }
  SECTION("answers to several responses are one: the newest's") {
    CHECK(session.bytes(1, "CDS v1 n1") == Lines{"received CDS v1"});
    CHECK(session.bytes(1, "CDS v2 n2 bad") == Lines{"received CDS v2"});
    CHECK(session.bytes(1, "CDS v2 n3 bad") == Lines{"received CDS v2"});
    CHECK(session.written(1) == Lines{"asked CDS [a]", "send 1: CDS v1/n3 [a b] NACK 3: bad"});
    CHECK(session.written(1) == Lines{"asked EDS [e]"});
    CHECK(session.written(1) == Lines{"asked CDS [a b]"});
  }
  SECTION("an answer that is heard of before is one all the same") {
    CHECK(session.bytes(1, "EDS v1 n1") == Lines{"received EDS v1"});
    CHECK(session.written(1) == Lines{"asked CDS [a]", "timer request"});
    CHECK(session.written(1) == Lines{"asked EDS [e]", "send 1: EDS v1/n1 [e]"});
    CHECK(session.written(1).empty());
    CHECK(session.subscribe(kEds, {"e", "f"}) == Lines{"send 1: EDS v1/n1 [e f]"});
  }
  SECTION("an ACK keeps its version where nothing was wanted meanwhile, and new names have none") {
    session.bytes(1, "CDS v1 n1");
    session.subscribe(kCds, {});
    session.subscribe(kCds, {"c"});
    CHECK(session.written(1) == Lines{"asked CDS [a]", "send 1: CDS v1/n1 []"});
    CHECK(session.written(1) == Lines{"asked EDS [e]"});
    CHECK(session.written(1) == Lines{"asked CDS []", "send 1: CDS /n1 [c]"});
  }
  SECTION("an ACK has the names that were wanted again before its response came") {
    session.subscribe(kCds, {});
    session.subscribe(kCds, {"c"});
    session.bytes(1, "CDS v1 n1");
    CHECK(session.written(1) == Lines{"asked CDS [a]", "send 1: CDS v1/n1 [c]"});
  }
  SECTION("and the end of the stream ends it") {
    session.closed(1);
    CHECK(session.written(1).empty());
  }
}

TEST_CASE("ads session: events of a stream or timer that is past are dropped",
          "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.opened(1);
  session.closed(1);
  const TimerId old_timer = session.timer.timer;
  CHECK(session.bytes(1, "LDS v1 n1").empty());
  CHECK(session.opened(1).empty());
  CHECK(session.closed(1).empty());
  session.elapse();
  CHECK(session.opened(1).empty());
  CHECK(session.step(TimerFired{old_timer}).empty());
  session.closed(2);
  CHECK(session.step(TimerFired{old_timer}).empty());
}

TEST_CASE("ads session: rests when nothing is wanted after a wait", "[xds][ads_session]") {
  Session session;
  session.subscribe(kLds, {"l"});
  session.closed(1);
  session.subscribe(kLds, {});
  CHECK(session.elapse().empty());
  CHECK(session.subscribe(kRds, {"r"}) == Lines{"open 2"});
}

// --- long responses ---------------------------------------------------------

namespace {

// Decodes "long LDS v1 n1" in three parts, and any other response in one.
Decoding decode_in_three(std::string bytes) {
  const bool is_long = bytes.rfind("long ", 0) == 0;
  const std::string text = is_long ? bytes.substr(5) : bytes;
  return
      [text, parts = is_long ? 3 : 1]() mutable -> std::optional<absl::StatusOr<DecodedResponse>> {
        if (--parts > 0) return std::nullopt;
        return decode(text);
      };
}

}  // namespace

TEST_CASE("ads session: a long response is decoded in parts, with pauses", "[xds][ads_session]") {
  Session session(1, decode_in_three);
  session.subscribe(kCds, {"a"});
  session.opened(1);
  CHECK(session.bytes(1, "long CDS v1 n1") == Lines{"timer decode"});
  CHECK(session.timer.delay == Duration::zero());
  CHECK(session.elapse() == Lines{"timer decode"});
  SECTION("then it is answered and told") {
    CHECK(session.elapse() == Lines{"send 1: CDS v1/n1 [a]", "received CDS v1"});
  }
  SECTION("other events have their turn") {
    CHECK(session.subscribe(kLds, {"l"}) == Lines{"send 1: LDS / [l]", "asked LDS [l]"});
  }
  SECTION("the stream's end waits, and hides nothing") {
    CHECK(session.closed(1).empty());
    CHECK(session.elapse() ==
          Lines{"send 1: CDS v1/n1 [a]", "received CDS v1", "asked CDS []", "timer reopen"});
  }
}

TEST_CASE("ads session: the next response is asked for when one is decoded, and not before",
          "[xds][ads_session][B7]") {
  Session session(1, decode_in_three);
  session.subscribe(kCds, {"a"});
  session.opened(1);
  CHECK(session.reads == 0);  // The transport reads the first response by itself.
  SECTION("decoded in parts") {
    session.bytes(1, "long CDS v1 n1");
    session.subscribe(kLds, {"l"});
    session.elapse();
    CHECK(session.reads == 0);
    session.elapse();
    CHECK(session.reads == 1);
    session.bytes(1, "CDS v2 n2");
    CHECK(session.reads == 2);
  }
  SECTION("refused, or of a type that is none of ours") {
    session.bytes(1, "CDS v1 n1 bad");
    session.bytes(1, "other");
    session.bytes(1, "RDS v1 n1");
    CHECK(session.reads == 3);
  }
  SECTION("never on a stream that the response has ended") {
    session.bytes(1, "long large");
    session.elapse();
    session.elapse();
    CHECK(session.reads == 0);
  }
  SECTION("never on a stream that has ended meanwhile") {
    session.bytes(1, "long CDS v1 n1");
    session.closed(1);
    session.elapse();
    session.elapse();
    session.elapse();
    CHECK(session.opened(2).size() == 2);
    session.bytes(2, "long CDS v2 n2");
    CHECK(session.reads == 1);  // For stream 1, before its end was handled.
  }
}

TEST_CASE("ads session: a long response that is none ends the stream, and its end is no news",
          "[xds][ads_session][B7]") {
  Session session(1, decode_in_three);
  session.subscribe(kCds, {"a"});
  session.opened(1);
  session.bytes(1, "long large");
  session.closed(1);
  session.elapse();
  const Lines lines = session.elapse();
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == "close 1");
  CHECK(lines[2] == "refused: limit");
  CHECK(lines[4] == "timer reopen");
}

// The server ignores requests with an old nonce, so it has not seen that the name was unsubscribed.
TEST_CASE(
    "ads session: a name that is given up and wanted again while a response is decoded is "
    "missing in its answer",
    "[xds][ads_session][A27]") {
  Session session(1, decode_in_three);
  session.subscribe(kEds, {"a", "b"});
  session.opened(1);
  session.bytes(1, "EDS v1 n1");
  const auto decode_rest = [&] {
    session.timer = {session.timer.timer, Duration::zero()};
    session.elapse();
    return session.elapse();
  };

  SECTION("both changes had left") {
    session.bytes(1, "long EDS v2 n2");
    const StartTimer part = session.timer;
    REQUIRE(session.subscribe(kEds, {"b"}) == Lines{"send 1: EDS v1/n1 [b]", "asked EDS [b]"});
    REQUIRE(session.subscribe(kEds, {"a", "b"}) ==
            Lines{"send 1: EDS v1/n1 [a b]", "asked EDS [a b]"});
    session.timer = part;
    CHECK(decode_rest() == Lines{"send 1: EDS v2/n2 [b]",
                                 "asked EDS [b]",
                                 "send 1: EDS v2/n2 [a b]",
                                 "asked EDS [a b]",
                                 "received EDS v2"});
  }
  SECTION("all names were given up") {
    session.bytes(1, "long EDS v2 n2");
    const StartTimer part = session.timer;
    session.subscribe(kEds, {});
    REQUIRE(session.subscribe(kEds, {"a"}) == Lines{"send 1: EDS /n1 [a]", "asked EDS [a]"});
    session.timer = part;
    CHECK(decode_rest() == Lines{"send 1: EDS v2/n2 []",
                                 "asked EDS []",
                                 "send 1: EDS /n2 [a]",
                                 "asked EDS [a]",
                                 "received EDS v2"});
  }
  SECTION("only the first change had left") {
    session.bytes(1, "long EDS v2 n2");
    const StartTimer part = session.timer;
    session.is_blocked = true;
    session.subscribe(kEds, {"b"});
    session.subscribe(kEds, {"a", "b"});
    session.timer = part;
    CHECK(decode_rest() == Lines{"received EDS v2"});
    session.is_blocked = false;
    CHECK(session.written(1) == Lines{"asked EDS [b]",
                                      "send 1: EDS v2/n2 [b]",
                                      "send 1: EDS v2/n2 [a b]",
                                      "asked EDS [a b]"});
  }
  SECTION("not where the response brings it") {
    session.bytes(1, "long EDS+a v2 n2");
    const StartTimer part = session.timer;
    session.subscribe(kEds, {"b"});
    session.subscribe(kEds, {"a", "b"});
    session.timer = part;
    CHECK(decode_rest() == Lines{"send 1: EDS v2/n2 [a b]", "received EDS v2"});
  }
  SECTION("not where the response is of another type: the nonce was the newest") {
    session.subscribe(kCds, {"c"});
    session.bytes(1, "long CDS v1 m1");
    const StartTimer part = session.timer;
    session.subscribe(kEds, {"b"});
    session.subscribe(kEds, {"a", "b"});
    session.timer = part;
    CHECK(decode_rest() == Lines{"send 1: CDS v1/m1 [c]", "received CDS v1"});
    CHECK(session.bytes(1, "EDS v2 n2") == Lines{"send 1: EDS v2/n2 [a b]", "received EDS v2"});
  }
}

}  // namespace signalbox::xds
