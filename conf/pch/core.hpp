// SPDX-License-Identifier: Apache-2.0
// Precompiled for all of our sources: the standard library and abseil.
//
// No header of ours is precompiled: ccache may bring a precompiled header back after the times of
// our files have changed, and GCC's #pragma once goes by these.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
