// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/peer_plane.hpp"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/runtime_world.hpp"
#include "xds/document.hpp"
#include "xds/type_url.hpp"

namespace signalbox::test {
namespace {

// Reserves a free port: the socket is bound and never listens. SO_REUSEPORT lets the peer listen on
// the same port.
int reserve_port(std::string& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  const int yes = 1;
  REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) == 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  REQUIRE(::bind(fd, generic, length) == 0);
  REQUIRE(::getsockname(fd, generic, &length) == 0);
  address = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  return fd;
}

WireMessage message_of(const nlohmann::json& event) {
  WireMessage message{.is_request = event["event"] == "request",
                      .stream = event["stream"],
                      .type_url = event["type"],
                      .version = event["version"],
                      .nonce = event["nonce"],
                      .names = event["names"],
                      .error = {},
                      .node = {}};
  if (event.contains("error"))
    message.error = {.code = event["error"]["code"], .message = event["error"]["message"]};
  message.node = node_of(event);
  return message;
}

// A line of JSON for the peer's stdin (the peer is the Go control plane).
std::string command_of(const PeerPlane::Snapshot& snapshot) {
  // Empty text is not a YAML list.
  const auto document = xds::parse_yaml_document(
      snapshot.yaml.empty() ? "resources: []\n" : "resources:\n" + snapshot.yaml);
  INFO(document.status().ToString());
  REQUIRE(document.ok());
  const nlohmann::json command{{"do", "snapshot"},
                               {"version", snapshot.version},
                               {"versions", snapshot.versions},
                               {"resources", document->root["resources"]}};
  return command.dump() + "\n";
}

std::vector<WireMessage> those(const Wire& wire,
                               const std::function<bool(const WireMessage&)>& wanted) {
  std::vector<WireMessage> found;
  std::copy_if(wire.messages.begin(), wire.messages.end(), std::back_inserter(found), wanted);
  return found;
}

const WireMessage* newest(const Wire& wire, absl::string_view type_url, bool is_request) {
  const auto found =
      std::find_if(wire.messages.rbegin(), wire.messages.rend(), [&](const WireMessage& m) {
        return m.is_request == is_request && m.type_url == type_url;
      });
  return found == wire.messages.rend() ? nullptr : &*found;
}

}  // namespace

const std::vector<absl::string_view> kAllTypes{xds::kListenerTypeUrl,
                                               xds::kRouteConfigurationTypeUrl,
                                               xds::kClusterTypeUrl,
                                               xds::kClusterLoadAssignmentTypeUrl};

std::vector<WireMessage> Wire::requests(absl::string_view type_url) const {
  return those(*this, [&](const WireMessage& m) { return m.is_request && m.type_url == type_url; });
}

std::vector<WireMessage> Wire::responses(absl::string_view type_url) const {
  return those(*this,
               [&](const WireMessage& m) { return !m.is_request && m.type_url == type_url; });
}

std::vector<WireMessage> Wire::nacks() const {
  return those(*this, [](const WireMessage& m) { return m.error.has_value(); });
}

bool Wire::acked(absl::string_view type_url, absl::string_view version) const {
  const WireMessage* const asked = newest(*this, type_url, true);
  const WireMessage* const answered = newest(*this, type_url, false);
  return asked != nullptr && answered != nullptr && !asked->error &&
         asked->nonce == answered->nonce && asked->version == version &&
         answered->version == version;
}

bool Wire::acked(absl::string_view version) const {
  return std::all_of(kAllTypes.begin(), kAllTypes.end(), [&](absl::string_view type) {
    return acked(type, version);
  });
}

