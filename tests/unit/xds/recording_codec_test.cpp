// SPDX-License-Identifier: Apache-2.0
//
// Recordings as bytes: what is written is read again, and bad files get an error.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "signalbox/recording/v1/recording.pb.h"
#include "xds/record/codec.hpp"

namespace signalbox::xds {
namespace {

using Catch::Matchers::Contains;
using std::chrono::seconds;

RecordingHeader some_header() {
  RecordingHeader header;
  header.version = "0.1.0";
  header.run = 0xfedcba9876543210;
  header.segment = 3;
  header.started = WallTime(seconds(1'700'000'000));
  header.bootstrap = R"({"node": {"id": "n"}})";
  header.settings = {{"failover_timeout", "10000000000"}, {"seed", "7"}};
  header.environment = {{"GRPC_EXPERIMENTAL_X", "true"}};
  header.extensions = {"com.example.Quorum"};
  return header;
}

// One event of each kind.
std::vector<RecordedEvent> some_events() {
  const absl::Status lost = absl::UnavailableError("connection refused \xff");
  std::vector<OutsideEvent> all = {
      TargetOpened{"xds:///orders"},
      TargetWoken{"xds:///orders"},
      PolicyAsked{"xds:///orders",
                  PolicyPath("c/priority"),
                  {PickAsk::Kind::kCreate, Address("10.0.0.1:80")}},
      StreamBegan{1, 2},
      StreamOpened{1, 2},
      StreamReceived{1, 2, std::string("\0bytes", 6)},
      StreamAsked{1, 2, ResourceType::kCluster, "nonce \xff", true, {}},
      StreamAsked{1, 2, ResourceType::kEndpoints, "", false, std::vector<std::string>{"a", "b"}},
      StreamAsked{1, 2, ResourceType::kListener, "n", false, std::vector<std::string>{}},
      StreamClosed{1, 2, lost},
      StreamLeft{1, 2},
      ConnectBegan{9, "10.0.0.1:80", 77},
      ConnectMade{9},
      ConnectEnded{9, lost},
      ConnectLeft{9},
      NameAnswered{DnsName("a.example:80"),
                   std::vector{Address("10.0.0.1:80"), Address("[::1]:80")}},
      NameAnswered{DnsName("a.example:80"), lost},
      ProbeAnswered{"10.0.0.1:80 of c", ProbeOutcome::kUndone, "no descriptor", true},
      EventsDropped{17},
      TargetClosed{"xds:///orders"}};
  std::vector<RecordedEvent> events;
  events.reserve(all.size());
  for (OutsideEvent& what : all)
    events.push_back({seconds(events.size()), events.empty(), std::move(what)});
  return events;
}

std::string file_of(const RecordingHeader& header, const std::vector<RecordedEvent>& events) {
  std::string bytes = recording_preamble() + encode(header);
  for (const RecordedEvent& event : events)
    bytes += encode(event);
  return bytes;
}

std::string four_bytes(std::uint32_t number) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<char>((number >> shift) & 0xFFU));
  return bytes;
}

/// A frame as any signalbox may write it.
std::string frame_of(const recording::v1::Event& event) {
  recording::v1::Frame frame;
  *frame.mutable_event() = event;
  const std::string content = frame.SerializeAsString();
  std::uint32_t sum = 2166136261U;
  for (const char byte : content)
    sum = (sum ^ static_cast<unsigned char>(byte)) * 16777619U;
  return four_bytes(static_cast<std::uint32_t>(content.size())) + four_bytes(sum) + content;
}

constexpr std::int64_t kTenYears = std::chrono::nanoseconds(std::chrono::hours(24 * 3650)).count();

}  // namespace

TEST_CASE("recording: what is written is read again", "[recording]") {
  const auto read = read_recording(file_of(some_header(), some_events()), "f");
  REQUIRE(read.ok());
  CHECK_FALSE(read->cut_at);
  CHECK(read->recording.header == some_header());
  CHECK(read->recording.events == some_events());
}

TEST_CASE("recording: a file that is cut off at any byte is no crash, and keeps its whole events",
          "[recording]") {
  const std::vector<RecordedEvent> events = some_events();
  const std::string head = recording_preamble() + encode(some_header());
  const std::string whole = file_of(some_header(), events);
  // The places between two frames, at which the file ends with a whole event.
  std::vector<std::size_t> ends = {head.size()};
  for (const RecordedEvent& event : events)
    ends.push_back(ends.back() + encode(event).size());
  std::size_t complete = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut at byte " << size);
    const auto read = read_recording(absl::string_view(whole).substr(0, size), "orders.rec");
    if (size < head.size()) {
      REQUIRE_FALSE(read.ok());
      CHECK_THAT(std::string(read.status().message()), Contains("orders.rec"));
      continue;
    }
    while (complete + 1 < ends.size() && ends[complete + 1] <= size)
      ++complete;
    REQUIRE(read.ok());
    CHECK(read->recording.events.size() == complete);
    CHECK(read->cut_at.has_value() == (size != ends[complete]));
    if (read->cut_at) CHECK(*read->cut_at == ends[complete]);
  }
}

