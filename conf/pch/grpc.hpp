// SPDX-License-Identifier: Apache-2.0
// Precompiled for what talks to gRPC.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "conf/pch/core.hpp"
#include <grpcpp/grpcpp.h>
