# SPDX-License-Identifier: Apache-2.0
# Installs the public headers and exactly those headers of signalbox that they include. All of them
# are installed below signalbox/, so that they cannot be confused with lb/ or messages/ of another
# project. Their includes are rewritten: "lb/pick/router.hpp" becomes
# "signalbox/lb/pick/router.hpp".
#
#   channel/include/signalbox/*.hpp ──▶ signalbox/*.hpp
#   lb/pick/router.hpp ───────────────▶ signalbox/lb/pick/router.hpp
#
# `cmake --install` runs this script with three variables: source, staging, and destination. The
# destination is relative to the prefix.
cmake_minimum_required(VERSION 3.25)
file(GLOB waiting RELATIVE "${source}/channel/include" "${source}/channel/include/signalbox/*.hpp")
file(REMOVE_RECURSE "${staging}")
set(seen ${waiting})
while(waiting)
  list(POP_FRONT waiting header)
  if(header MATCHES "^signalbox/")
    file(READ "${source}/channel/include/${header}" text)
    set(installed "${header}")
  else()
    file(READ "${source}/${header}" text)
    set(installed "signalbox/${header}")
  endif()
  string(REGEX MATCHALL "#include \"[^\"\n]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.+)\"" "\\1" included "${include}")
    if(EXISTS "${source}/${included}")
      string(REPLACE "${include}" "#include \"signalbox/${included}\"" text "${text}")
    elseif(NOT EXISTS "${source}/channel/include/${included}")
      continue() # A header of another project, such as abseil.
    endif()
    if(NOT included IN_LIST seen)
      list(APPEND seen "${included}")
      list(APPEND waiting "${included}")
    endif()
  endforeach()
  file(WRITE "${staging}/${installed}" "${text}")
endwhile()
cmake_path(ABSOLUTE_PATH destination BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
file(INSTALL DESTINATION "${destination}" TYPE DIRECTORY FILES "${staging}/signalbox")
