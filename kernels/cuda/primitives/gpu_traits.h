#ifndef KERNELS_CUDA_PRIMITIVES_GPU_TRAITS_H_
#define KERNELS_CUDA_PRIMITIVES_GPU_TRAITS_H_

#include <string>
#include <vector>

// What a GPU is and what code this build has for it: the one description that every choice between
// kernels reads. A fact about the device and one about the compiled code are never mixed up: the
// same build may run as PTX for 8.0 on a device of 9.0, where Hopper's instructions were compiled
// to traps.

namespace mjp {

struct GpuTraits {
  // Facts about the device.
  std::string name;
  int capability = 0;        // compute capability, 10 * major + minor: 90 is 9.0
  int multiprocessors = 0;   // SMs
  int shared_bytes = 0;      // most shared memory that a block may ask for
  bool cooperative = false;  // launches whose blocks all run at once
  int cluster_blocks = 1;    // most blocks of a cluster that it takes for portable code; 1: none
  // Such clusters that it runs at once, a block with all shared memory on each of their
  // multiprocessors; 0: the device is not here to be asked.
  int clusters_at_once = 0;

  // Facts about the code that is loaded for it.
  int code = 0;             // what the kernels were compiled for: 80 is sm_80 or compute_80
  bool code_wgmma = false;  // they were compiled for sm_90a

  // Facts about both.
  // A kernel may start before its predecessor in the stream ends (programmatic dependent launch).
  bool DependentLaunch() const { return capability >= 90 && code >= 90; }
  // Most blocks of a cluster, which read each other's shared memory; 1: no clusters.
  int ClusterBlocks() const { return capability >= 90 && code >= 90 ? cluster_blocks : 1; }
  // The same for a kernel that asks for more than portable code has: 16 on a data centre's GPU of
  // 9.0, 10.0 or 10.3 (CUDA's programming guide, "Thread Block Clusters").
  int LargestCluster() const;
  // Multiprocessors that clusters of so many blocks fill at once, one block on each: a cluster
  // stays within one of the parts of the GPU, of 16 or 18 multiprocessors, so the larger leave some
  // idle. Of the largest portable clusters no more than the device says.
  int MultiprocessorsInClusters(int blocks) const;
  // Hopper's warpgroup products, whose kernels have clusters of up to eight blocks.
  bool Wgmma() const { return capability == 90 && code_wgmma && cluster_blocks >= 8; }

  bool operator==(const GpuTraits&) const = default;

  // Of the current device; each is asked once per process. A build for tests (MJPOLICY_TEST_SEAMS)
  // takes what MJPOLICY_TEST_GPU says in their place; any other build refuses to run on a GPU with
  // it, or MJPOLICY_TEST_FLIP_WEIGHT, set. Throws Error(kEnvironment) where there is no device, or
  // no code for it.
  static const GpuTraits& Current();
  // Of a GPU that need not be here, with the code that the preset `release` has for it: "h200",
  // "a100". Throws Error naming the known ones.
  static GpuTraits Named(const std::string& name);
  // What every Hopper counts as where a choice is part of the bits: 132 multiprocessors.
  static GpuTraits Hopper();
  static std::vector<std::string> Names();
};

// Bytes of shared memory that a block may have on every GPU of 9.0.
inline constexpr int kMaxSharedBytesSm90 = 227 * 1024;

// `traits` with the fields that `text` names in other values: "capability=80 code=80 shared=99
// sms=108 clusters=1 wgmma=0 cooperative=1", shared in KiB. Throws Error naming what is unknown.
GpuTraits OverriddenTraits(GpuTraits traits, const std::string& text);

// The oldest that the program runs on: asynchronous copies and the tensor cores' formats.
inline constexpr int kOldestCapability = 80;
// Throws Error(kEnvironment) where the program does not run on `gpu`: it is older than 8.0, or this
// build has no code for it. The text says what the GPU is, what the build holds and what to run.
void CheckRuns(const GpuTraits& gpu);

// Where in the weights a build for tests plants a fault, from 0 to 1 of the way:
// policy/cuda/device_weights.cc.
inline constexpr const char* kTestFaultVariable = "MJPOLICY_TEST_FLIP_WEIGHT";

// Architectures of the code in this build, as CMake names them: "90a", "80-virtual;90a".
const char* BuiltArchitectures();

// "9.0" of 90.
std::string CapabilityText(int capability);

// The command that builds for every GPU that the program runs on.
inline constexpr const char* kBuildForEveryGpu = "scripts/build release";

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_GPU_TRAITS_H_
