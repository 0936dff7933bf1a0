// SPDX-License-Identifier: Apache-2.0
//
// recording_seams — the interfaces to the outside, which note in a Recorder what comes from there.
//
//   actors ─▶ [recording seam] ─▶ the real transport, connector, prober, look-up
//          ◀──────┬──────────────
//                 └▶ Recorder::note
//
// Each keeps the promises of its interface, because it passes every call and every callback on, on
// the same thread. An event is noted before its callback runs. Of a request to a control plane,
// only the wanted names and the answer to the last response are noted.

#pragma once

#include <memory>
#include <string>

#include "actors/ask_relay.hpp"
#include "actors/environment.hpp"
#include "actors/io/connector.hpp"
#include "actors/io/health_prober.hpp"
#include "actors/record/recorder.hpp"

namespace signalbox::actors {

/// Names a peer in recordings, by its address and the target's authority: "10.0.0.1:80 for orders",
/// with TLS "10.0.0.1:80 as orders".
std::string peer_text(const Peer& peer);

/// The peer that peer_text() has named, without its TLS.
Peer named_peer(const std::string& text);

/// Names a probe in recordings: the peer, its cluster and the check.
std::string probe_text(const HealthProber::Target& target, const HealthCheck& check);

/// Puts recording seams before all that the environment has from outside, and sets its `recorder`.
void record_outside(const std::shared_ptr<Recorder>& recorder, Environment& environment);

}  // namespace signalbox::actors
