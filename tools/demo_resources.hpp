// SPDX-License-Identifier: Apache-2.0
//
// The demo's resources, built into the command.
//
//   conf/demo/resources.yaml ─▶ CMake ─▶ [demo_resources] ─▶ demo_topology

#pragma once

namespace signalbox::tools {

/// The text of conf/demo/resources.yaml.
const char* demo_resources();

}  // namespace signalbox::tools
