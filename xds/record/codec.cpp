// SPDX-License-Identifier: Apache-2.0
#include "xds/record/codec.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"
#include "signalbox/recording/v1/recording.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace proto = recording::v1;

constexpr absl::string_view kMagic = "signalbox-recording ";
constexpr std::chrono::hours kLatest{24 * 365 * 10};  // The latest time of an event.
constexpr std::size_t kFrameHead = 8;                 // The bytes of length and checksum.
constexpr std::size_t kShown = 24;  // The most bytes of a foreign file that an error shows.

// FNV-1a. It finds damage, and is no protection against forgery.
std::uint32_t checksum(absl::string_view bytes) {
  std::uint32_t sum = 2166136261U;
  for (const char byte : bytes)
    sum = (sum ^ static_cast<unsigned char>(byte)) * 16777619U;
  return sum;
}

void append_number(std::string& to, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    to.push_back(static_cast<char>((number >> shift) & 0xFFU));
}

std::uint32_t read_number(absl::string_view bytes) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < 4; ++i)
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return number;
}

std::string framed(const proto::Frame& frame) {
  const std::string content = frame.SerializeAsString();
  std::string bytes;
  bytes.reserve(kFrameHead + content.size());
  append_number(bytes, static_cast<std::uint32_t>(content.size()));
  append_number(bytes, checksum(content));
  bytes += content;
  return bytes;
}

void set_status(const absl::Status& status, proto::Event& to) {
  to.set_code(static_cast<int>(status.code()));
  to.set_text(std::string(status.message()));
}

absl::Status status_of(const proto::Event& from) {
  return {static_cast<absl::StatusCode>(from.code()), from.text()};
}

// --- events to messages -----------------------------------------------------

void fill(const TargetOpened& event, proto::Event& to) {
  to.set_name(event.target);
}

void fill(const TargetClosed& event, proto::Event& to) {
  to.set_name(event.target);
}

void fill(const TargetWoken& event, proto::Event& to) {
  to.set_name(event.target);
}

void fill(const PolicyAsked& event, proto::Event& to) {
  to.set_name(event.target);
  to.set_text(event.path.str());
  to.set_number(static_cast<std::uint64_t>(event.ask.kind));
  to.set_payload(event.ask.address.str());
}

template <typename StreamEvent>
void fill_stream(const StreamEvent& event, proto::Event& to) {
  to.set_server(event.server);
  to.set_number(event.stream);
}

void fill(const StreamBegan& event, proto::Event& to) {
  fill_stream(event, to);
}

void fill(const StreamOpened& event, proto::Event& to) {
  fill_stream(event, to);
}

void fill(const StreamReceived& event, proto::Event& to) {
  fill_stream(event, to);
  to.set_payload(event.bytes);
}

void fill(const StreamAsked& event, proto::Event& to) {
  fill_stream(event, to);
  to.set_name(std::string(type_url_of(event.type)));
  to.set_text(event.nonce);
  if (event.refused) to.set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
  if (!event.names) return;
  to.set_has_resources(true);
  for (const std::string& name : *event.names)
    to.add_resources(name);
}

void fill(const StreamClosed& event, proto::Event& to) {
  fill_stream(event, to);
  set_status(event.why, to);
}

void fill(const StreamLeft& event, proto::Event& to) {
  fill_stream(event, to);
}

void fill(const ConnectBegan& event, proto::Event& to) {
  to.set_number(event.attempt);
  to.set_name(event.peer);
  to.set_holder(event.holder);
}

void fill(const ConnectMade& event, proto::Event& to) {
  to.set_number(event.attempt);
}

void fill(const ConnectEnded& event, proto::Event& to) {
  to.set_number(event.attempt);
  set_status(event.why, to);
}

void fill(const ConnectLeft& event, proto::Event& to) {
  to.set_number(event.attempt);
}

void fill(const NameAnswered& event, proto::Event& to) {
  to.set_name(event.name.str());
  if (!event.answer.ok()) return set_status(event.answer.status(), to);
  for (const Address& address : *event.answer)
    to.add_addresses(address.str());
}

void fill(const ProbeAnswered& event, proto::Event& to) {
  to.set_name(event.probe);
  to.set_number(static_cast<std::uint64_t>(event.outcome));
  to.set_text(event.why);
  to.set_delayed(event.delayed);
}

void fill(const EventsDropped& event, proto::Event& to) {
  to.set_number(event.count);
}

// --- messages to events -----------------------------------------------------

// The checksum is right, so a newer signalbox has written the event.
template <typename Value>
absl::Status unknown(absl::string_view what, const Value& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("has the ", what, " ", value, ", which this signalbox does not know"));
}

