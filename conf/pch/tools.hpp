// SPDX-License-Identifier: Apache-2.0
// Precompiled for the command: gRPC and JSON.
#pragma once

#include <iostream>

#include "conf/pch/grpc.hpp"
#include <nlohmann/json.hpp>
