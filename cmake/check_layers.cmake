# Checks the dependency direction on the #include lines: cmake -P cmake/check_layers.cmake
#   kernels <- policy <- plugin <- task <- {apps, viewer}; policy <- image <- apps;
#   MuJoCo only from plugin upwards;
#   GLFW and Dear ImGui in viewer/ only; viewer/panels see the snapshot and ImGui alone.


cmake_minimum_required(VERSION 3.25)
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(layers kernels policy image plugin task apps viewer)
set(allowed_kernels kernels)
set(allowed_policy kernels policy)
set(allowed_image kernels policy image)
set(allowed_plugin kernels policy plugin)
set(allowed_task kernels policy plugin task)
set(allowed_apps kernels policy image plugin task apps)
set(allowed_viewer kernels policy plugin task viewer)
set(failed FALSE)

function(check_file file layer)
  file(STRINGS "${root}/${file}" lines REGEX "^ *# *include")
  foreach(line IN LISTS lines)
    if(line MATCHES "[<\"](kernels|policy|image|plugin|task|apps|viewer)/" AND
       NOT CMAKE_MATCH_1 IN_LIST allowed_${layer})
      message(SEND_ERROR "${file}: ${layer}/ must not include ${CMAKE_MATCH_1}/ (${line})")
    endif()
    if(line MATCHES "mujoco/" AND layer MATCHES "^(kernels|policy|image)$")
      message(SEND_ERROR "${file}: MuJoCo is not for ${layer}/ (${line})")
    endif()
    if(line MATCHES "GLFW/|imgui" AND NOT layer STREQUAL "viewer")
      message(SEND_ERROR "${file}: GLFW and Dear ImGui belong in viewer/ (${line})")
    endif()
    if(file MATCHES "^viewer/panels/" AND line MATCHES "GLFW/|mujoco/|[<\"](plugin|task)/")
      message(SEND_ERROR "${file}: a panel sees only the snapshot and ImGui (${line})")
    endif()
  endforeach()
endfunction()

foreach(layer IN LISTS layers)
  file(GLOB_RECURSE files RELATIVE "${root}"
       "${root}/${layer}/*.h" "${root}/${layer}/*.cc" "${root}/${layer}/*.cu" "${root}/${layer}/*.cuh")
  foreach(file IN LISTS files)
    check_file("${file}" ${layer})
  endforeach()
endforeach()
