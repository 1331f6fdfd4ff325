# Finds Chipmunk 7, the benchmark's original physics (Debian: libchipmunk-dev), and defines
# Chipmunk::Chipmunk.
#
# Defines Chipmunk_FOUND, Chipmunk_INCLUDE_DIR, Chipmunk_LIBRARY.

find_path(Chipmunk_INCLUDE_DIR chipmunk/chipmunk.h)
find_library(Chipmunk_LIBRARY chipmunk)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Chipmunk REQUIRED_VARS Chipmunk_LIBRARY Chipmunk_INCLUDE_DIR)

if(Chipmunk_FOUND AND NOT TARGET Chipmunk::Chipmunk)
  add_library(Chipmunk::Chipmunk UNKNOWN IMPORTED)
  set_target_properties(Chipmunk::Chipmunk PROPERTIES
    IMPORTED_LOCATION "${Chipmunk_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Chipmunk_INCLUDE_DIR}")
endif()
