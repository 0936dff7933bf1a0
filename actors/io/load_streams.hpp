// SPDX-License-Identifier: Apache-2.0
//
// LoadStreams — asks endpoints for their load, on their own connections (gRFC A51).
//
//   policy actor ─▶ watch(connection, period, listener) ─▶ Watch (hold it while reports are wanted)
//                                    listener ◀─ reports, on a thread of the implementation
//
// Invariants
//   S1  A connection has at most one stream that is not cancelled, whichever policies of the
//       runtime watch it.
//   S2  After ~Watch its LoadListener gets no report. ~Watch may wait for a LoadListener that is
//       running, so a LoadListener takes no lock.
//   S3  A Watch keeps neither its connection nor the LoadStreams alive, and may outlive both.

#pragma once

#include <memory>

#include "messages/ids.hpp"
#include "messages/load_listener.hpp"
#include "messages/pick.hpp"

namespace signalbox::actors {

class LoadStreams {
 public:
  /// One LoadListener's wish for the load reports of one endpoint.
  class Watch {
   public:
    Watch() = default;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    virtual ~Watch() = default;
  };

  virtual ~LoadStreams() = default;

  /// Passes the load reports of the endpoint of `connection` to `listener` until the Watch is
  /// destroyed. `period`: how often the endpoint should report; 0: as often as the endpoint allows.
  /// Precondition: `connection` and `listener` are not null. Thread-safe, never blocks.
  virtual std::unique_ptr<Watch> watch(const ConnectionPtr& connection,
                                       Duration period,
                                       LoadListenerPtr listener) = 0;
};

}  // namespace signalbox::actors
