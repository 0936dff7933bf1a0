// SPDX-License-Identifier: Apache-2.0
// Precompiled for the shells: CAF beside the core.
#pragma once

#include "conf/pch/core.hpp"

#include "actors/protocol/registration.hpp"
