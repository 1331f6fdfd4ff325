#include "apps/bench/baseline/baseline.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"
#include "base/program/own_program.h"

namespace mjp::app {

namespace {

std::string ModuleOf(const std::string& name) {
  return (mjp::OwnProgram().parent_path() / ("mjpolicy_baseline_" + name + ".so")).string();
}

mjp::Error NotBuilt(const std::string& name, const std::string& why) {
  return mjp::EnvironmentError("--peer " + name + ": " + why +
                               "; build it where libtorch is found (apps/train/README.md)");
}

}  // namespace

void CheckBaseline(const std::string& name) {
  const std::string module = ModuleOf(name);
  if (!std::filesystem::exists(module)) throw NotBuilt(name, "there is no " + module);
}

BenchRows BenchBaseline(const std::string& name, const BenchOptions& options) {
  const std::string module = ModuleOf(name);
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw NotBuilt(name, dlerror());
  const auto rows_of = reinterpret_cast<BaselineFunction>(dlsym(library, kBaselineSymbol));
  const auto layout = static_cast<const size_t*>(dlsym(library, kBaselineLayoutSymbol));
  if (rows_of == nullptr || layout == nullptr || *layout != kBaselineLayout) {
    throw mjp::EnvironmentError("--peer " + name + ": " + module +
                                " is of another version; build the target mjpolicy_baseline_" +
                                name + " again");
  }
  BenchRows rows;
  rows_of(options, rows);
  return rows;
}

}  // namespace mjp::app
