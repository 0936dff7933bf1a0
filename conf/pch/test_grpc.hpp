// SPDX-License-Identifier: Apache-2.0
// Precompiled for tests that talk to gRPC.
#pragma once

#include <atomic>
#include <thread>

#include "conf/pch/grpc.hpp"
#include <catch2/catch.hpp>
