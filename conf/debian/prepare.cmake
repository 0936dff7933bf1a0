# SPDX-License-Identifier: Apache-2.0
# Prepares the installed files for Debian packages. Each component has a folder, which cpack then
# packs.
#
#   tools/usr/bin/signalbox      stripped; its man pages are made from its --help
#   dev/usr/lib/…/*.a            stripped
#   dev/usr/share/doc/…/LICENSE  a symbolic link
#   usr/share/doc/PACKAGE        changelog.Debian.gz, copyright
cmake_minimum_required(VERSION 3.25)
find_program(PYTHON3 python3 REQUIRED)
set(here "${CMAKE_CURRENT_LIST_DIR}")
set(staged "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(prefix "${CPACK_PACKAGING_INSTALL_PREFIX}")
string(TIMESTAMP date "%Y-%m-%d" UTC) # CMake uses SOURCE_DATE_EPOCH, not the current time.

function(signalbox_run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Debian's policy requires the best compression, and no name or time in the file: gzip -9n.
function(signalbox_compress)
  file(CHMOD ${ARGN} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  signalbox_run(gzip -9n ${ARGN})
endfunction()

# --- the command and its man pages ----------------------------------------------------------------

set(command "${staged}/tools${prefix}/bin/signalbox")
set(manual "${staged}/tools${prefix}/share/man/man1")
file(MAKE_DIRECTORY "${manual}")
signalbox_run("${PYTHON3}" -B "${here}/man_pages.py" "${command}" "${manual}" "${date}")
file(GLOB pages "${manual}/*.1")
signalbox_compress(${pages})
signalbox_run("${CPACK_SIGNALBOX_STRIP}" --remove-section=.comment --remove-section=.note "${command}")

# --- the archives ---------------------------------------------------------------------------------

file(GLOB_RECURSE archives "${staged}/dev${prefix}/*.a")
signalbox_run("${CPACK_SIGNALBOX_STRIP}" --strip-debug --enable-deterministic-archives --remove-section=.comment
  --remove-section=.note ${archives})

# --- the documents --------------------------------------------------------------------------------

# Debian systems already have a copy of this licence. A symbolic link keeps the links in the
# documents valid.
set(licence "${staged}/dev${prefix}/share/doc/signalbox/LICENSE")
file(REMOVE "${licence}")
file(CREATE_LINK ../../common-licenses/Apache-2.0 "${licence}" SYMBOLIC)

foreach(package tools=signalbox-tools dev=libsignalbox-dev)
  string(REPLACE "=" ";" package "${package}")
  list(POP_FRONT package component)
  set(documents "${staged}/${component}${prefix}/share/doc/${package}")
  file(MAKE_DIRECTORY "${documents}")
  execute_process(
    COMMAND "${PYTHON3}" -B "${here}/changelog.py" "${CPACK_SIGNALBOX_SOURCE}/CHANGELOG.md" "${CPACK_PACKAGE_VERSION}"
      "${CPACK_DEBIAN_PACKAGE_RELEASE}" "${CPACK_DEBIAN_PACKAGE_MAINTAINER}" "$ENV{SOURCE_DATE_EPOCH}"
    OUTPUT_FILE "${documents}/changelog.Debian"
    COMMAND_ERROR_IS_FATAL ANY)
  signalbox_compress("${documents}/changelog.Debian")
  configure_file("${here}/copyright" "${documents}/copyright" COPYONLY)
  file(CHMOD "${documents}/copyright" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