TEST_CASE("recording: damage is found, at any byte", "[recording]") {
  const std::string whole = file_of(some_header(), some_events());
  for (std::size_t place = 0; place < whole.size(); ++place) {
    INFO("byte " << place);
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    const auto read = read_recording(damaged, "f");
    // A length that has become longer looks like a file that was cut off.
    CHECK((!read.ok() || read->cut_at.has_value()));
  }
}

TEST_CASE("recording: an event that this signalbox does not know is named, and a wrong time is",
          "[recording]") {
  struct Row {
    std::function<void(recording::v1::Event&)> set;
    absl::StatusCode code;
    std::string text;
  };

  constexpr auto kUnknown = absl::StatusCode::kInvalidArgument;
  constexpr auto kDamaged = absl::StatusCode::kDataLoss;
  constexpr std::uint32_t kKinds = std::variant_size_v<OutsideEvent>;
  const std::string before = file_of(some_header(), {});
  const std::string place = std::to_string(before.size());
  const std::string event_has = "orders.rec: the event at byte " + place + " has the ";
  const std::string after =
      ", which this signalbox does not know; signalbox 0.1.0 wrote the recording: replay it with "
      "that one";
  const std::string damaged = "orders.rec: damaged at byte " + place + ": the ";
  const auto row = GENERATE_COPY(values<Row>({
      {[](auto& it) { it.set_kind(kKinds - 1); }, absl::StatusCode::kOk, ""},
      {[](auto& it) { it.set_kind(kKinds); }, kUnknown, event_has + "kind 17" + after},
      {[](auto& it) {
         it.set_kind(3);  // PolicyAsked
         it.set_number(99);
       },
       kUnknown,
       event_has + "ask 99" + after},
      {[](auto& it) {
         it.set_kind(13);  // ProbeAnswered
         it.set_number(99);
       },
       kUnknown,
       event_has + "outcome of a probe 99" + after},
      {[](auto& it) {
         it.set_kind(15);  // StreamAsked
         it.set_name("type.example/Later");
       },
       kUnknown,
       event_has + "type of a request type.example/Later" + after},
      {[](auto& it) { it.set_at_ns(kTenYears); }, absl::StatusCode::kOk, ""},
      {[](auto& it) { it.set_at_ns(kTenYears + 1); },
       kDamaged,
       damaged + "event is more than ten years after the beginning"},
      {[](auto& it) { it.set_at_ns(-1); },
       kDamaged,
       damaged + "time of the event is before that of the last one"},
  }));
  recording::v1::Event event;
  row.set(event);
  const absl::Status status = read_recording(before + frame_of(event), "orders.rec").status();
  CHECK(status.code() == row.code);
  CHECK(std::string(status.message()) == row.text);
}

TEST_CASE("recording: foreign files, other formats and frames in the wrong place are named",
          "[recording]") {
  const auto error = [](absl::string_view bytes) {
    const auto read = read_recording(bytes, "orders.rec");
    REQUIRE_FALSE(read.ok());
    return std::string(read.status().message());
  };
  CHECK(error("") == "orders.rec: the file is empty");
  CHECK_THAT(error("\x7f"
                   "ELF, and more"),
             Contains("orders.rec: not a recording of signalbox: it begins with '\\x7f"));
  CHECK_THAT(error("signalbox-recording 1\n...."),
             Contains("orders.rec: a recording of format 1; this signalbox reads format 2"));
  CHECK_THAT(error("signalbox-recording x\n"), Contains("damaged at byte 20"));
  CHECK_THAT(error("signalbox-record"), Contains("cut off at byte 16"));
  CHECK_THAT(error(recording_preamble() + encode(some_events().front())),
             Contains("the first frame is no header"));
  std::string longer = file_of(some_header(), {});
  longer[recording_preamble().size() + 1] ^= 0x10;  // The length, 4096 more or less.
  CHECK(error(longer) == "orders.rec: cut off at byte " + std::to_string(longer.size()) +
                             ", within its header, or the length of its header is damaged");
  CHECK_THAT(error(file_of(some_header(), {}) + encode(some_header())),
             Contains("the frame is no event"));
  std::vector<RecordedEvent> events = some_events();
  std::swap(events.front(), events.back());
  CHECK_THAT(error(file_of(some_header(), events)), Contains("the time of the event is before"));
}

}  // namespace signalbox::xds
