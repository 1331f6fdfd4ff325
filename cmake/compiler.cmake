# Language level, warnings, hardening and sanitizers, the same for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # every checkout of the project shares the compiler's cache, wherever it lies
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
               ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# results must not depend on how the compiler contracts or reorders floating-point operations
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>")
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps at -O3 where std::string adds texts (gcc.gnu.org/PR105651)
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict>")
endif()
if(MJPOLICY_WERROR)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Werror>")
endif()
string(REPLACE "-O2 -g -DNDEBUG" "-O2 -g1 -DNDEBUG" CMAKE_CXX_FLAGS_RELWITHDEBINFO
               "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")

# a shared library names all that it needs; clang's sanitizers alone leave theirs to the program
set(MJPOLICY_NO_UNDEFINED -Wl,--no-undefined)
# a third of the compiler's time went to optimising what a test does once
set(MJPOLICY_TEST_OPTIMISATION -O1)
set(MJPOLICY_TEST_SECONDS 120)
if(CMAKE_CROSSCOMPILING)
  set(MJPOLICY_TEST_SECONDS 1200)  # emulated
endif()
if(MJPOLICY_SANITIZE)
  set(MJPOLICY_TEST_OPTIMISATION -O0)
  set(MJPOLICY_TEST_SECONDS 600)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(MJPOLICY_NO_UNDEFINED "")
    if(MJPOLICY_SANITIZE MATCHES address)
      add_compile_definitions(__SANITIZE_ADDRESS__=1)  # as GCC says it
    endif()
    # a program in C loads libraries in C++, whose checks are in the other half of the runtime
    add_link_options("$<$<LINK_LANGUAGE:C>:-fsanitize-link-c++-runtime;-lstdc++>")
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MJPOLICY_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${MJPOLICY_SANITIZE})
else()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  add_link_options(-Wl,-z,relro,-z,now)
endif()
