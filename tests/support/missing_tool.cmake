# SPDX-License-Identifier: Apache-2.0
# Stands for a test if its tool was not found when the build was configured. Usage:
#
#     include("${PROJECT_SOURCE_DIR}/tests/support/missing_tool.cmake")
#     signalbox_missing_tool(interop_needs_go interop "there is no `go` on PATH")
#
# CTest reports the test as skipped. With CI=true the test fails. Its message then must not contain
# the word SKIPPED, because CTest reports this test as skipped whenever it prints the word.
if(CMAKE_SCRIPT_MODE_FILE)
  if("$ENV{CI}" STREQUAL "true")
    message(FATAL_ERROR "${REASON}; install it and configure again")
  endif()
  message("SKIPPED, ${REASON}; install it and configure again")
  return()
endif()

set(SIGNALBOX_MISSING_TOOL_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(signalbox_missing_tool name label reason)
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" "-DREASON=${reason}" -P "${SIGNALBOX_MISSING_TOOL_SCRIPT}")
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_REGULAR_EXPRESSION "SKIPPED")
endfunction()
