// SPDX-License-Identifier: Apache-2.0
//
// process — Prometheus' standard metrics of a process: CPU time, memory, descriptors, start time.
//
//   actors/io/process_facts ─▶ ProcessFacts ─▶ [process_families()] ─▶ exporter
//
// Pure. A metric is left out if the system did not provide its facts.

#pragma once

#include <vector>

#include "messages/process_facts.hpp"
#include "metrics/series.hpp"

namespace signalbox::metrics {

/// The metrics that can be computed from the facts.
std::vector<Family> process_families(const ProcessFacts& facts);

}  // namespace signalbox::metrics
