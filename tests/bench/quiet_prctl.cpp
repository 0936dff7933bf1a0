// SPDX-License-Identifier: Apache-2.0
//
// prctl() that keeps errno when memory cannot be named, in place of the system's.
//
// The abseil of Debian 13 names the memory it takes (PR_SET_VMA), and some kernels refuse that with
// EINVAL. gRPC 1.51 reads the errno of a connect() only after it has taken such memory. It then
// fails a connection that has begun, with "Invalid argument", and the peer fails a call.

#include <cerrno>
#include <cstdarg>

#include <linux/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// NOLINTNEXTLINE(cert-dcl50-cpp): the system's declaration.
extern "C" int prctl(int option, ...) {
  long arguments[4];
  va_list given;
  va_start(given, option);
  for (long& argument : arguments)
    argument = va_arg(given, long);
  va_end(given);
  const int before = errno;
  const auto result =
      ::syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
  if (option == PR_SET_VMA) errno = before;
  return static_cast<int>(result);
}
