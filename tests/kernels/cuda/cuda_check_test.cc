// What the program says, by its exit code, about each failure of CUDA: without a GPU.

#include "kernels/cuda/primitives/cuda_check.h"

#include <gtest/gtest.h>

namespace {

using mjp::ExitCode;

struct Row {
  cudaError_t status;
  ExitCode code;
};

constexpr Row kRows[] = {
    // faults of a kernel; a trap of device code is "unspecified launch failure"
    {cudaErrorLaunchFailure, ExitCode::kEnvironment},
    {cudaErrorIllegalAddress, ExitCode::kEnvironment},
    {cudaErrorMisalignedAddress, ExitCode::kEnvironment},
    {cudaErrorInvalidPc, ExitCode::kEnvironment},
    {cudaErrorHardwareStackError, ExitCode::kEnvironment},
    {cudaErrorInvalidAddressSpace, ExitCode::kEnvironment},
    {cudaErrorIllegalInstruction, ExitCode::kEnvironment},
    {cudaErrorAssert, ExitCode::kEnvironment},
    // what the build lacks
    {cudaErrorNoKernelImageForDevice, ExitCode::kEnvironment},
    {cudaErrorUnsupportedPtxVersion, ExitCode::kEnvironment},
    {cudaErrorInvalidDeviceFunction, ExitCode::kEnvironment},
    {cudaErrorInvalidPtx, ExitCode::kEnvironment},
    {cudaErrorInvalidKernelImage, ExitCode::kEnvironment},
    {cudaErrorJitCompilerNotFound, ExitCode::kEnvironment},
    // what the machine lacks
    {cudaErrorNoDevice, ExitCode::kEnvironment},
    {cudaErrorInsufficientDriver, ExitCode::kEnvironment},
    {cudaErrorMemoryAllocation, ExitCode::kEnvironment},
    // what the program asked for
    {cudaErrorInvalidValue, ExitCode::kEnvironment},
    {cudaErrorInvalidConfiguration, ExitCode::kEnvironment},
    {cudaErrorLaunchOutOfResources, ExitCode::kEnvironment},
    {cudaErrorCooperativeLaunchTooLarge, ExitCode::kEnvironment},
    {cudaErrorInvalidClusterSize, ExitCode::kEnvironment},
    {cudaErrorInvalidResourceHandle, ExitCode::kEnvironment},
    {cudaErrorNotSupported, ExitCode::kEnvironment},
    {cudaErrorNotPermitted, ExitCode::kEnvironment},
    {cudaErrorStreamCaptureInvalidated, ExitCode::kEnvironment},
    // what happens to a device that is well the next time
    {cudaErrorECCUncorrectable, ExitCode::kRetryable},
    {cudaErrorNvlinkUncorrectable, ExitCode::kRetryable},
    {cudaErrorContained, ExitCode::kRetryable},
    {cudaErrorLaunchTimeout, ExitCode::kRetryable},
    {cudaErrorDevicesUnavailable, ExitCode::kRetryable},
    {cudaErrorSystemNotReady, ExitCode::kRetryable},
    {cudaErrorMpsServerNotReady, ExitCode::kRetryable},
    {cudaErrorOperatingSystem, ExitCode::kRetryable},
    {cudaErrorUnknown, ExitCode::kRetryable},
};

TEST(CudaCheckTest, TellsWhetherASecondTryHelps) {
  for (const Row& row : kRows) {
    const std::string name = cudaGetErrorName(row.status);
    try {
      mjp::CheckCuda(row.status, "a call");
      ADD_FAILURE() << name << " was taken for success";
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), row.code) << name;
      EXPECT_EQ(std::string(error.what()).find("a call: "), 0u) << error.what();
      EXPECT_EQ(dynamic_cast<const mjp::OutOfDeviceMemory*>(&error) != nullptr,
                row.status == cudaErrorMemoryAllocation)
          << name;
    }
  }
}

TEST(CudaCheckTest, SuccessIsSilent) { EXPECT_NO_THROW(mjp::CheckCuda(cudaSuccess, "a call")); }

}  // namespace