absl::StatusOr<OutsideEvent> policy_asked(const proto::Event& from) {
  constexpr auto kLast = static_cast<std::uint64_t>(PickAsk::Kind::kCreate);
  if (from.number() > kLast) return unknown("ask", from.number());
  return PolicyAsked{from.name(),
                     PolicyPath(from.text()),
                     {static_cast<PickAsk::Kind>(from.number()), Address(from.payload())}};
}

absl::StatusOr<OutsideEvent> stream_asked(const proto::Event& from) {
  const auto type = resource_type_of(from.name());
  if (!type) return unknown("type of a request", from.name());
  StreamAsked asked{from.server(), from.number(), *type, from.text(), from.code() != 0, {}};
  if (from.has_resources()) asked.names.emplace(from.resources().begin(), from.resources().end());
  return asked;
}

OutsideEvent name_answered(const proto::Event& from) {
  if (from.code() != 0) return NameAnswered{DnsName(from.name()), status_of(from)};
  return NameAnswered{DnsName(from.name()),
                      std::vector<Address>(from.addresses().begin(), from.addresses().end())};
}

absl::StatusOr<OutsideEvent> probe_answered(const proto::Event& from) {
  constexpr auto kLast = static_cast<std::uint64_t>(ProbeOutcome::kUndone);
  if (from.number() > kLast) return unknown("outcome of a probe", from.number());
  return ProbeAnswered{
      from.name(), static_cast<ProbeOutcome>(from.number()), from.text(), from.delayed()};
}

absl::StatusOr<OutsideEvent> event_of(const proto::Event& from) {
  switch (from.kind()) {
    case 0:
      return TargetOpened{from.name()};
    case 1:
      return TargetClosed{from.name()};
    case 2:
      return TargetWoken{from.name()};
    case 3:
      return policy_asked(from);
    case 4:
      return StreamBegan{from.server(), from.number()};
    case 5:
      return StreamOpened{from.server(), from.number()};
    case 6:
      return StreamReceived{from.server(), from.number(), from.payload()};
    case 7:
      return StreamClosed{from.server(), from.number(), status_of(from)};
    case 8:
      return ConnectBegan{from.number(), from.name(), from.holder()};
    case 9:
      return ConnectMade{from.number()};
    case 10:
      return ConnectEnded{from.number(), status_of(from)};
    case 11:
      return ConnectLeft{from.number()};
    case 12:
      return name_answered(from);
    case 13:
      return probe_answered(from);
    case 14:
      return EventsDropped{from.number()};
    case 15:
      return stream_asked(from);
    case 16:
      return StreamLeft{from.server(), from.number()};
    default:
      return unknown("kind", from.kind());
  }
}

static_assert(std::variant_size_v<OutsideEvent> == 17, "event_of() has all kinds of events");

RecordingHeader header_of(const proto::Header& from) {
  RecordingHeader header;
  header.version = from.version();
  header.run = from.run();
  header.segment = from.segment();
  header.started = WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::nanoseconds(from.started_unix_ns())));
  header.bootstrap = from.bootstrap();
  for (const proto::Pair& pair : from.settings())
    header.settings.emplace(pair.name(), pair.value());
  for (const proto::Pair& pair : from.environment())
    header.environment.emplace(pair.name(), pair.value());
  header.extensions.assign(from.extensions().begin(), from.extensions().end());
  return header;
}

// --- files ------------------------------------------------------------------

// Returns the bytes behind the first line.
absl::StatusOr<absl::string_view> body_of(absl::string_view bytes, absl::string_view source) {
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(source, ": the file is empty"));
  if (absl::StartsWith(kMagic, bytes.substr(0, kMagic.size())) && bytes.size() <= kMagic.size())
    return absl::DataLossError(absl::StrCat(source, ": cut off at byte ", bytes.size()));
  if (!absl::StartsWith(bytes, kMagic)) {
    return absl::InvalidArgumentError(
        absl::StrCat(source,
                     ": not a recording of signalbox: it begins with '",
                     absl::CHexEscape(bytes.substr(0, kShown)),
                     "'"));
  }
  const absl::string_view rest = bytes.substr(kMagic.size());
  const std::size_t digits =
      std::find_if_not(rest.begin(), rest.end(), absl::ascii_isdigit) - rest.begin();
  if (digits == rest.size())
    return absl::DataLossError(absl::StrCat(source, ": cut off at byte ", bytes.size()));
  int format = 0;
  if (rest[digits] != '\n' || !absl::SimpleAtoi(rest.substr(0, digits), &format))
    return absl::DataLossError(absl::StrCat(source, ": damaged at byte ", kMagic.size() + digits));
  if (format != kRecordingFormat) {
    return absl::InvalidArgumentError(absl::StrCat(source,
                                                   ": a recording of format ",
                                                   format,
                                                   "; this signalbox reads format ",
                                                   kRecordingFormat,
                                                   ": replay it with the signalbox that wrote it"));
  }
  return rest.substr(digits + 1);
}

