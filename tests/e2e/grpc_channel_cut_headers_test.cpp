// SPDX-License-Identifier: Apache-2.0
//
// Response headers that break off: each header alone, also those that gRPC hides, with each ending;
// and all headers together, cut after each byte. The kinds of call take turns. gRPC 1.51 reports
// such an answer as Trailers-Only. When the application then asks for the headers, gRPC asserts
// that there were none, and the failed assertion ends the process. signalbox's channel must not let
// that happen.
#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "tests/e2e/conversation.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/retry_world.hpp"
#include "tests/e2e/session_filters.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test::grpc_channel_cut_headers_test {
namespace {

/// The event after the received part of the headers.
enum class Ending { kClose, kTcpReset, kRstStream, kGoaway, kBadHpack, kSilence };

constexpr Ending kEndings[] = {Ending::kClose,
                               Ending::kTcpReset,
                               Ending::kRstStream,
                               Ending::kGoaway,
                               Ending::kBadHpack,
                               Ending::kSilence};

/// Headers that gRPC hides, headers that it shows, and an unknown one.
const Http2Headers kHeaders{{"te", "trailers"},
                            {"grpc-message", "half"},
                            {"grpc-timeout", "10S"},
                            {"grpc-status", "14"},
                            {"lb-cost-bin", "AAAAAAAA8D9hYmM="},
                            {"grpc-trace-bin", "aGVsbG8="},
                            {"grpc-tags-bin", "aGVsbG8="},
                            {"grpc-server-stats-bin", "aGVsbG8="},
                            {"endpoint-load-metrics-bin", "aGVsbG8="},
                            {"grpc-internal-encoding-request", "gzip"},
                            {"grpc-encoding", "gzip"},
                            {"grpc-accept-encoding", "gzip"},
                            {"content-type", "application/grpc"},
                            {":path", "/x"},
                            {":authority", "x"},
                            {":method", "POST"},
                            {":scheme", "http"},
                            {"user-agent", "x"},
                            {"host", "x"},
                            {"grpc-previous-rpc-attempts", "1"},
                            {"grpc-retry-pushback-ms", "1"},
                            {"lb-token", "x"},
                            {"who", "me"}};

struct Cut {
  std::string name;
  std::string bytes;
  Ending ending = Ending::kClose;
  bool has_begun = true;  ///< At least one whole frame header was sent.
};

Cut cut(const Http2Headers& headers, Ending ending) {
  std::string block = header_block(headers);
  if (ending == Ending::kBadHpack) block += '\x80';  // HPACK has no index 0.
  std::string bytes = headers_unfinished(block);
  if (ending == Ending::kRstStream) bytes += rst_stream(Http2Error::kRefusedStream);
  if (ending == Ending::kGoaway) bytes += goaway(0);
  const std::string name = headers.empty() ? "nothing" : headers.front().first;
  return {absl::StrCat(name, ", ending ", static_cast<int>(ending)), bytes, ending};
}

std::unique_ptr<TalkingSocket> server_of(const Cut& cut) {
  std::vector<TalkingSocket::Turn> turns{{"", http2_settings()}, {"one", cut.bytes}};
  if (cut.ending == Ending::kSilence) turns.push_back({"what no client says", ""});
  auto server = std::make_unique<TalkingSocket>(std::move(turns));
  if (cut.ending == Ending::kTcpReset) server->reset_after();
  return server;
}

Manner saying_one(const Cut& cut) {
  EchoRequest request;
  request.set_text("one");
  request.set_times(1);
  Manner manner{"one", {request}, nullptr};
  if (cut.ending == Ending::kSilence)
    manner.prepare = [](grpc::ClientContext& context) {
      context.set_deadline(std::chrono::system_clock::now() + 30ms);
    };
  return manner;
}

/// Makes the call over gRPC's own channel, to a server that cuts its headers as `cut` says.
Transcript converse_plainly(const Way& way, const Cut& cut) {
  const auto server = server_of(cut);
  const EchoService unasked;
  const auto plain =
      grpc::CreateChannel("ipv4:" + server->address(), grpc::InsecureChannelCredentials());
  REQUIRE(plain->WaitForConnected(std::chrono::system_clock::now() + 10s));
  return converse(way, saying_one(cut), plain, unasked);
}

lb::RetryRules rules_of_all_codes() {
  return lb::RetryRules({{absl::StatusCode::kCancelled,
                          absl::StatusCode::kDeadlineExceeded,
                          absl::StatusCode::kInternal,
                          absl::StatusCode::kResourceExhausted,
                          absl::StatusCode::kUnavailable},
                         2,
                         1ms,
                         1ms});
}

/// Makes calls and checks their transcripts. Every second call of one way with one ending has a
/// retry policy, and every second pair of them has a session.
class Trial {
 public:
  void call(const Way& way, const Cut& cut, grpc::StatusCode expected) {
    const unsigned earlier = calls_[{way.name, cut.ending}]++;
    const bool has_policy = (earlier & 1U) != 0;
    const bool has_session = (earlier & 2U) != 0;
    CAPTURE(way.name, cut.name, has_policy, has_session);
    const auto server = server_of(cut);
    ChannelWorld world;
    if (has_policy) world.retry = rules_of_all_codes();
    if (has_session) world.filters = session_chain("");
    std::vector<ConnectionPtr> connections{world.connect(Address(server->address()))};
    if (has_policy) connections.push_back(world.connect(spare_.address()));
    world.publish(has_session ? keeping(connections) : ChannelWorld::ready(connections));
    const int spare_calls = spare_.service().calls;
    const Transcript ours = converse(way, saying_one(cut), world.channel, spare_.service());
    const bool is_made_again = spare_.service().calls > spare_calls;
    // Whether the call may be made again, because the client may not have seen any headers: fewer
    // bytes than a frame header came, a stream's write failed before the headers were read, or a
    // reset overtook the headers.
    const bool may_be =
        !cut.has_begun || cut.ending == Ending::kTcpReset || !absl::StrContains(way.name, "unary");
    CHECK(ours.status.error_code() == (is_made_again ? grpc::StatusCode::OK : expected));
    if (is_made_again) CHECK((has_policy && may_be));
    const std::string metadata = ours.initial + ours.trailing;
    const std::vector<std::string> parts = absl::StrSplit(metadata, " set-cookie=");
    CHECK(parts.size() == (has_session ? 2 : 1));
    world.wait_for_no_uses();
    world.publish(nullptr);
  }

