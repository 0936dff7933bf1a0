// SPDX-License-Identifier: Apache-2.0
//
// NoRights — during its lifetime, a thread of root opens files with the rights of user 65534.
// Without it, a test that runs as root could read files of mode 0. A thread's rights on files are
// its own, so other threads keep theirs. Without root, nothing changes.

#pragma once

#include <sys/fsuid.h>
#include <unistd.h>

namespace signalbox::test {

class NoRights {
 public:
  NoRights() {
    if (::geteuid() == 0) ::setfsuid(kNobody);
  }

  ~NoRights() { ::setfsuid(::geteuid()); }

  NoRights(const NoRights&) = delete;
  NoRights& operator=(const NoRights&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
};

}  // namespace signalbox::test