class Reader {
 public:
  Reader(absl::string_view bytes, absl::string_view body, absl::string_view source)
      : source_(source), size_(bytes.size()), rest_(body) {}

  absl::StatusOr<ReadRecording> read() {
    ReadRecording result;
    absl::Status status = read_header(result.recording.header);
    while (status.ok() && !rest_.empty() && !is_cut())
      status = read_event(result.recording);
    if (!status.ok()) return status;
    if (!rest_.empty()) result.cut_at = at();
    return result;
  }

 private:
  std::size_t at() const { return size_ - rest_.size(); }

  // Whether the rest of the file is shorter than its first frame says. The checksum does not cover
  // the length, so a damaged length may be the reason.
  bool is_cut() const {
    return rest_.size() < kFrameHead || rest_.size() - kFrameHead < read_number(rest_);
  }

  absl::Status damaged(absl::string_view why) const {
    return absl::DataLossError(absl::StrCat(source_, ": damaged at byte ", at(), ": ", why));
  }

  // Precondition: !is_cut().
  absl::Status read_frame(proto::Frame& frame) {
    const absl::string_view content = rest_.substr(kFrameHead, read_number(rest_));
    if (checksum(content) != read_number(rest_.substr(4)))
      return damaged("the checksum is not that of the bytes");
    constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (content.size() > kMost ||
        !frame.ParseFromArray(content.data(), static_cast<int>(content.size())))
      return damaged("the bytes are no message");
    return absl::OkStatus();
  }

  void pass_frame() { rest_.remove_prefix(kFrameHead + read_number(rest_)); }

  absl::Status read_header(RecordingHeader& header) {
    if (is_cut()) {
      return absl::DataLossError(
          absl::StrCat(source_,
                       ": cut off at byte ",
                       size_,
                       ", within its header, or the length of its header is damaged"));
    }
    proto::Frame frame;
    if (auto status = read_frame(frame); !status.ok()) return status;
    if (!frame.has_header()) return damaged("the first frame is no header");
    header = header_of(frame.header());
    pass_frame();
    return absl::OkStatus();
  }

  absl::Status read_event(Recording& recording) {
    proto::Frame frame;
    if (auto status = read_frame(frame); !status.ok()) return status;
    if (!frame.has_event()) return damaged("the frame is no event");
    auto what = event_of(frame.event());
    if (!what.ok()) {
      return {what.status().code(),
              absl::StrCat(source_,
                           ": the event at byte ",
                           at(),
                           " ",
                           what.status().message(),
                           "; signalbox ",
                           recording.header.version,
                           " wrote the recording: replay it with that one")};
    }
    const Duration when(frame.event().at_ns());
    const Duration last = recording.events.empty() ? Duration::zero() : recording.events.back().at;
    if (when < last) return damaged("the time of the event is before that of the last one");
    if (when > kLatest) return damaged("the event is more than ten years after the beginning");
    recording.events.push_back({when, frame.event().carried(), *std::move(what)});
    pass_frame();
    return absl::OkStatus();
  }

  const absl::string_view source_;
  const std::size_t size_;
  absl::string_view rest_;
};

}  // namespace

std::string earlier_segment(const std::string& path) {
  return path + ".old";
}

std::string recording_preamble() {
  return absl::StrCat(kMagic, kRecordingFormat, "\n");
}

std::string encode(const RecordingHeader& header) {
  proto::Frame frame;
  proto::Header& to = *frame.mutable_header();
  to.set_version(header.version);
  to.set_run(header.run);
  to.set_segment(header.segment);
  to.set_started_unix_ns(std::chrono::nanoseconds(header.started.time_since_epoch()).count());
  to.set_bootstrap(header.bootstrap);
  const auto add = [](const auto& pairs, auto& list) {
    for (const auto& [name, value] : pairs) {
      proto::Pair& pair = *list.Add();
      pair.set_name(name);
      pair.set_value(value);
    }
  };
  add(header.settings, *to.mutable_settings());
  add(header.environment, *to.mutable_environment());
  for (const std::string& name : header.extensions)
    to.add_extensions(name);
  return framed(frame);
}

std::string encode(const RecordedEvent& event) {
  proto::Frame frame;
  proto::Event& to = *frame.mutable_event();
  to.set_kind(static_cast<std::uint32_t>(event.what.index()));
  to.set_at_ns(event.at.count());
  to.set_carried(event.carried);
  std::visit([&to](const auto& what) { fill(what, to); }, event.what);
  return framed(frame);
}

absl::StatusOr<ReadRecording> read_recording(absl::string_view bytes, absl::string_view source) {
  const auto body = body_of(bytes, source);
  if (!body.ok()) return body.status();
  return Reader(bytes, *body, source).read();
}

}  // namespace signalbox::xds
