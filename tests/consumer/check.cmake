# Installs the build tree, moves the installation, and uses it as a stranger would:
#   cmake -DBUILD=<build tree> -DSOURCE=<this folder> -DWORK=<scratch folder> -P check.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text
                  COMMAND_ECHO STDOUT)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "ended with ${code}:\n${text}")
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/moved)
set(prefix ${WORK}/moved)
set(checkpoint ${prefix}/share/mjpolicy/assets/pusht_image)

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/consumer -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer ${checkpoint})
if(NOT text MATCHES "^[0-9.]+ [0-9.]+\n$")
  message(FATAL_ERROR "the consumer printed '${text}'")
endif()

foreach(file man/man1/mjpolicy.1 bash-completion/completions/mjpolicy zsh/site-functions/_mjpolicy
             fish/vendor_completions.d/mjpolicy.fish)
  file(READ ${prefix}/share/${file} text)
  if(NOT text MATCHES "evaluate")
    message(FATAL_ERROR "share/${file} does not know the commands:\n${text}")
  endif()
endforeach()

# an installation of half a build stops before it begins, and says what to build
file(READ ${BUILD}/check_built.cmake rules)
string(REPLACE "/bin/mjpolicy\"" "/bin/absent\"" rules "${rules}")
file(WRITE ${WORK}/check_built.cmake "${rules}")
execute_process(COMMAND ${CMAKE_COMMAND} -P ${WORK}/check_built.cmake RESULT_VARIABLE code ERROR_VARIABLE text)
if(code EQUAL 0 OR NOT text MATCHES "nothing was installed: mjpolicy not built yet.*--target mjpolicy")
  message(FATAL_ERROR "half a build: ended with ${code}:\n${text}")
endif()

# what is installed uses what is installed beside it
run(${prefix}/bin/mjpolicy --version)
run(${prefix}/bin/mjpolicy evaluate --checkpoint ${checkpoint} --backend cpu --sampler ddim --steps 2
    --episodes 1 --max-steps 8 --through plugin --out ${WORK}/results)
run(${prefix}/bin/image-diffusion benchmark --implementations cpu --n 1 --steps 2 --repeats 1
    --image-size 8 --unet-channels 8 24)
foreach(program mjpolicy image-diffusion)
  run(ldd ${prefix}/bin/${program})
  if(NOT text MATCHES "${prefix}/bin/../lib/libmujoco.so")
    message(FATAL_ERROR "the installed ${program} loads another MuJoCo:\n${text}")
  endif()
endforeach()
# where simulate looks for plugins
file(GLOB libraries ${prefix}/bin/mujoco_plugin/*.so)
list(LENGTH libraries count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "bin/mujoco_plugin holds '${libraries}', expected one library")
endif()
