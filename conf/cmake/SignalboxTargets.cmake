# SPDX-License-Identifier: Apache-2.0
# Settings of all targets of signalbox, such as warnings and the linker, and the functions that
# declare libraries and tests.
include(CheckLinkerFlag)

find_program(SIGNALBOX_CCACHE ccache)
if(SIGNALBOX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SIGNALBOX_CCACHE}")
endif()

foreach(linker mold lld)
  check_linker_flag(CXX "-fuse-ld=${linker}" SIGNALBOX_HAS_${linker})
  if(SIGNALBOX_HAS_${linker})
    # GNU ld places [[gnu::hot]] functions together by default. The other linkers need the option
    # (decision 82).
    add_link_options("-fuse-ld=${linker}" -Wl,-z,keep-text-section-prefix)
    break()
  endif()
endforeach()

# Full debug information takes half of the build time, and line tables are enough to read a
# backtrace. -Og compiles in nine tenths of the time of -O0, and its objects are half as large and
# run faster (decision 131).
string(REPLACE "-g" "-g1 -Og" CMAKE_CXX_FLAGS_DEBUG "${CMAKE_CXX_FLAGS_DEBUG}")

# Binaries contain the paths of sources in the project, and so do not depend on the folder of the
# build. ccache makes these paths relative to the build folder.
file(RELATIVE_PATH to_sources "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${to_sources}/="
  "-ffile-prefix-map=${CMAKE_BINARY_DIR}/=build/")

if(SIGNALBOX_SANITIZER)
  add_compile_options(-fsanitize=${SIGNALBOX_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SIGNALBOX_SANITIZER})
endif()

# By default GCC collects garbage when its heap exceeds about 128 MB, and a precompiled header alone
# is about that large. The option raises this limit to 1 GB (its unit is KiB).
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>")

# Static libraries are compiled with -fPIC, so that shared libraries can contain them. The compiler
# would then not inline functions that another library could replace. No other library replaces a
# function of signalbox, so the option allows inlining.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>")

# The options of Debian's packages (dpkg-buildflags with hardening=+all), and protections of the
# processor. Benchmarks measure a build without these options. libstdc++'s assertions are left out,
# because they would add checks to each pick.
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
  # Debug builds do without _FORTIFY_SOURCE.
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()

add_library(signalbox_warnings INTERFACE)
add_library(signalbox::warnings ALIAS signalbox_warnings)
target_compile_options(signalbox_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wno-missing-field-initializers -Werror)
# With optimisation, GCC 14 says of hash tables of Debian 13's abseil that a slot may be read before
# it is written: abseil itself marks the place (ABSL_SWISSTABLE_IGNORE_UNINITIALIZED_RETURN).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(signalbox_warnings INTERFACE -Wno-maybe-uninitialized)
endif()

# signalbox_library(NAME [PCH name] SOURCES ... PUBLIC ... PRIVATE ...): the static library
# signalbox::NAME. PCH: the precompiled header conf/pch/PCH.hpp; by default core.
function(signalbox_library name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(NOT ARG_PCH)
    set(ARG_PCH core)
  endif()
  add_library(signalbox_${name} STATIC ${ARG_SOURCES})
  signalbox_use_precompiled(signalbox_${name} ${ARG_PCH})
  signalbox_join_sources(signalbox_${name})
  add_library(signalbox::${name} ALIAS signalbox_${name})
  set_target_properties(signalbox_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(signalbox_${name} PUBLIC cxx_std_20)
  target_include_directories(signalbox_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(signalbox_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:signalbox::warnings>)
endfunction()

# The unit and spec tests in C++, for `./run check`. signalbox_test adds each of them by its label.
add_custom_target(signalbox_unit_spec)

# signalbox_test(NAME LABEL label [PCH name] [TIMEOUT seconds] SOURCES ... LIBS ...): one Catch2
# program; its label is the kind of test. PCH is test or test_grpc. The default is test_grpc for
# e2e, interop and stress, and test for other labels. TIMEOUT is 300 by default; a build with a
# sanitizer has four times as long.
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
  signalbox_join_sources(${name} TEST)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} signalbox::test_main signalbox::warnings)
  if(ARG_LABEL MATCHES "^(unit|spec)$")
    add_dependencies(signalbox_unit_spec ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
