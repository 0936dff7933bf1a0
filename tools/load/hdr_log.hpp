// SPDX-License-Identifier: Apache-2.0
//
// hdr_log — the latencies of a run as a log of HdrHistogram: --hdr FILE.
//
//   LoadReport ─▶ [hdr_log] ─▶ a line for each second and side; readers: HdrHistogram of Java,
//                              PyPI's hdrhistogram, HdrHistogramVisualizer
//
// A line has the latencies, from due, of the calls that were due in its second and ended OK. Its
// tag is the name of the side. Values are nanoseconds; the column Interval_Max is in milliseconds,
// as usual in such logs. The sum of a side's lines is LoadSide::from_due, bucket by bucket.

#pragma once

#include <string>

#include "tools/load/histogram.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

/// HdrHistogram's V2 encoding, compressed by zlib, in base64.
std::string encode_hdr(const LatencyHistogram& histogram);

std::string hdr_log(const LoadReport& report);

}  // namespace signalbox::tools