std::string to_string(const Wire& wire) {
  std::string text;
  for (const WireMessage& m : wire.messages) {
    absl::StrAppend(&text,
                    m.is_request ? "client " : "server ",
                    m.stream,
                    ": ",
                    m.type_url.substr(m.type_url.rfind('.') + 1),
                    " version \"",
                    m.version,
                    "\" nonce \"",
                    m.nonce,
                    "\", ");
    if (m.names.size() < 10)
      absl::StrAppend(&text, "[", absl::StrJoin(m.names, ", "), "]");
    else
      absl::StrAppend(&text, m.names.size(), " names");
    if (m.node) absl::StrAppend(&text, ", node ", m.node->id);
    if (m.error) absl::StrAppend(&text, ", rejected: ", m.error->message);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

PeerPlane::PeerPlane() : reservation_(reserve_port(address_)) {}

PeerPlane::~PeerPlane() {
  ::close(reservation_);
}

void PeerPlane::start() {
  auto process = tools::ChildProcess::start({SIGNALBOX_PEER_PLANE, "-listen", address_},
                                            {.capture_stderr = true, .pipe_stdin = true});
  INFO(process.status().ToString());
  REQUIRE(process.ok());
  process_ = *std::move(process);
  wire_ = {};
  const auto line = process_->read_line(kPatience);
  INFO(line.status().ToString() << " " << process_->captured_errors());
  REQUIRE(line.ok());
  const auto event = nlohmann::json::parse(*line);
  REQUIRE(event["event"] == "listening");
  CHECK(absl::StrCat("127.0.0.1:", event["port"].get<int>()) == address_);
}

void PeerPlane::kill() {
  process_->send_signal(SIGKILL);
  REQUIRE(process_->wait(kPatience).value_or(-1) == 128 + SIGKILL);
}

void PeerPlane::set(const std::string& version,
                    const std::string& yaml,
                    const std::map<std::string, std::string>& versions) {
  set_all({{.version = version, .yaml = yaml, .versions = versions}});
}

void PeerPlane::set_all(const std::vector<Snapshot>& snapshots) {
  std::vector<std::string> commands;
  commands.reserve(snapshots.size());
  for (const Snapshot& snapshot : snapshots)
    commands.push_back(command_of(snapshot));
  order(commands);
}

void PeerPlane::answer_loads(const LoadAnswer& answer) {
  const nlohmann::json command{{"do", "answer_loads"},
                               {"clusters", answer.clusters},
                               {"all_clusters", answer.all_clusters},
                               {"interval_ms", answer.interval.count()}};
  order({command.dump() + "\n"});
}

void PeerPlane::cut_loads(bool at_report) {
  const nlohmann::json command{{"do", "cut_loads"}, {"at_report", at_report}};
  order({command.dump() + "\n"});
}

// Sends lines of JSON to the peer. Returns when the peer has run all of them.
void PeerPlane::order(const std::vector<std::string>& commands) {
  const int wanted = commands_done_ + static_cast<int>(commands.size());
  for (const std::string& command : commands)
    REQUIRE(process_->write(command).ok());
  REQUIRE(wait_for([&](const Wire&) { return commands_done_ == wanted; }));
}

const Wire& PeerPlane::wire() {
  for (;;) {
    const auto line = process_->read_line(std::chrono::milliseconds(0));
    if (!line.ok()) return wire_;
    read_event(*line);
  }
}

bool PeerPlane::wait_for(const std::function<bool(const Wire&)>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds(wire_)) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() < 0) return false;
    const auto line =
        process_->read_line(std::chrono::duration_cast<std::chrono::milliseconds>(left));
    INFO(line.status().ToString() << " " << process_->captured_errors());
    if (absl::IsDeadlineExceeded(line.status())) continue;
    REQUIRE(line.ok());  // An error: the peer's process has ended.
    read_event(*line);
  }
  return true;
}

void PeerPlane::read_event(const std::string& line) {
  const auto event = nlohmann::json::parse(line);
  const std::string name = event["event"];
  if (name == "snapshot_set" || name == "loads_done") {
    ++commands_done_;
  } else if (name == "stream_opened") {
    ++wire_.streams_opened;
    ++wire_.streams_open;
  } else if (name == "stream_closed") {
    --wire_.streams_open;
  } else if (name == "load_stream_opened") {
    ++wire_.load_streams_opened;
    ++wire_.load_streams_open;
  } else if (name == "load_stream_closed") {
    --wire_.load_streams_open;
  } else if (name == "load_request") {
    wire_.load_requests.push_back(load_request_of(event));
  } else {
    wire_.messages.push_back(message_of(event));
  }
}

}  // namespace signalbox::test
