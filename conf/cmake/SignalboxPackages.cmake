# SPDX-License-Identifier: Apache-2.0
# The Debian packages that `cpack -G DEB` makes of a build:
#
#   signalbox-tools     the command, and its man pages
#   libsignalbox-dev    the static libraries, the headers, find_package, pkg-config, the documents
#
#   cmake --install by component ─▶ conf/debian/prepare.cmake: strips, man pages, changelog, copyright ─▶ *.deb
#
# conf/debian/at_packaging.cmake sets variables that are known only when cpack runs. Both scripts
# see the variables that begin with CPACK_.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME signalbox)
set(CPACK_PACKAGE_VENDOR signalbox)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SOURCE_IGNORE_FILES ".*") # There is no source package.
set(CPACK_COMPONENTS_ALL tools dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/conf/debian/at_packaging.cmake")
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/conf/debian/prepare.cmake")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# A lower revision than the first one of Debian's own packages, so that Debian's packages replace
# these.
set(CPACK_DEBIAN_PACKAGE_RELEASE 0upstream1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME signalbox-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "command of the routing runtime signalbox
The signalbox command checks xDS resources and bootstraps, serves a file as a
control plane, explains why a call goes to an endpoint, computes where calls
would go if a zone died, and measures what callers see while backends fail.

It also shows the clusters of a running program that embeds signalbox.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libsignalbox-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "signalbox-tools (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_DEV_DESCRIPTION "routing runtime for C++ servers (development files)
signalbox is a routing runtime for C++ servers that make many calls. It takes
its configuration from an xDS control plane or from a file, keeps connections
to the endpoints, and chooses the endpoint of each call without a lock: as a
drop-in gRPC channel, or by a Pick API for other data planes.

This package has the static libraries, the headers, a CMake package, a
pkg-config file and the documents.")

# C++ libraries that signalbox's static libraries (.a) call. A program must link the series of each
# library (such as gRPC 1.51) that signalbox's libraries were compiled against.
set(CPACK_SIGNALBOX_SERIES
  libabsl-dev libcaf-dev libgrpc++-dev libprotobuf-dev libre2-dev libyaml-cpp-dev prometheus-cpp-dev)
# Packages of which any series will do: the C libraries that signalbox's static libraries call;
# pkgconf, which signalbox's CMake package runs; and what gRPC's CMake package looks for (c-ares,
# OpenSSL, zlib, the code generators).
set(CPACK_SIGNALBOX_NEEDS
  libc-ares-dev libmicrohttpd-dev libssl-dev liburcu-dev libxxhash-dev pkgconf protobuf-compiler
  protobuf-compiler-grpc zlib1g-dev)

set(CPACK_SIGNALBOX_STRIP "${CMAKE_STRIP}")
include(CPack)
