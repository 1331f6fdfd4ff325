#include "base/program/own_program.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <system_error>

#include "base/error.h"

namespace mjp {

std::filesystem::path FindOwnProgram() {
  std::error_code code;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (!code) return program;
  // what the kernel was asked to run, relative to the folder of the start, which no program of
  // this project leaves
  const auto name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (name == nullptr) return {};
  program = std::filesystem::canonical(name, code);
  return code ? std::filesystem::path() : program;
}

std::filesystem::path FindOwnBinary() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&FindOwnBinary), &info) == 0) return {};
  std::error_code code;
  std::filesystem::path binary = std::filesystem::canonical(info.dli_fname, code);
  // a program found on PATH is known by its bare name
  return code ? FindOwnProgram() : binary;
}

std::filesystem::path OwnProgram() {
  std::filesystem::path program = FindOwnProgram();
  if (!program.empty()) return program;
  throw EnvironmentError(
      "this program does not find its own file: /proc is not mounted, and the name that it was "
      "started by leads nowhere; mount /proc, or start it by its full path");
}

}  // namespace mjp
