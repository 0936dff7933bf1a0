# SPDX-License-Identifier: Apache-2.0
# FindCAF: Debian's CAF 0.17 ships no CMake package. Defines CAF::core (headers as system headers,
# libcaf_core, threads), and CAF_VERSION. Also reads the version of CAF 1.0 and newer, so that an
# error can name it.
find_path(CAF_INCLUDE_DIR NAMES caf/actor_system.hpp)
find_library(CAF_CORE_LIBRARY NAMES caf_core)
if(CAF_INCLUDE_DIR AND EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_version REGEX "^#define CAF_VERSION [0-9]+")
  if(_caf_version)
    string(REGEX REPLACE "^#define CAF_VERSION ([0-9]+)" "\\1" _caf_version "${_caf_version}")
    math(EXPR _caf_major "${_caf_version} / 10000")
    math(EXPR _caf_minor "(${_caf_version} / 100) % 100")
    math(EXPR _caf_patch "${_caf_version} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  elseif(EXISTS "${CAF_INCLUDE_DIR}/caf/detail/build_config.hpp") # CAF 1.0 and newer.
    file(STRINGS "${CAF_INCLUDE_DIR}/caf/detail/build_config.hpp" _caf_version REGEX "^#define CAF_VERSION_STR ")
    string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" CAF_VERSION "${_caf_version}")
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION)
if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)
