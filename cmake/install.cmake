# What `cmake --install` and `cpack` put where:
#   bin/{mjpolicy,image-diffusion,mjpolicy-viewer}, bin/mujoco_plugin -> ../lib/mujoco_plugin (where simulate looks)
#   lib/mujoco_plugin/libmjpolicy.so    the engine plugin
#   lib/libmujoco.so.X.Y.Z                      the engine itself (MJPOLICY_INSTALL_MUJOCO)
#   lib/libmjpolicy_c.so, include/mjpolicy, lib/cmake/mjpolicy   for programs
#   share/mjpolicy/{models,assets}, share/doc/mjpolicy, share/man, completion for bash, zsh and fish
# Everything finds its parts relative to itself, so that the tree may be moved.
# Components: runtime (plugin, engine, models), tools (programs), dev (headers, CMake package), and
# torch: programs that need this machine's libtorch, which therefore no package holds.
include(CMakePackageConfigHelpers)

option(MJPOLICY_INSTALL_MUJOCO "Install the MuJoCo library beside the programs" ON)

set(data ${CMAKE_INSTALL_DATADIR}/mjpolicy)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/mjpolicy)
set_target_properties(mjpolicy PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set_target_properties(image-diffusion PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(TARGET mjpolicy-train)
  set_target_properties(mjpolicy-train PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(mjpolicy-train image-diffusion PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
if(TARGET mjpolicy-viewer)
  set_target_properties(mjpolicy-viewer PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
set_target_properties(mjpolicy_plugin PROPERTIES INSTALL_RPATH "$ORIGIN/..")

install(DIRECTORY models DESTINATION ${data} COMPONENT runtime
        FILES_MATCHING PATTERN "*.xml" PATTERN "*.stl" PATTERN "LICENSE" PATTERN "README.md")
install(DIRECTORY assets/pusht_image assets/pusht_image_onestep assets/aloha_transfer_cube
        DESTINATION ${data}/assets COMPONENT runtime)
install(FILES LICENSE CHANGELOG.md docs/CHECKPOINTS.md docs/DISTRIBUTED.md docs/THIRD_PARTY.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mjpolicy COMPONENT runtime)
install(FILES plugin/README.md RENAME PLUGIN.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mjpolicy COMPONENT runtime)
install(DIRECTORY docs/distributed
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mjpolicy COMPONENT tools)
if(MJPOLICY_INSTALL_MUJOCO)
  install(FILES ${MuJoCo_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  file(GLOB licences "${MuJoCo_INCLUDE_DIR}/../../mujoco_core-*.dist-info/licenses")
  install(DIRECTORY ${licences} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mjpolicy/mujoco
          COMPONENT runtime)
endif()
file(CREATE_LINK ../${CMAKE_INSTALL_LIBDIR}/mujoco_plugin ${PROJECT_BINARY_DIR}/mujoco_plugin
     SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/mujoco_plugin DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT tools)

install(FILES policy/c_api.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mjpolicy
        RENAME mjpolicy.h COMPONENT dev)
install(TARGETS mjpolicy_c EXPORT mjpolicy
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
install(EXPORT mjpolicy NAMESPACE mjpolicy:: FILE mjpolicyTargets.cmake
        DESTINATION ${package} COMPONENT dev)
file(WRITE ${PROJECT_BINARY_DIR}/mjpolicyConfig.cmake
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/mjpolicyTargets.cmake\")\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mjpolicyConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mjpolicyConfig.cmake
              ${PROJECT_BINARY_DIR}/mjpolicyConfigVersion.cmake
        DESTINATION ${package} COMPONENT dev)

# what has to be there before an installation begins (CMakeLists.txt has the rule)
set(installed_entries)
foreach(entry runtime|mjpolicy_plugin runtime|mjpolicy_c tools|mjpolicy tools|image-diffusion tools|mjpolicy_record
              tools|mjpolicy-viewer)
  string(REGEX REPLACE ".*[|]" "" target ${entry})
  if(TARGET ${target})
    string(APPEND installed_entries " \"${entry}|$<TARGET_FILE:${target}>\"")
  endif()
endforeach()
configure_file(cmake/check_built.cmake.in ${PROJECT_BINARY_DIR}/check_built.cmake.in @ONLY)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/check_built.cmake
     INPUT ${PROJECT_BINARY_DIR}/check_built.cmake.in)

# completion and manual of each program, as it prints them
foreach(program mjpolicy image-diffusion mjpolicy-viewer)
  if(TARGET ${program})
    install(CODE "set(program ${program})\nset(file \"$<TARGET_FILE:${program}>\")\nset(data ${CMAKE_INSTALL_DATADIR})
set(emulator ${CMAKE_CROSSCOMPILING_EMULATOR})"
            COMPONENT tools)
    install(SCRIPT cmake/install_manual.cmake COMPONENT tools)
  endif()
endforeach()

set(CPACK_INSTALL_CMAKE_PROJECTS)
foreach(component runtime tools dev)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${PROJECT_BINARY_DIR} ${PROJECT_NAME} ${component} /)
endforeach()
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME mjpolicy)
set(CPACK_PACKAGE_VENDOR "${PROJECT_NAME}")
set(CPACK_PACKAGE_CONTACT "the maintainers of ${PROJECT_NAME}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
get_filename_component(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${MuJoCo_LIBRARY}" DIRECTORY)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ffmpeg, libegl1")
include(CPack)
