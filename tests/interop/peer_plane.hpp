// SPDX-License-Identifier: Apache-2.0
//
// The independent control plane of the interop tests: go-control-plane in a process of its own.
//
//   yaml ─▶ set() ─▶ [control_plane, Go] ◀─ ADS, LRS ─ Runtime
//            wire() ◀─ what went over its streams, in order
//
// PeerPlane reserves its port until its destructor runs. While the process does not run,
// connections to the port are refused. A restarted process gets the same port.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include <grpcpp/impl/codegen/channel_interface.h>

#include "tests/interop/peer_loads.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {

/// A DiscoveryRequest that the peer (the Go control plane) read, or a DiscoveryResponse that it
/// wrote.
struct WireMessage {
  struct Error {
    int code = 0;
    std::string message;
  };

  bool is_request = false;
  int stream = 0;
  std::string type_url, version, nonce;
  /// Of a request: the names asked for. Of a response: the names of its resources.
  std::set<std::string> names;
  std::optional<Error> error;
  std::optional<PeerNode> node;
};

/// All messages that one process of the peer has received and sent.
struct Wire {
  int streams_opened = 0;
  int streams_open = 0;
  std::vector<WireMessage> messages;
  int load_streams_opened = 0;
  int load_streams_open = 0;
  std::vector<LoadRequest> load_requests;

  std::vector<WireMessage> requests(absl::string_view type_url) const;
  std::vector<WireMessage> responses(absl::string_view type_url) const;
  std::vector<WireMessage> nacks() const;
  /// Whether the newest request of this type is the ACK of the newest response, with this version.
  bool acked(absl::string_view type_url, absl::string_view version) const;
  /// Whether acked(type, version) is true for each type in kAllTypes.
  bool acked(absl::string_view version) const;
};

/// One line for each message.
std::string to_string(const Wire& wire);

extern const std::vector<absl::string_view> kAllTypes;

class PeerPlane {
 public:
  /// The resources that all clients get. `version` is the version of every type, except of the
  /// types (by type URL) that `versions` has.
  struct Snapshot {
    std::string version;
    std::string yaml;
    std::map<std::string, std::string> versions;
  };

  PeerPlane();
  ~PeerPlane();
  PeerPlane(const PeerPlane&) = delete;
  PeerPlane& operator=(const PeerPlane&) = delete;

  const std::string& address() const { return address_; }

  /// Returns when the process listens. It has no snapshot yet, and wire() is empty.
  void start();
  void kill();  ///< Sends SIGKILL; returns when the process has ended.

  /// Returns when the snapshot is set. Clients may not have received it yet.
  void set(const std::string& version,
           const std::string& yaml,
           const std::map<std::string, std::string>& versions = {});
  /// Sets the snapshots in order, without a pause. Returns when all have been set.
  void set_all(const std::vector<Snapshot>& snapshots);

  /// Sets the LoadStatsResponse. Returns when it was sent on the open streams of load reports.
  void answer_loads(const LoadAnswer& answer);

  /// Ends the open streams of load reports at once, with an error.
  void cut_loads() { cut_loads(false); }

  /// Ends the open streams of load reports, each when a report with calls was read.
  void cut_loads_at_report() { cut_loads(true); }

  /// All messages so far.
  const Wire& wire();
  bool wait_for(const std::function<bool(const Wire&)>& holds);

 private:
  void read_event(const std::string& line);
  void cut_loads(bool at_report);
  void order(const std::vector<std::string>& commands);

  std::string address_;
  int reservation_ = -1;
  std::optional<tools::ChildProcess> process_;
  int commands_done_ = 0;
  Wire wire_;
};

}  // namespace signalbox::test
