// SPDX-License-Identifier: Apache-2.0
//
// all_parse_options — parse options that also read what the default options leave unread: system
// root certificates (A82), addresses of proxies (A86), and auto_host_rewrite (A81).

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
