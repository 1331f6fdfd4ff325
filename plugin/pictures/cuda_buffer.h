#ifndef PLUGIN_PICTURES_CUDA_BUFFER_H_
#define PLUGIN_PICTURES_CUDA_BUFFER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "plugin/pictures/drawing_packer.h"
#include "plugin/pictures/egl_context.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp {

// A buffer of OpenGL's that CUDA reads where it is: packed pictures come into the policy's memory
// without the host. Everything on the thread that the context is current on.
class CudaBuffer {
 public:
  // What is packed into it: the pictures of `count` cameras, each of `bytes`, for the GPU that CUDA
  // calls `device`.
  struct Contents {
    int count = 1;
    size_t bytes = 0;
    int device = 0;
    // from one picture in the buffer to the next: whole words
    size_t stride() const { return (bytes + 3) / 4 * 4; }
  };

  // Null where there is no such way, and `why` says what is missing: OpenGL draws elsewhere, the
  // build has no CUDA, the driver refuses. Throws Error(kEnvironment) where the variable of tests,
  // MJPOLICY_TEST_HOST_PICTURES, is set in a build that is not for tests. There it asks for none.
  static std::unique_ptr<CudaBuffer> Make(const EglContext& context, const DrawingPacker& packer,
                                          const Contents& contents, std::string* why);
  ~CudaBuffer();
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  unsigned name() const { return buffer_; }  // OpenGL's, for DrawingPacker::Pack
  const Contents& contents() const { return contents_; }
  // Waits for what was packed, and takes it out. Throws Error.
  std::shared_ptr<GpuPicture> Take();

 private:
  struct Cuda;
  CudaBuffer(const DrawingPacker& packer, const Contents& contents);

  const DrawingPacker& packer_;
  const Contents contents_;
  unsigned buffer_ = 0;  // 0: none
  std::unique_ptr<Cuda> cuda_;
};

// Whether the pictures of `context` can be taken by CUDA where they are, in words for people.
std::string CudaBufferText(const EglContext& context);

}  // namespace mjp

#endif  // PLUGIN_PICTURES_CUDA_BUFFER_H_
