# Finds MuJoCo and defines mujoco::mujoco.
#
# Searched, in order: MUJOCO_DIR (CMake variable, then environment), .deps/mujoco-<version> where
# scripts/setup puts it, the system. Each may be laid out as a PyPI wheel (mujoco/include,
# mujoco/libmujoco.so.X.Y.Z), a release tarball (include, lib) or an install prefix. The version
# is read from mujoco.h, and the library file must carry the same one: the plugin interface is only
# stable within one exact version.
#
# Defines MuJoCo_FOUND, MuJoCo_VERSION, MuJoCo_INCLUDE_DIR, MuJoCo_LIBRARY.

set(_roots ${MUJOCO_DIR} $ENV{MUJOCO_DIR})
if(NOT _roots)
  set(_roots ${PROJECT_SOURCE_DIR}/.deps/mujoco-${MuJoCo_FIND_VERSION} /usr/local /usr)
endif()

unset(MuJoCo_INCLUDE_DIR CACHE)
find_path(MuJoCo_INCLUDE_DIR mujoco/mujoco.h
          PATHS ${_roots} PATH_SUFFIXES mujoco/include include NO_DEFAULT_PATH)

if(MuJoCo_INCLUDE_DIR)
  file(STRINGS "${MuJoCo_INCLUDE_DIR}/mujoco/mujoco.h" _line REGEX "#define mjVERSION_HEADER ")
  string(REGEX MATCH "[0-9]+" _number "${_line}")
  if(_number GREATER_EQUAL 1000000)
    math(EXPR _super "${_number} / 1000000")
    math(EXPR _major "${_number} / 1000 % 1000")
    math(EXPR _minor "${_number} % 1000")
    set(MuJoCo_VERSION "${_super}.${_major}.${_minor}")
  else()
    set(MuJoCo_VERSION "${_number}")
  endif()
  get_filename_component(_prefix "${MuJoCo_INCLUDE_DIR}" DIRECTORY)
  set(MuJoCo_LIBRARY "MuJoCo_LIBRARY-NOTFOUND")
  foreach(_dir "${_prefix}" "${_prefix}/lib" "${_prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    if(EXISTS "${_dir}/libmujoco.so.${MuJoCo_VERSION}")
      set(MuJoCo_LIBRARY "${_dir}/libmujoco.so.${MuJoCo_VERSION}")
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MuJoCo
  REQUIRED_VARS MuJoCo_LIBRARY MuJoCo_INCLUDE_DIR
  VERSION_VAR MuJoCo_VERSION
  REASON_FAILURE_MESSAGE "run scripts/setup, or set MUJOCO_DIR to a MuJoCo ${MuJoCo_FIND_VERSION} wheel, tarball or install")

if(MuJoCo_FOUND AND NOT TARGET mujoco::mujoco)
  add_library(mujoco::mujoco SHARED IMPORTED)
  set_target_properties(mujoco::mujoco PROPERTIES
    IMPORTED_LOCATION "${MuJoCo_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MuJoCo_INCLUDE_DIR}")
endif()
