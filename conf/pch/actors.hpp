// SPDX-License-Identifier: Apache-2.0
// The precompiled header of actors/ and of the tests' fakes: conf/pch/core.hpp, and CAF.
#pragma once

#include "conf/pch/core.hpp"
#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
