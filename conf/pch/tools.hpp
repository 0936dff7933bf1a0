// SPDX-License-Identifier: Apache-2.0
// The precompiled header of the `signalbox` command (tools/), except the engine of loads: gRPC and
// JSON.
#pragma once

#include <iostream>

#include "conf/pch/grpc.hpp"
#include <nlohmann/json.hpp>
