# Writes completion and manual of a program as it prints them itself. Set before by cmake/install.cmake:
# `program` its name, `file` the built one, `data` the folder below the prefix,
# `emulator` what runs programs of another machine.
foreach(entry bash|bash-completion/completions/${program} zsh|zsh/site-functions/_${program}
              fish|fish/vendor_completions.d/${program}.fish man|man/man1/${program}.1)
  string(REPLACE "|" ";" entry ${entry})
  list(POP_FRONT entry what)
  set(target "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${data}/${entry}")
  get_filename_component(folder "${target}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  if(what STREQUAL man)
    execute_process(COMMAND ${emulator} "${file}" --man OUTPUT_FILE "${target}" COMMAND_ERROR_IS_FATAL ANY)
  else()
    execute_process(COMMAND ${emulator} "${file}" --completion ${what} OUTPUT_FILE "${target}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
