#include "plugin/pictures/egl_context.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/error.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

// A context made on a thread of its own, where it stays current; null where there is no EGL.
std::unique_ptr<mjp::EglContext> MakeContext(int cuda_device, std::string* why) {
  std::unique_ptr<mjp::EglContext> context;
  std::thread([&] {
    try {
      context = std::make_unique<mjp::EglContext>(cuda_device);
    } catch (const mjp::Error& error) {
      *why = error.what();
    }
  }).join();
  return context;
}

TEST(EglContextTest, DrawsOnTheGpuOfThePolicy) {
  DEVICE_OR_SKIP();
  int devices = 0;
  mjp::CheckCuda(cudaGetDeviceCount(&devices), "device count");
  for (int device = 0; device < devices; ++device) {
    std::string why;
    const auto context = MakeContext(device, &why);
    if (!context) GTEST_SKIP() << why;
    if (context->description().find("NVIDIA") == std::string::npos)
      GTEST_SKIP() << "no OpenGL driver of the GPU: " << context->description();
    EXPECT_EQ(context->cuda_device(), device) << context->description();
  }
}

}  // namespace
