// SPDX-License-Identifier: Apache-2.0
// The precompiled header of actors/io/, channel/, the engine of loads, and programs of the tests:
// conf/pch/core.hpp, and gRPC.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "conf/pch/core.hpp"
#include <grpcpp/grpcpp.h>
