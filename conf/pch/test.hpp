// SPDX-License-Identifier: Apache-2.0
// The precompiled header of tests.
#pragma once

#include "conf/pch/core.hpp"
#include <catch2/catch.hpp>
