// SPDX-License-Identifier: Apache-2.0
//
// The process of one side: a channel, an engine, and the lines to and from its parent.
//
//   parent ─ side_plan lines ─▶ [run_load_side] ─┬ Runtime::channel, or gRPC's own xds:/// channel
//                                                └ engine ─▶ Collector ─▶ LoadSide ─▶ a file

#pragma once

#include <sys/types.h>

namespace signalbox::tools {

/// Runs the process of one side, and returns its exit status. The process ends when `parent` ends,
/// or when stdin ends.
int run_load_side(pid_t parent);

}  // namespace signalbox::tools
