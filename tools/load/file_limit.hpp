// SPDX-License-Identifier: Apache-2.0
//
// The limit of this process's open files (RLIMIT_NOFILE), of which each connection takes one or
// two. It is often 1024, although a process may have many more.

#pragma once

#include <sys/resource.h>

namespace signalbox::tools {

/// Raises the soft limit to the hard one. Returns the former soft limit.
inline rlim_t raise_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return RLIM_INFINITY;
  const rlim_t former = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return former;
}

/// Sets the soft limit, to at most the hard one.
inline void set_file_limit(rlim_t limit) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = limit < files.rlim_max ? limit : files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace signalbox::tools
