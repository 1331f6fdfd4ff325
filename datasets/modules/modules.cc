#include "datasets/modules/modules.h"

#include <filesystem>

#include "base/dynamic_library.h"
#include "base/program/own_program.h"

namespace mjp::datasets {
namespace {

// The folder of the program or library that this code is in.
std::filesystem::path OwnFolder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&ModuleSymbol), &info);
  std::error_code none;
  const auto path = std::filesystem::canonical(info.dli_fname ? info.dli_fname : "", none);
  return (none ? FindOwnProgram() : path).parent_path();
}

}  // namespace

void* ModuleSymbol(const std::string& library, const char* symbol, const std::string& remedy) {
  const std::string file = "lib" + library + ".so";
  const DynamicLibrary module(
      {(OwnFolder() / ".." / MJPOLICY_LIBRARY_FOLDER / "mjpolicy" / file).string(),
       MJPOLICY_MODULE_FOLDER "/" + file},
      RTLD_NOW | RTLD_LOCAL, remedy);
  char* address = nullptr;
  module.Find(address, symbol);
  return address;
}

}  // namespace mjp::datasets
