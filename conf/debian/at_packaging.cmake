# SPDX-License-Identifier: Apache-2.0
# Variables that cpack reads before it makes the packages: the maintainer, the time, and the
# versions of the libraries that signalbox's static libraries (.a) were compiled against.
#
#   DEBFULLNAME, DEBEMAIL    the maintainer, as for Debian's devscripts
#   SOURCE_DATE_EPOCH        the time of all files and of the changelog; by default the time of the
#                            last commit, or without git that of CHANGELOG.md
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH conf)
cmake_path(GET conf PARENT_PATH CPACK_SIGNALBOX_SOURCE)

# --- the maintainer -------------------------------------------------------------------------------

set(name "$ENV{DEBFULLNAME}")
set(address "$ENV{DEBEMAIL}")
if(name STREQUAL "")
  set(name "signalbox maintainers")
endif()
if(address STREQUAL "")
  set(address "maintainers@signalbox.invalid") # A package that is given away needs a real address.
endif()
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${name} <${address}>")

# --- the time -------------------------------------------------------------------------------------

if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  execute_process(COMMAND git -C "${CPACK_SIGNALBOX_SOURCE}" log -1 --format=%ct
    OUTPUT_VARIABLE seconds OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT seconds MATCHES "^[0-9]+$")
    file(TIMESTAMP "${CPACK_SIGNALBOX_SOURCE}/CHANGELOG.md" seconds "%s" UTC)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} "${seconds}")
endif()

# --- what libsignalbox-dev depends on -------------------------------------------------------------

# The version "2:1.51.1-3" gives ">= 2:1.51" and "<< 2:1.52~". For CAF, three numbers count, because
# each version of CAF has another soname.
function(signalbox_series package result)
  execute_process(COMMAND dpkg-query -W "-f=\${Version}" "${package}" OUTPUT_VARIABLE version ERROR_QUIET)
  set(numbers "[0-9]+(\\.[0-9]+)?")
  if(package STREQUAL "libcaf-dev")
    set(numbers "[0-9]+\\.[0-9]+\\.[0-9]+")
  endif()
  if(NOT version MATCHES "^([0-9]+:)?(${numbers})")
    message(FATAL_ERROR "dpkg-query says of ${package}: '${version}'. The Debian packages need the versions of the "
      "libraries that this tree was built against: install ${package}, as conf/packages.txt and docs/versions.md say")
  endif()
  set(epoch "${CMAKE_MATCH_1}")
  set(from "${CMAKE_MATCH_2}")
  string(REGEX MATCH "^(.*[^0-9])?([0-9]+)$" last "${from}")
  math(EXPR next "${CMAKE_MATCH_2} + 1")
  set(${result} "${package} (>= ${epoch}${from})" "${package} (<< ${epoch}${CMAKE_MATCH_1}${next}~)" PARENT_SCOPE)
endfunction()

set(depends ${CPACK_SIGNALBOX_NEEDS})
foreach(package IN LISTS CPACK_SIGNALBOX_SERIES)
  signalbox_series("${package}" series)
  list(APPEND depends ${series})
endforeach()
list(JOIN depends ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)
