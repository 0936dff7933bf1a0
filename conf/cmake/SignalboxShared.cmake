# SPDX-License-Identifier: Apache-2.0
# libsignalbox.so: one shared library, linked of the folders' archives (decision 177).
#
#   archives, headers ─▶ conf/shared/exports.py ─▶ signalbox.map ─▶ the linker: exports these symbols only
#
# -DBUILD_SHARED_LIBS=ON builds it by default, and installs it instead of the archives. Test builds
# build it too, so that tests/package can test it. The `signalbox` command and the tests link the
# archives, because they use symbols that the shared library does not export.
#
# signalbox_archives: the archives, in the order of linking. SIGNALBOX_SHARED: whether the target
# signalbox_shared exists. SignalboxInstall reads both.
set(signalbox_archives admin_services admin_proto channel actors io metrics lb xds xds_proto messages)
list(TRANSFORM signalbox_archives PREPEND signalbox_)
set(SIGNALBOX_SHARED OFF)
if(SIGNALBOX_SANITIZER OR NOT SIGNALBOX_INSTALL) # A sanitizer leaves symbols undefined.
  return()
endif()
find_package(Python3 3.10 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  if(BUILD_SHARED_LIBS)
    message(FATAL_ERROR "BUILD_SHARED_LIBS=ON needs Python 3.10 or newer: conf/shared/exports.py finds the symbols to export")
  endif()
  return()
endif()
set(SIGNALBOX_SHARED ON)

set(exports "${PROJECT_SOURCE_DIR}/conf/shared/exports.py")
set(map "${PROJECT_BINARY_DIR}/shared/signalbox.map")
set(files)
foreach(archive IN LISTS signalbox_archives)
  list(APPEND files "$<TARGET_FILE:${archive}>")
endforeach()
add_custom_command(OUTPUT "${map}"
  COMMAND Python3::Interpreter -B "${exports}" map "${PROJECT_SOURCE_DIR}" "${map}" ${files}
  DEPENDS "${exports}" ${signalbox_archives}
  COMMENT "Listing the symbols of libsignalbox.so"
  VERBATIM)

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/shared/signalbox.cpp" CONTENT "// A library has a source.\n")
add_library(signalbox_shared SHARED "${PROJECT_BINARY_DIR}/shared/signalbox.cpp" "${map}")
if(NOT BUILD_SHARED_LIBS AND NOT SIGNALBOX_BUILD_TESTS)
  set_target_properties(signalbox_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
# Before 1.0 a minor version may change anything, so the soname has it.
set_target_properties(signalbox_shared PROPERTIES
  OUTPUT_NAME signalbox
  EXPORT_NAME channel
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
  VERSION "${PROJECT_VERSION}"
  SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
  LINK_DEPENDS "${map}")
list(JOIN signalbox_archives "," override)
set_target_properties(signalbox_shared PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${override}")
target_compile_features(signalbox_shared PUBLIC cxx_std_20)
target_link_libraries(signalbox_shared
  PRIVATE ${signalbox_archives}
  # The libraries that the public headers include.
  PUBLIC gRPC::grpc++ prometheus-cpp::core absl::status absl::statusor absl::strings absl::function_ref
    absl::flat_hash_map absl::inlined_vector absl::hash Threads::Threads)
# -Bsymbolic-functions: a call within the library needs no look-up, as in the archives.
target_link_options(signalbox_shared PRIVATE "-Wl,--version-script=${map}" -Wl,-Bsymbolic-functions -Wl,-z,defs)

# find_package(signalbox) has the target signalbox::admin_services in each kind of installation.
add_library(signalbox_shared_admin_services INTERFACE)
set_target_properties(signalbox_shared_admin_services PROPERTIES EXPORT_NAME admin_services)
target_link_libraries(signalbox_shared_admin_services INTERFACE signalbox_shared)
