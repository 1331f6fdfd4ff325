# Checks the dependency direction on the #include lines: cmake -P cmake/check_layers.cmake
#   base <- kernels <- policy <- plugin <- tasks <- {apps, viewer};
#   policy <- image_diffusion <- apps; base <- datasets <- {tasks, apps, viewer}; MuJoCo only from plugin upwards;
#   GLFW and Dear ImGui in viewer/ only; viewer/panels see the snapshot and ImGui alone.


cmake_minimum_required(VERSION 3.25)
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(layers base datasets kernels policy image_diffusion plugin tasks apps viewer)
set(allowed_base base)
set(allowed_datasets base datasets)
set(allowed_kernels base kernels)
set(allowed_policy base kernels policy)
set(allowed_image_diffusion base kernels policy image_diffusion)
set(allowed_plugin base kernels policy plugin)
set(allowed_tasks base datasets kernels policy plugin tasks)
set(allowed_apps base datasets kernels policy image_diffusion plugin tasks apps)
set(allowed_viewer base datasets kernels policy plugin tasks viewer)
set(failed FALSE)

function(check_file file layer)
  file(STRINGS "${root}/${file}" lines REGEX "^ *# *include")
  foreach(line IN LISTS lines)
    if(line MATCHES "[<\"](base|datasets|kernels|policy|image_diffusion|plugin|tasks|apps|viewer)/" AND
       NOT CMAKE_MATCH_1 IN_LIST allowed_${layer})
      message(SEND_ERROR "${file}: ${layer}/ must not include ${CMAKE_MATCH_1}/ (${line})")
    endif()
    if(line MATCHES "mujoco/" AND layer MATCHES "^(base|datasets|kernels|policy|image_diffusion)$")
      message(SEND_ERROR "${file}: MuJoCo is not for ${layer}/ (${line})")
    endif()
    if(line MATCHES "GLFW/|imgui" AND NOT layer STREQUAL "viewer")
      message(SEND_ERROR "${file}: GLFW and Dear ImGui belong in viewer/ (${line})")
    endif()
    if(file MATCHES "^viewer/panels/" AND line MATCHES "GLFW/|mujoco/|[<\"](plugin|tasks)/")
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
