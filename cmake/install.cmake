# What `cmake --install` and `cpack` put where:
#   bin/{pusht,image-diffusion,pusht-viewer}, bin/mujoco_plugin -> ../lib/mujoco_plugin (where simulate looks)
#   lib/mujoco_plugin/libdiffusion_policy.so    the engine plugin
#   lib/libmujoco.so.X.Y.Z                      the engine itself (PUSHT_INSTALL_MUJOCO)
#   lib/libdiffusion_policy_c.so, include/diffusion_policy, lib/cmake/diffusion_policy   for programs
#   share/diffusion_policy/{models,assets}, share/doc/diffusion_policy
# Everything finds its parts relative to itself, so that the tree may be moved.
# Components: runtime (plugin, engine, models), tools (programs), dev (headers, CMake package), and
# torch: programs that need this machine's libtorch, which therefore no package holds.
include(CMakePackageConfigHelpers)

option(PUSHT_INSTALL_MUJOCO "Install the MuJoCo library beside the programs" ON)

set(data ${CMAKE_INSTALL_DATADIR}/diffusion_policy)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/diffusion_policy)
set_target_properties(pusht PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set_target_properties(image-diffusion PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(TARGET pusht-train)
  set_target_properties(pusht-train PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(pusht-train image-diffusion PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
if(TARGET pusht-viewer)
  set_target_properties(pusht-viewer PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
set_target_properties(diffusion_policy PROPERTIES INSTALL_RPATH "$ORIGIN/..")

install(DIRECTORY models DESTINATION ${data} COMPONENT runtime FILES_MATCHING PATTERN "*.xml")
install(DIRECTORY assets/pusht_image DESTINATION ${data}/assets COMPONENT runtime)
install(FILES LICENSE CHANGELOG.md docs/CHECKPOINTS.md docs/DISTRIBUTED.md docs/THIRD_PARTY.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/diffusion_policy COMPONENT runtime)
install(FILES plugin/README.md RENAME PLUGIN.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/diffusion_policy COMPONENT runtime)
install(DIRECTORY docs/distributed
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/diffusion_policy COMPONENT tools)
if(PUSHT_INSTALL_MUJOCO)
  install(FILES ${MuJoCo_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  file(GLOB licences "${MuJoCo_INCLUDE_DIR}/../../mujoco_core-*.dist-info/licenses")
  install(DIRECTORY ${licences} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/diffusion_policy/mujoco
          COMPONENT runtime)
endif()
file(CREATE_LINK ../${CMAKE_INSTALL_LIBDIR}/mujoco_plugin ${PROJECT_BINARY_DIR}/mujoco_plugin
     SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/mujoco_plugin DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT tools)

install(FILES policy/c_api.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/diffusion_policy
        RENAME policy.h COMPONENT dev)
install(TARGETS diffusion_policy_c EXPORT diffusion_policy
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
install(EXPORT diffusion_policy NAMESPACE diffusion_policy:: FILE diffusion_policyTargets.cmake
        DESTINATION ${package} COMPONENT dev)
file(WRITE ${PROJECT_BINARY_DIR}/diffusion_policyConfig.cmake
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/diffusion_policyTargets.cmake\")\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/diffusion_policyConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/diffusion_policyConfig.cmake
              ${PROJECT_BINARY_DIR}/diffusion_policyConfigVersion.cmake
        DESTINATION ${package} COMPONENT dev)

set(CPACK_INSTALL_CMAKE_PROJECTS)
foreach(component runtime tools dev)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${PROJECT_BINARY_DIR} ${PROJECT_NAME} ${component} /)
endforeach()
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME diffusion-policy)
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
