#include "datasets/modules/modules.h"

#include <filesystem>

#include "base/dynamic_library.h"
#include "base/program/own_program.h"

namespace mjp::datasets {

void* ModuleSymbol(const std::string& library, const char* symbol, const std::string& remedy) {
  const std::string file = "lib" + library + ".so";
  const DynamicLibrary module(
      {(FindOwnBinary().parent_path() / ".." / MJPOLICY_LIBRARY_FOLDER / "mjpolicy" / file)
           .string(),
       MJPOLICY_MODULE_FOLDER "/" + file},
      RTLD_NOW | RTLD_LOCAL, remedy);
  char* address = nullptr;
  module.Find(address, symbol);
  return address;
}

}  // namespace mjp::datasets
