// SPDX-License-Identifier: Apache-2.0
//
// The resource seeds (tests/support/resource_seeds) as messages: where fuzzing of resources begins.

#pragma once

#include <memory>

#include <google/protobuf/message.h>

#include "messages/resource.hpp"
#include "tests/fuzz/proto_mutator.hpp"

namespace signalbox::fuzz {

/// An empty message of the resource's type.
const ::google::protobuf::Message& resource_prototype(ResourceType type);

/// All seeds, and for each resource type a response with all seeds of that type.
const Donors& seed_donors();

}  // namespace signalbox::fuzz
