// SPDX-License-Identifier: Apache-2.0
// The precompiled header of libraries that do not need gRPC: the standard library and abseil. All
// other precompiled headers include it.
//
// It has none of signalbox's own headers. ccache may restore an old precompiled header after the
// modification times of our files have changed. GCC's #pragma once compares these times, and so
// would not recognise our headers in it and would include them twice.
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
