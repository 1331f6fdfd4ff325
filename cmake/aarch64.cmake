# Toolchain of the presets aarch64 and aarch64-cuda: Debian's cross compiler, the system root, the MuJoCo
# and the CUDA runtime that scripts/check-aarch64 fetches into .deps, and qemu to run what was built.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(_deps "${CMAKE_CURRENT_LIST_DIR}/../.deps" ABSOLUTE)
set(CMAKE_SYSROOT ${_deps}/aarch64-sysroot)
set(MUJOCO_DIR ${_deps}/mujoco-4.0.1-aarch64)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH ${MUJOCO_DIR})
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# libraries that libraries need
add_link_options(-Wl,-rpath-link,${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,${CMAKE_SYSROOT}/lib/aarch64-linux-gnu)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})

# of aarch64-cuda: this machine's nvcc, in a folder that has headers and runtime for the target
set(CMAKE_CUDA_COMPILER ${_deps}/cuda-13.0-aarch64/bin/nvcc)
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
