# SPDX-License-Identifier: Apache-2.0
# The files that `cmake --install` installs. All of them are relocatable:
#
#   bin/signalbox                       the command
#   lib/libsignalbox_*.a                the runtime's static libraries, not joined into one
#                                       (decision 19)
#   lib/libsignalbox.so*                with BUILD_SHARED_LIBS: one shared library instead of them
#                                       (decision 177)
#   lib/cmake/signalbox, lib/pkgconfig  for find_package(signalbox CONFIG) and pkg-config (--static)
#   include/signalbox-M.N/signalbox/    the public headers and the headers that they include: see
#                                       install_headers.cmake
#   share/doc/signalbox                 the documents, all files that they link to, and some
#                                       configurations from conf/
#
# Each file belongs to the component tools or dev. SignalboxPackages makes a package of each
# component. The component shared has what BUILD_SHARED_LIBS installs in place of archives. Without
# BUILD_SHARED_LIBS, only `--component shared` installs it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(signalbox_headers "${CMAKE_INSTALL_INCLUDEDIR}/signalbox-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(signalbox_package "${CMAKE_INSTALL_LIBDIR}/cmake/signalbox")

# --- libraries and the command ---
#
# The archives, the shared library and the command are three exports, so that each can be found
# without the dependencies of the others.

set(only_archives)
set(only_shared)
if(BUILD_SHARED_LIBS)
  set(only_archives EXCLUDE_FROM_ALL)
else()
  set(only_shared EXCLUDE_FROM_ALL)
endif()

target_include_directories(signalbox_channel INTERFACE "$<INSTALL_INTERFACE:${signalbox_headers}>")
install(TARGETS ${signalbox_archives} EXPORT signalboxChannelTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev ${only_archives})
install(EXPORT signalboxChannelTargets NAMESPACE signalbox:: DESTINATION "${signalbox_package}" COMPONENT dev ${only_archives})

if(SIGNALBOX_SHARED)
  target_include_directories(signalbox_shared INTERFACE "$<INSTALL_INTERFACE:${signalbox_headers}>")
  install(TARGETS signalbox_shared signalbox_shared_admin_services EXPORT signalboxSharedTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT shared ${only_shared})
  install(EXPORT signalboxSharedTargets NAMESPACE signalbox:: DESTINATION "${signalbox_package}" COMPONENT shared ${only_shared})
endif()

set_target_properties(signalbox PROPERTIES EXPORT_NAME command)
install(TARGETS signalbox EXPORT signalboxCommandTargets RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
install(EXPORT signalboxCommandTargets NAMESPACE signalbox:: DESTINATION "${signalbox_package}" COMPONENT dev)

# --- headers ---
#
# The headers that the public headers include are found at installation: no list can become stale.

install(CODE "
  set(source \"${PROJECT_SOURCE_DIR}\")
  set(staging \"${CMAKE_CURRENT_BINARY_DIR}/install/include\")
  set(destination \"${signalbox_headers}\")"
  COMPONENT dev)
install(SCRIPT "${PROJECT_SOURCE_DIR}/conf/cmake/install_headers.cmake" COMPONENT dev)

# --- find_package and pkg-config ---

set(generated "${CMAKE_CURRENT_BINARY_DIR}/install")
configure_package_config_file("${PROJECT_SOURCE_DIR}/conf/cmake/signalboxConfig.cmake.in"
  "${generated}/signalboxConfig.cmake"
  INSTALL_DESTINATION "${signalbox_package}"
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change anything, so find_package() accepts no other minor version.
write_basic_package_version_file("${generated}/signalboxConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${generated}/signalboxConfig.cmake"
  "${generated}/signalboxConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/conf/cmake/FindCAF.cmake"
  "${PROJECT_SOURCE_DIR}/conf/cmake/SignalboxVersions.cmake"
  DESTINATION "${signalbox_package}"
  COMPONENT dev)

# signalbox_pc_series(PACKAGE NAME RESULT): sets RESULT to a requirement of pkg-config, which bounds
# the PACKAGE of the library NAME to its series: "grpc++ >= 1.51 grpc++ < 1.52".
function(signalbox_pc_series package name result)
  set(series "${SIGNALBOX_SERIES_${name}}")
  string(REGEX MATCH "^(.*\\.)([0-9]+)$" last "${series}")
  math(EXPR next "${CMAKE_MATCH_2} + 1")
  set(${result} "${package} >= ${series} ${package} < ${CMAKE_MATCH_1}${next}" PARENT_SCOPE)
endfunction()

# One signalbox.pc for the archives, which need --static, and one for the shared library.
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${signalbox_headers}")
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
list(TRANSFORM signalbox_archives PREPEND -l OUTPUT_VARIABLE pc_libs)
list(JOIN pc_libs " " pc_libs)
set(pc_requires "")
signalbox_pc_series(grpc++ gRPC pc_grpc)
signalbox_pc_series(protobuf Protobuf pc_protobuf)
set(pc_private "
Requires.private: ${pc_protobuf} libcrypto yaml-cpp re2 liburcu-bp libxxhash absl_flat_hash_map absl_flat_hash_set absl_hash absl_synchronization absl_time
# libmicrohttpd is named here because, with --static, its own .pc file names libraries that its
# package does not depend on.
Libs.private: -lmicrohttpd -lcaf_core -pthread")
configure_file("${PROJECT_SOURCE_DIR}/conf/cmake/signalbox.pc.in" "${generated}/signalbox.pc" @ONLY)
install(FILES "${generated}/signalbox.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev ${only_archives})
set(pc_libs -lsignalbox)
set(pc_requires " absl_flat_hash_map absl_hash")
set(pc_private "")
configure_file("${PROJECT_SOURCE_DIR}/conf/cmake/signalbox.pc.in" "${generated}/shared/signalbox.pc" @ONLY)
install(FILES "${generated}/shared/signalbox.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT shared ${only_shared})

# --- documents ---
#
# The documents have the same paths as in the checkout, so that their links and commands find the
# files.

install(DIRECTORY conf/demo conf/plan conf/quickstart DESTINATION "${CMAKE_INSTALL_DOCDIR}/conf" COMPONENT dev)
install(FILES conf/bootstrap.example.json conf/bootstrap.file.example.json
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/conf" COMPONENT dev)
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT dev PATTERN build EXCLUDE)

# Installs three documents, all files that they link to, all files that those files link to, and so
# on.
set(waiting README.md CHANGELOG.md LICENSE)
set(documents "")
while(waiting)
  list(POP_FRONT waiting document)
  if(document IN_LIST documents)
    continue()
  endif()
  list(APPEND documents "${document}")
  cmake_path(GET document PARENT_PATH folder)
  install(FILES "${document}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}" COMPONENT dev)
  if(NOT document MATCHES "\\.md$")
    continue()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${document}")
  file(READ "${document}" text)
  string(REPLACE "](" "link:" text "${text}") # CMake does not split lists inside of brackets.
  string(REGEX MATCHALL "link:[A-Za-z0-9_./-]+" links "${text}")
  foreach(link IN LISTS links)
    string(SUBSTRING "${link}" 5 -1 linked)
    cmake_path(APPEND folder "${linked}" OUTPUT_VARIABLE linked)
    cmake_path(NORMAL_PATH linked)
    # A lambda in a code block looks like a link, but does not name a file.
    if(EXISTS "${PROJECT_SOURCE_DIR}/${linked}")
      list(APPEND waiting "${linked}")
    endif()
  endforeach()
endwhile()

if(PROJECT_IS_TOP_LEVEL)
  include(SignalboxPackages)
endif()
