// SPDX-License-Identifier: Apache-2.0
//
// A process of one side: a channel (for HTTP a Router), an engine, and the lines to and from its
// parent.
//
//   parent ─ side_plan lines ─▶ [run_load_side] ─┬ Runtime's channel or router, or gRPC's channel
//                                                └ engine ─▶ Collector ─▶ LoadSide ─▶ a file

#pragma once

#include <sys/types.h>

namespace signalbox::tools {

/// Runs a process of one side, and returns its exit status. The process ends when `parent` ends,
/// or when stdin ends.
int run_load_side(pid_t parent);

}  // namespace signalbox::tools
