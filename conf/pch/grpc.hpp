// SPDX-License-Identifier: Apache-2.0
// The precompiled header of the sources that use gRPC.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "conf/pch/core.hpp"
#include <grpcpp/grpcpp.h>
