// SPDX-License-Identifier: Apache-2.0
//
// NoRights — this thread may read no file but those that everybody may, as long as this lives.
//
// A test that runs as root could read files of mode 0. The rights of a thread on files are its own:
// other threads keep theirs.

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
