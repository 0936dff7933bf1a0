// SPDX-License-Identifier: Apache-2.0
//
// all_parse_options — parse options with every extension that the parser of xDS resources knows,
// even those that no runtime has.

#pragma once

#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

inline ParseOptions all_parse_options() {
  ParseOptions options;
  options.system_roots = true;
  options.http_connect = true;
  options.authority_rewrite = true;
  return options;
}

}  // namespace signalbox::xds
