#include "plugin/pictures/cuda_buffer.h"

#include <cstdlib>

#include "base/error.h"

#ifdef MJPOLICY_HAVE_CUDA
#include <cuda_gl_interop.h>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/picture_memory.h"
#endif

namespace mjp {
namespace {

constexpr const char* kTestVariable = "MJPOLICY_TEST_HOST_PICTURES";

bool TestsWantNone() {
  if (std::getenv(kTestVariable) == nullptr) return false;
#ifdef MJPOLICY_TEST_SEAMS
  return true;
#else
  throw EnvironmentError(std::string(kTestVariable) +
                         " is set, and only a build for tests reads it: unset it");
#endif
}

// What stands in the way before CUDA is asked; "" for nothing.
std::string Obstacle(const EglContext& context, int device) {
  if (TestsWantNone()) return std::string(kTestVariable) + " is set";
  if (context.software()) return "OpenGL draws on the CPU";
  if (device < 0 || context.cuda_device() != device) return "OpenGL draws on another GPU";
  return "";
}

}  // namespace

CudaBuffer::CudaBuffer(const DrawingPacker& packer, const Contents& contents)
    : packer_(packer), contents_(contents) {}

#ifdef MJPOLICY_HAVE_CUDA

struct CudaBuffer::Cuda {
  CudaOwner<cudaGraphicsResource_t, &cudaGraphicsUnregisterResource> resource;
  CudaStream stream;
  PictureMemory memory;
};

std::unique_ptr<CudaBuffer> CudaBuffer::Make(const EglContext& context, const DrawingPacker& packer,
                                             const Contents& contents, std::string* why) {
  *why = Obstacle(context, contents.device);
  if (!why->empty()) return nullptr;
  std::unique_ptr<CudaBuffer> made(new CudaBuffer(packer, contents));
  made->buffer_ = packer.MakeBuffer(contents.count * contents.stride());
  if (made->buffer_ == 0) {
    *why = "OpenGL has no memory for a buffer";
    return nullptr;
  }
  cudaGraphicsResource_t resource = nullptr;
  cudaError_t status = cudaSetDevice(contents.device);
  if (status == cudaSuccess) {
    status =
        cudaGraphicsGLRegisterBuffer(&resource, made->buffer_, cudaGraphicsRegisterFlagsReadOnly);
  }
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // said here, not to whoever calls CUDA next
    *why = std::string("CUDA does not take OpenGL's buffers (") + cudaGetErrorString(status) + ")";
    return nullptr;
  }
  made->cuda_.reset(new Cuda{
      decltype(Cuda::resource)(resource), {}, {contents.count * contents.bytes, contents.device}});
  made->cuda_->stream = MakeCudaStream();
  return made;
}

std::shared_ptr<GpuPicture> CudaBuffer::Take() {
  const cudaStream_t stream = cuda_->stream.get();
  cudaGraphicsResource_t resource = cuda_->resource.get();
  return cuda_->memory.Make([&](uint8_t* rgb) {
    // CUDA's work in the stream begins when OpenGL's is done
    CheckCuda(cudaGraphicsMapResources(1, &resource, stream), "OpenGL's buffer of pictures");
    void* packed = nullptr;
    size_t bytes = 0;
    cudaError_t status = cudaGraphicsResourceGetMappedPointer(&packed, &bytes, resource);
    if (status == cudaSuccess) {
      status = cudaMemcpy2DAsync(rgb, contents_.bytes, packed, contents_.stride(), contents_.bytes,
                                 contents_.count, cudaMemcpyDeviceToDevice, stream);
    }
    const cudaError_t unmapped = cudaGraphicsUnmapResources(1, &resource, stream);
    CheckCuda(status, "copy of OpenGL's pictures");
    CheckCuda(unmapped, "OpenGL's buffer of pictures");
    CheckCuda(cudaStreamSynchronize(stream), "copy of OpenGL's pictures");
  });
}

#else

struct CudaBuffer::Cuda {};

std::unique_ptr<CudaBuffer> CudaBuffer::Make(const EglContext& context, const DrawingPacker&,
                                             const Contents& contents, std::string* why) {
  *why = Obstacle(context, contents.device);
  if (why->empty()) *why = "this build has no CUDA";
  return nullptr;
}

std::shared_ptr<GpuPicture> CudaBuffer::Take() { return nullptr; }

#endif

CudaBuffer::~CudaBuffer() {
  cuda_ = nullptr;  // CUDA lets go first
  if (buffer_ != 0) packer_.DeleteBuffer(buffer_);
}

std::string CudaBufferText(const EglContext& context) {
  std::string why = "OpenGL is too old";
  const std::unique_ptr<DrawingPacker> packer = DrawingPacker::Make(context);
  if (packer && CudaBuffer::Make(context, *packer, {1, 4, context.cuda_device()}, &why))
    return "CUDA takes its pictures where they are";
  return "its pictures come to a policy by way of the host: " + why;
}

}  // namespace mjp
