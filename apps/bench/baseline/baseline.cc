#include "apps/bench/baseline/baseline.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace mjp::app {

BenchRows BenchPeer(const std::string& name, const BenchOptions& options) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string module = (folder / ("mjp_peer_" + name + ".so")).string();
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw mjp::EnvironmentError("--peer " + name + ": " + dlerror() +
                                "; build it where libtorch is found (apps/train/README.md)");
  }
  const auto rows_of = reinterpret_cast<PeerFunction>(dlsym(library, kPeerSymbol));
  const auto layout = static_cast<const size_t*>(dlsym(library, kPeerLayoutSymbol));
  if (rows_of == nullptr || layout == nullptr || *layout != kPeerLayout) {
    throw mjp::EnvironmentError("--peer " + name + ": " + module +
                                " is of another version; build the target mjp_peer_" + name +
                                " again");
  }
  BenchRows rows;
  rows_of(options, rows);
  return rows;
}

}  // namespace mjp::app
