// SPDX-License-Identifier: Apache-2.0
//
// OutsideState — the state of the world outside a runtime after all events of a recording so far. A
// new segment begins with it, so that the older segments can be removed.
//
//   OutsideEvent ─▶ apply() ─▶ [OutsideState] ─▶ events() ─▶ the beginning of a segment
//
// It keeps the newest answer of each subject: the resources of each control plane, the attempts and
// connections that subchannels hold, the last failure of each peer, names, probes. It also keeps
// which targets the program has woken, and what picks have asked of policies: some policies connect
// an endpoint only then. An ask may be older than the endpoint's last connection, so it means
// nothing without an attempt or a failure.
//
// Resources. A response is accepted or refused as a whole (ACK, NACK), and a client uses the valid
// resources of a refused response, too. So the state has the accepted resources and, after them,
// those of refused responses that were not accepted since. A client that gets both has in force
// what the recorded one had, with one exception: of several refused versions of a resource, only
// the newest is kept.
//   - The newest resource of each name is kept. The responses of RDS and EDS may have some
//     resources of their type. Those of LDS and CDS have all, but a client may use a resource
//     after they lack it. So their newest response follows once more, with the resources that it
//     had.
//   - A resource is dropped when a request does not name it any more. A type is dropped when a
//     stream has its first response and no request for the type. A server is dropped when the
//     client leaves it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/recording.hpp"
#include "messages/resource.hpp"
#include "xds/record/ads_messages.hpp"

namespace signalbox::xds {

class OutsideState {
 public:
  /// Failures of more peers than this are forgotten.
  static constexpr std::size_t kMostFailures = 20'000;
  /// The most names, probes and asks, of each of which the state has the newest.
  static constexpr std::size_t kMostAnswers = 20'000;

  void apply(const OutsideEvent& event);

  /// Events that lead to this state from nothing.
  std::vector<OutsideEvent> events() const;

 private:
  /// A response, and whether the client has refused it.
  struct Reply {
    SeenResponse response;
    bool is_refused = false;

    bool operator==(const Reply&) const = default;
  };

  /// Which wanted resources a response had.
  struct Answered {
    std::set<std::string> names;
    bool is_refused = false;
  };

  /// The resources of one type, as the server's responses have them. The version and the nonce are
  /// those of the newest response.
  struct Resources {
    std::optional<std::set<std::string>> wanted;  ///< nullopt: unknown.
    std::optional<SeenResponse> accepted;
    std::optional<SeenResponse> refused;     ///< Resources that were not accepted since.
    std::optional<SeenResponse> unanswered;  ///< The newest; the client has not answered it yet.
    /// LDS and CDS: the newest response that was answered.
    std::optional<Answered> newest;

    bool wants(const std::string& name) const;
    void keep_wanted();
    void settle(bool is_refused);
    std::vector<Reply> replies() const;
  };

  struct Stream {
    std::uint64_t number = 0;
    bool is_open = false;
    bool is_answered = false;  ///< A response has come on this stream.
    bool has_answered = true;  ///< The client has answered the newest response.
    /// Of the newest response; nullopt: none came, or it is no message that signalbox can use.
    std::optional<std::string> nonce;
    std::set<ResourceType> asked;
    /// In the order in which a client asks for them: it takes no response of a type before that.
    std::map<ResourceType, Resources> by_type;
    std::optional<absl::Status> ended;

    bool has_resources() const;
  };

  struct Attempt {
    std::string peer;
    std::uint64_t holder = 0;
    bool is_made = false;
  };

  using Attempts = std::map<std::uint64_t, Attempt>;

  void on(const TargetOpened& event) { targets_.try_emplace(event.target); }

  void on(const TargetClosed& event);
  void on(const TargetWoken& event);
  void on(const PolicyAsked& event);

  void on(const StreamBegan& event);

  void on(const StreamOpened& event) { streams_[event.server].is_open = true; }

  void on(const StreamAsked& event);
  void on(const StreamLeft& event);
  void on(const StreamReceived& event);

  void on(const StreamClosed& event) { streams_[event.server].ended = event.why; }

  void on(const ConnectBegan& event) { attempts_[event.attempt] = {event.peer, event.holder}; }

  void on(const ConnectMade& event);
  void on(const ConnectEnded& event);
  void on(const ConnectLeft& event);
  void forget(Attempts::iterator attempt);

  void on(const NameAnswered& event);
  void on(const ProbeAnswered& event);

  void on(const EventsDropped& event);

  void add_stream(ServerId server, const Stream& stream, std::vector<OutsideEvent>& all) const;

  std::map<std::string, bool> targets_;  ///< Whether the program has woken them.
  /// By target, policy and address.
  std::map<std::tuple<std::string, PolicyPath, Address>, PolicyAsked> asks_;
  std::map<ServerId, Stream> streams_;
  Attempts attempts_;
  std::map<std::uint64_t, std::size_t> connections_;  ///< How many each holder has; none is 0.
  std::map<std::string, absl::Status> failures_;      ///< Keys: peers without a connection.
  std::map<DnsName, NameAnswered> names_;
  std::map<std::string, ProbeAnswered> probes_;
};

}  // namespace signalbox::xds
