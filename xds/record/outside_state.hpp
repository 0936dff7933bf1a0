// SPDX-License-Identifier: Apache-2.0
//
// OutsideState — the state of the world outside a runtime after all events of a recording so far. A
// new segment begins with it, so that the older segments can be removed.
//
//   OutsideEvent ─▶ apply() ─▶ [OutsideState] ─▶ events() ─▶ the beginning of a segment
//
// It keeps the newest answer of each subject: the resources of each control plane, the attempts and
// connections that subchannels hold, the last failure of each peer, names, probes. The responses
// of LDS and CDS have all resources of their type; those of RDS and EDS may have some, so the
// newest resource of each name is kept.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/recording.hpp"
#include "messages/resource.hpp"

namespace signalbox::xds {

class OutsideState {
 public:
  /// Failures of more peers than this are forgotten.
  static constexpr std::size_t kMostFailures = 20'000;
  /// The most names, and the most probes, of which the state has the newest answer.
  static constexpr std::size_t kMostAnswers = 20'000;

  void apply(const OutsideEvent& event);

  /// Events that lead to this state from nothing.
  std::vector<OutsideEvent> events() const;

 private:
  /// The resources of one type, as the server's newest responses have them.
  struct Resources {
    std::string version;
    std::string nonce;
    std::map<std::string, std::string> by_name;  ///< Serialised Any messages.
  };

  struct Stream {
    std::uint64_t number = 0;
    bool is_open = false;
    /// In the order in which a client asks for them: it takes no response of a type before that.
    std::map<ResourceType, Resources> by_type;
    std::optional<absl::Status> ended;
  };

  struct Attempt {
    std::string peer;
    bool is_made = false;
  };

  void on(const TargetOpened& event) { targets_.insert(event.target); }

  void on(const TargetClosed& event) { targets_.erase(event.target); }

  void on(const TargetWoken&) {}

  void on(const PolicyAsked&) {}

  void on(const StreamBegan& event);

  void on(const StreamOpened& event) { streams_[event.server].is_open = true; }

  void on(const StreamReceived& event);

  void on(const StreamClosed& event) { streams_[event.server].ended = event.why; }

  void on(const ConnectBegan& event) { attempts_[event.attempt] = {event.peer}; }

  void on(const ConnectMade& event);
  void on(const ConnectEnded& event);

  void on(const ConnectLeft& event) { attempts_.erase(event.attempt); }

  void on(const NameAnswered& event);
  void on(const ProbeAnswered& event);

  void on(const EventsDropped&) {}

  std::set<std::string> targets_;
  std::map<ServerId, Stream> streams_;
  std::map<std::uint64_t, Attempt> attempts_;
  std::map<std::string, absl::Status> failures_;  ///< Keys: peers without a connection.
  std::map<DnsName, NameAnswered> names_;
  std::map<std::string, ProbeAnswered> probes_;
};

}  // namespace signalbox::xds
