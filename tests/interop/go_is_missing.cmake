# SPDX-License-Identifier: Apache-2.0
# Replaces the interop tests if Go was not installed when the build was configured.
set(reason "there is no `go` on PATH (Debian's package is golang-go); install it and configure again")
if("$ENV{CI}" STREQUAL "true")
  message(FATAL_ERROR "interop: ${reason}")
endif()
message("interop: SKIPPED, ${reason}")
