#include "kernels/cuda/primitives/gpu_traits.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#include "base/error.h"
#include "kernels/cuda/primitives/gpu_probe.h"

namespace mjp {
namespace {

constexpr const char* kTestVariable = "MJPOLICY_TEST_GPU";
constexpr int kKib = 1024;

// Throws Error(kEnvironment) where a variable is set that a build for tests alone reads.
void RefuseTestVariables() {
#ifndef MJPOLICY_TEST_SEAMS
  for (const char* name : {kTestVariable, kTestFaultVariable}) {
    if (std::getenv(name) == nullptr) continue;
    throw EnvironmentError(std::string(name) +
                           " is set, and only a build for tests reads it: unset it");
  }
#endif
}

GpuTraits FromEnvironment() {
  RefuseTestVariables();
  GpuTraits traits = ProbeGpu();
  const char* text = std::getenv(kTestVariable);
  if (text != nullptr) traits = OverriddenTraits(traits, text);
  CheckRuns(traits);
  return traits;
}

int ParseNumber(const std::string& word, const std::string& value) {
  size_t used = 0;
  int number = 0;
  try {
    number = std::stoi(value, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != value.size() || number < 0)
    throw Error(ExitCode::kUsage, "\"" + word + "\": expected a number from 0");
  return number;
}

// Name, capability, SMs, KiB of shared memory of a block: docs/ARCHITECTURE.md names the sources.
const std::map<std::string, GpuTraits>& KnownGpus() {
  static const auto& known = *new std::map<std::string, GpuTraits>([] {
    struct Row {
      const char *word, *name;
      int capability, sms, shared_kib, clusters;
    };
    constexpr Row kRows[] = {{"a100", "NVIDIA A100", 80, 108, 163, 1},
                             {"rtx3060", "NVIDIA RTX 3060", 86, 28, 99, 1},
                             {"rtx3090", "NVIDIA RTX 3090", 86, 82, 99, 1},
                             {"orin-nano", "NVIDIA Jetson Orin Nano", 87, 8, 163, 1},
                             {"orin", "NVIDIA Jetson AGX Orin", 87, 16, 163, 1},
                             {"l4", "NVIDIA L4", 89, 58, 99, 1},
                             {"l40s", "NVIDIA L40S", 89, 142, 99, 1},
                             {"rtx4060-laptop", "NVIDIA RTX 4060 Laptop", 89, 24, 99, 1},
                             {"rtx4090", "NVIDIA RTX 4090", 89, 128, 99, 1},
                             {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 227, 8},
                             {"h100", "NVIDIA H100", 90, 132, 227, 8},
                             {"h200", "NVIDIA H200", 90, 132, 227, 8},
                             {"b200", "NVIDIA B200", 100, 148, 227, 8},
                             {"thor", "NVIDIA Jetson AGX Thor", 110, 20, 227, 8},
                             {"rtx5090", "NVIDIA RTX 5090", 120, 170, 99, 8},
                             {"dgx-spark", "NVIDIA DGX Spark", 121, 48, 99, 8}};
    std::map<std::string, GpuTraits> table;
    for (const Row& row : kRows) {
      GpuTraits traits = {row.name, row.capability, row.sms, row.shared_kib * kKib, true};
      traits.cluster_blocks = row.clusters;
      traits.code = row.capability == 121 ? 120 : row.capability;
      traits.code_wgmma = row.capability == 90;
      table[row.word] = traits;
    }
    return table;
  }());
  return known;
}

}  // namespace

int GpuTraits::LargestCluster() const {
  constexpr int kPortable = 8, kLargest = 16;
  const bool large = capability == 90 || capability == 100 || capability == 103;
  return large && ClusterBlocks() == kPortable ? kLargest : ClusterBlocks();
}

int GpuTraits::MultiprocessorsInClusters(int blocks) const {
  constexpr int kPart = 18, kPartInClusters = 16;
  if (blocks <= 2) return multiprocessors;
  const int expected = std::max(1, multiprocessors / kPart) * kPartInClusters;
  const bool asked = clusters_at_once > 0 && blocks == cluster_blocks;
  return asked ? std::min(expected, clusters_at_once * blocks) : expected;
}

const GpuTraits& GpuTraits::Current() {
  static std::mutex mutex;
  static auto& of_device = *new std::map<int, GpuTraits>;
  const std::lock_guard lock(mutex);
  const int device = CurrentDevice();
  const auto found = of_device.find(device);
  return found != of_device.end() ? found->second
                                  : of_device.emplace(device, FromEnvironment()).first->second;
}

GpuTraits GpuTraits::Named(const std::string& name) {
  const auto found = KnownGpus().find(name);
  if (found != KnownGpus().end()) return found->second;
  std::string known;
  for (const std::string& each : Names()) known += (known.empty() ? "" : ", ") + each;
  throw Error(ExitCode::kUsage, "GPU \"" + name + "\" is unknown; choose one of: " + known);
}

GpuTraits GpuTraits::Hopper() {
  GpuTraits hopper;
  hopper.multiprocessors = 132;
  return hopper;
}

std::vector<std::string> GpuTraits::Names() {
  std::vector<std::string> names;
  for (const auto& [name, traits] : KnownGpus()) names.push_back(name);
  return names;
}

GpuTraits OverriddenTraits(GpuTraits traits, const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string key = word.substr(0, equals);
    const int value = ParseNumber(word, word.substr(equals + 1));
    if (key == "capability") {
      traits.capability = value;
    } else if (key == "code") {
      traits.code = value;
    } else if (key == "shared") {
      traits.shared_bytes = value * kKib;
    } else if (key == "sms") {
      traits.multiprocessors = value;
      traits.clusters_at_once = 0;
    } else if (key == "clusters") {
      traits.cluster_blocks = std::max(1, value);
      traits.clusters_at_once = 0;
    } else if (key == "wgmma") {
      traits.code_wgmma = value != 0;
    } else if (key == "cooperative") {
      traits.cooperative = value != 0;
    } else {
      throw Error(ExitCode::kUsage, std::string(kTestVariable) + ": \"" + key +
                                        "\" is unknown; it takes capability, code, shared, sms, "
                                        "clusters, wgmma and cooperative");
    }
  }
  traits.name += " (overridden: " + text + ")";
  return traits;
}

void CheckRuns(const GpuTraits& gpu) {
  const std::string name =
      gpu.name + " (compute capability " + CapabilityText(gpu.capability) + ")";
  if (gpu.capability < kOldestCapability)
    throw EnvironmentError(name + " is older than 8.0, the oldest that this program runs on");
  if (gpu.code == 0)
    throw EnvironmentError("this build has code for " + std::string(BuiltArchitectures()) +
                           " and none for " + name +
                           "; to build for it, run: " + kBuildForEveryGpu);
}

const char* BuiltArchitectures() { return MJPOLICY_CUDA_ARCHITECTURES; }

std::string CapabilityText(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

}  // namespace mjp
