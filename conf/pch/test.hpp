// SPDX-License-Identifier: Apache-2.0
// Precompiled for tests.
#pragma once

#include "conf/pch/core.hpp"
#include <catch2/catch.hpp>
