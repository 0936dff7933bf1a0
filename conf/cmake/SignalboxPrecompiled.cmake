# SPDX-License-Identifier: Apache-2.0
# Precompiled headers, one for each of conf/pch/*.hpp, and sources that are compiled together
# (decisions 145 and 156). Each saves a third of the time of a full build.
#
# If SIGNALBOX_FAST_BUILD is OFF, there are neither precompiled headers nor joined sources, so a
# source does not compile if it relies on their includes. `./run nightly includes` builds the
# release preset in this way. `./run check` compiles one source of each folder of the product in
# this way (tests/tidy/CMakeLists.txt). If only SIGNALBOX_JOIN_SOURCES is OFF, a changed source is
# compiled alone, which is faster when one source changes again and again.
option(SIGNALBOX_FAST_BUILD "Precompile headers" ON)
option(SIGNALBOX_JOIN_SOURCES "Compile several sources together, with SIGNALBOX_FAST_BUILD" ON)

# A precompiled header fits all targets only if all targets are compiled with the same options.
add_compile_options(-pthread)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE "${CMAKE_CXX_COMPILE_OPTIONS_PIC}")

# Two checkouts share the objects in ccache, because it makes their paths relative (decision 143).
# ccache caches a source with a precompiled header only under these two assumptions: no source uses
# __TIME__, and the macros that a source defines do not change its precompiled header.
if(SIGNALBOX_FAST_BUILD AND SIGNALBOX_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL SIGNALBOX_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_NOHASHDIR=1"
    "CCACHE_SLOPPINESS=pch_defines,time_macros;${SIGNALBOX_CCACHE}")
endif()

# signalbox_precompiled(NAME LIBRARY...): conf/pch/NAME.hpp, which includes headers of these
# libraries.
function(signalbox_precompiled name)
  if(NOT SIGNALBOX_FAST_BUILD)
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/pch/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// A target with a precompiled header has a source.\n")
  add_library(signalbox_pch_${name} OBJECT EXCLUDE_FROM_ALL "${source}")
  target_compile_features(signalbox_pch_${name} PRIVATE cxx_std_20)
  target_include_directories(signalbox_pch_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(signalbox_pch_${name} PRIVATE ${ARGN})
  target_precompile_headers(signalbox_pch_${name} PRIVATE <conf/pch/${name}.hpp>)
endfunction()

# signalbox_use_precompiled(TARGET NAME): compiles TARGET with the precompiled conf/pch/NAME.hpp.
function(signalbox_use_precompiled target name)
  if(SIGNALBOX_FAST_BUILD)
    target_precompile_headers(${target} REUSE_FROM signalbox_pch_${name})
  endif()
endfunction()

# signalbox_join_sources(TARGET [TEST]): the compiler reads several sources of the target together,
# because most of them use the same headers and templates. In a release build these are 20 sources,
# and in other builds and in tests five: a changed source compiles the others of its batch again.
# For clang-tidy, tests/tidy/commands.py finds the sources of a batch.
function(signalbox_join_sources target)
  if(SIGNALBOX_FAST_BUILD AND SIGNALBOX_JOIN_SOURCES)
    set(batch 5)
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ARGN STREQUAL "TEST")
      set(batch 20)
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    # CMake generates a source that includes the .cpp files. GCC treats each as a header, and would
    # warn of a class in it that has a member with a type of an unnamed namespace.
    target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>")
  endif()
endfunction()

# signalbox_compile_alone(SOURCE...): sources of the current folder that cannot be joined, because
# another source has the same names in its unnamed namespace. A test has a namespace with the name
# of its file instead.
function(signalbox_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
