// SPDX-License-Identifier: Apache-2.0
// The precompiled header of tests that use gRPC.
#pragma once

#include <atomic>
#include <thread>

#include "conf/pch/grpc.hpp"
#include <catch2/catch.hpp>
