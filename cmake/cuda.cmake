# CUDA is optional: MJPOLICY_HAVE_CUDA is on where nvcc is found and MJPOLICY_CUDA allows it.

# mjp_native_architectures(<variable>): those of this machine's GPUs, 90a where there is none. CMake's
# own word native leaves out the instructions of Hopper alone, which need 90a.
function(mjp_native_architectures variable)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE text RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  set(architectures)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${text}")
  foreach(capability IN LISTS capabilities)
    string(REPLACE "." "" number "${capability}")
    if(number EQUAL 90)
      list(APPEND architectures 90a)
    elseif(number GREATER_EQUAL 80)
      list(APPEND architectures ${number})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES architectures)
  if(NOT architectures)
    set(architectures 90a)
  endif()
  set(${variable} "${architectures}" PARENT_SCOPE)
endfunction()

set(MJPOLICY_HAVE_CUDA OFF)
if(MJPOLICY_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES OR CMAKE_CUDA_ARCHITECTURES STREQUAL "native")
      mjp_native_architectures(CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES} CACHE STRING
          "CUDA architectures; native: those of the GPUs of this machine" FORCE)
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      # CMake 3.25 does not know yet that nvcc has this option
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    find_package(CUDAToolkit REQUIRED)
    set(MJPOLICY_HAVE_CUDA ON)
  endif()
endif()
message(STATUS "CUDA: ${MJPOLICY_HAVE_CUDA} (${CMAKE_CUDA_ARCHITECTURES})")
