# SPDX-License-Identifier: Apache-2.0
# The series of the libraries that signalbox compiles with. Signalbox uses private parts of these
# libraries, their error texts, or functions that a newer series has changed. docs/versions.md lists
# the uses and the changes. actors/io/grpc_access.hpp and actors/protocol/caf_version.hpp check the
# same numbers, and tests/tidy/versions_test.py compares them.
set(SIGNALBOX_SERIES_gRPC 1.51)
set(SIGNALBOX_SERIES_CAF 0.17)
set(SIGNALBOX_SERIES_Protobuf 3.21)

# signalbox_wrong_series(NAME FOUND RESULT): sets RESULT to an error text if FOUND, the version of
# the library NAME, is of another series than signalbox needs; else to the empty text.
function(signalbox_wrong_series name found result)
  set(series "${SIGNALBOX_SERIES_${name}}")
  string(REPLACE "." "\\." pattern "${series}")
  set(wrong "")
  if(NOT "${found}" MATCHES "^${pattern}(\\.|$)")
    if("${found}" STREQUAL "")
      set(found "a version without a number")
    endif()
    set(wrong "signalbox needs ${name} ${series}, found ${found}: docs/versions.md says why, and which files "
      "another version would change")
    list(JOIN wrong "" wrong)
  endif()
  set(${result} "${wrong}" PARENT_SCOPE)
endfunction()