  unsigned calls() const {
    unsigned sum = 0;
    for (const auto& [kind, calls] : calls_)
      sum += calls;
    return sum;
  }

  /// Whether call() has made at least four calls of each way with each of these endings: with and
  /// without a policy, with and without a session.
  bool has_met(std::initializer_list<Ending> endings) const {
    return std::ranges::all_of(ways(), [&](const Way& way) {
      return std::ranges::all_of(endings, [&](Ending ending) {
        const auto found = calls_.find({way.name, ending});
        return found != calls_.end() && found->second >= 4;
      });
    });
  }

 private:
  EchoServer spare_;
  std::map<std::pair<std::string, Ending>, unsigned> calls_;
};

}  // namespace

TEST_CASE("cut headers: every header, cut in every way, through every way to call",
          "[channel][retry][session][A6][A55-21]") {
  Trial trial;
  std::vector<Http2Headers> answers{{}};
  for (const auto& header : kHeaders)
    answers.push_back({header});
  for (std::size_t answer = 0; answer < answers.size(); ++answer) {
    for (const Ending ending : kEndings) {
      const std::size_t cell = answer + static_cast<std::size_t>(ending);
      const Cut each = cut(answers[answer], ending);
      const Way* plain = &ways()[cell % ways().size()];
      if (plain->has_reactor) plain = &ways().front();
      CAPTURE(plain->name, each.name);
      const auto expected = converse_plainly(*plain, each).status.error_code();
      CHECK(expected != grpc::StatusCode::OK);
      for (std::size_t way = 0; way < ways().size(); ++way) {
        if ((cell + way) % 2 == 0) trial.call(ways()[way], each, expected);
      }
    }
  }
  CHECK(trial.calls() >= 1'400);
  CHECK(trial.has_met({Ending::kClose,
                       Ending::kTcpReset,
                       Ending::kRstStream,
                       Ending::kGoaway,
                       Ending::kBadHpack,
                       Ending::kSilence}));
}

TEST_CASE("cut headers: all headers, cut at every byte", "[channel][retry][session][A6][A55-21]") {
  Trial trial;
  const std::string whole = headers_unfinished(header_block(kHeaders));
  for (std::size_t bytes = 1; bytes <= whole.size(); ++bytes) {
    Cut each{absl::StrCat(bytes, " bytes"), whole.substr(0, bytes), Ending::kClose, bytes >= 9};
    trial.call(ways()[bytes % ways().size()], each, grpc::StatusCode::UNAVAILABLE);
    each.ending = Ending::kTcpReset;
    if (bytes % 2 == 0)
      trial.call(ways()[bytes / 2 % ways().size()], each, grpc::StatusCode::UNAVAILABLE);
  }
  CHECK(trial.calls() >= 700);
  CHECK(trial.has_met({Ending::kClose, Ending::kTcpReset}));
}

// The next test runs this one in a process of its own.
TEST_CASE("cut headers: reactors on gRPC's own channel", "[.][own_reactors]") {
  for (const Way& way : ways())
    if (way.has_reactor) converse_plainly(way, cut({{"te", "trailers"}}, Ending::kClose));
}

// gRPC's own channel asks for the headers before a reactor's callback. Debian's build of gRPC has
// assertions on, so the process ends.
TEST_CASE("cut headers: gRPC's own channel ends the process where a reactor calls", "[channel]") {
  const Finished own = run_program({"/proc/self/exe", "[own_reactors]"});
  const bool is_aborted = own.status == 128 + SIGABRT;
  CAPTURE(own.status, own.errors);
  CHECK((is_aborted || own.status == 0));
  if (is_aborted) CHECK(absl::StrContains(own.errors, "TransportSize() == 0"));
}

}  // namespace signalbox::test::grpc_channel_cut_headers_test
