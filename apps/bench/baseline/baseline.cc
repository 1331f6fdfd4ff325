#include "apps/bench/baseline/baseline.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/program/own_program.h"

namespace mjp::app {

BenchRows BenchBaseline(const std::string& name, const BenchOptions& options) {
  const auto folder = mjp::OwnProgram().parent_path();
  const std::string module = (folder / ("mjpolicy_baseline_" + name + ".so")).string();
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw mjp::EnvironmentError("--peer " + name + ": " + dlerror() +
                                "; build it where libtorch is found (apps/train/README.md)");
  }
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
