# SPDX-License-Identifier: Apache-2.0
# What every target of ours shares: warnings, ccache, a fast linker, sanitizers; and the two ways to declare a target.
include(CheckLinkerFlag)

find_program(SIGNALBOX_CCACHE ccache)
if(SIGNALBOX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SIGNALBOX_CCACHE}")
endif()

foreach(linker mold lld)
  check_linker_flag(CXX "-fuse-ld=${linker}" SIGNALBOX_HAS_${linker})
  if(SIGNALBOX_HAS_${linker})
    # With what GNU ld does unasked: functions that are [[gnu::hot]] stand together (decision 82).
    add_link_options("-fuse-ld=${linker}" -Wl,-z,keep-text-section-prefix)
    break()
  endif()
endforeach()

# Full debug information takes half of the build time, and line tables are enough to read a backtrace. -Og compiles in
# nine tenths of the time of -O0, and its objects are half as large and run faster (decision 131).
string(REPLACE "-g" "-g1 -Og" CMAKE_CXX_FLAGS_DEBUG "${CMAKE_CXX_FLAGS_DEBUG}")

# What is built knows its sources by their place in the project, wherever it was built.
add_compile_options("-fmacro-prefix-map=${CMAKE_BINARY_DIR}/=build/" "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")

if(SIGNALBOX_SANITIZER)
  add_compile_options(-fsanitize=${SIGNALBOX_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SIGNALBOX_SANITIZER})
endif()

# GCC starts to collect garbage at 100 MB, which it has from a precompiled header; no source of ours needs more than 1 GB.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>")

# Static libraries are compiled for shared ones too (-fPIC), but none of our functions is ever replaced by another library's.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>")

# What Debian does for packages (dpkg-buildflags with hardening=+all), and what the processor adds. The benchmarks measure a
# build without it. libstdc++'s assertions are not among them: they check what the pick path reads.
option(SIGNALBOX_HARDENING "Harden as Debian's packages are: stack, heap functions, relocations" OFF)
if(SIGNALBOX_HARDENING)
  include(CheckCXXCompilerFlag)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
  add_compile_options(-fstack-protector-strong -Wformat -Werror=format-security)
  foreach(flag -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "SIGNALBOX_HAS_${flag}" has_flag)
    check_cxx_compiler_flag("${flag}" ${has_flag})
    if(${has_flag})
      add_compile_options("${flag}")
    endif()
  endforeach()
  # The checked functions need an optimising compiler.
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()

add_library(signalbox_warnings INTERFACE)
add_library(signalbox::warnings ALIAS signalbox_warnings)
target_compile_options(signalbox_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wno-missing-field-initializers -Werror)

# signalbox_library(NAME [PCH name] SOURCES ... PUBLIC ... PRIVATE ...): the library signalbox::NAME, one per folder. PCH: see
# SignalboxPrecompiled; by default core.
function(signalbox_library name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(NOT ARG_PCH)
    set(ARG_PCH core)
  endif()
  add_library(signalbox_${name} STATIC ${ARG_SOURCES})
  signalbox_use_precompiled(signalbox_${name} ${ARG_PCH})
  add_library(signalbox::${name} ALIAS signalbox_${name})
  set_target_properties(signalbox_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(signalbox_${name} PUBLIC cxx_std_20)
  target_include_directories(signalbox_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(signalbox_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:signalbox::warnings>)
endfunction()

# What `./run check` builds: a test adds itself by its label.
add_custom_target(signalbox_unit_spec)

# signalbox_test(NAME LABEL label [PCH name] SOURCES ... LIBS ...): one Catch2 program; its label is the kind of test. PCH: test
# or test_grpc, which those of e2e, interop and stress have by default.
function(signalbox_test name)
  cmake_parse_arguments(ARG "" "LABEL;PCH;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(SIGNALBOX_SANITIZER)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  if(NOT ARG_PCH)
    set(ARG_PCH test)
    if(ARG_LABEL MATCHES "^(e2e|interop|stress)$")
      set(ARG_PCH test_grpc)
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  signalbox_use_precompiled(${name} ${ARG_PCH})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} signalbox::test_main signalbox::warnings)
  if(ARG_LABEL MATCHES "^(unit|spec)$")
    add_dependencies(signalbox_unit_spec ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
