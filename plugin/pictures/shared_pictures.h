#ifndef PLUGIN_PICTURES_SHARED_PICTURES_H_
#define PLUGIN_PICTURES_SHARED_PICTURES_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/pictures/drawing_packer.h"
#include "plugin/pictures/egl_context.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp {

// Memory of a GPU that OpenGL writes pictures to and CUDA reads them from: CUDA's, which OpenGL
// imports by a file descriptor (EXT_memory_object_fd), as NVIDIA's sample simpleVulkanMMAP does
// with Vulkan. To draw, CUDA is not asked at all, for each turn between the two costs the GPU some
// 0.1 ms. A picture that nobody holds any more leaves its place to another. It lives as long as its
// pictures, which may end on any thread.
class SharedPictures : public std::enable_shared_from_this<SharedPictures> {
 public:
  // What a picture is: `bytes` in all, on the GPU that CUDA calls `device`.
  struct Contents {
    size_t bytes = 0;
    int device = 0;
  };

  // A picture, and where OpenGL writes it: in `buffer`, from byte `first` on, a multiple of 4. It
  // may write up to a whole word at the end.
  class Place : public GpuPicture {
   public:
    Place(std::shared_ptr<SharedPictures> owner, size_t number);
    ~Place() override;
    unsigned buffer() const;
    size_t first() const;
    void Download(std::span<uint8_t> rgb) const override;

   private:
    const std::shared_ptr<SharedPictures> owner_;
    const size_t number_;
  };

  // Null where there is no such way, and `why` says what is missing: OpenGL draws elsewhere, the
  // build has no CUDA, a driver refuses. Throws Error(kEnvironment) where the variable of tests,
  // MJPOLICY_TEST_HOST_PICTURES, is set in a build that is not for tests. There it asks for none.
  // On the thread of `context`, as Take and Close.
  static std::shared_ptr<SharedPictures> Make(const EglContext& context,
                                              const DrawingPacker& packer, const Contents& contents,
                                              std::string* why);
  ~SharedPictures();
  SharedPictures(const SharedPictures&) = delete;
  SharedPictures& operator=(const SharedPictures&) = delete;

  // A place that nobody holds, of unknown content; null where the GPU has no more memory.
  std::shared_ptr<Place> Take();
  // Nothing is drawn any more: OpenGL lets go. Pictures that somebody holds stay.
  void Close();

 private:
  class Memory;
  struct Slab {
    std::unique_ptr<Memory> memory;
    ImportedBuffer imported;
  };
  SharedPictures(const DrawingPacker& packer, const Contents& contents);
  bool AddSlab(std::string* why);
  bool ReadsWhatIsWritten(const Slab& slab) const;
  size_t stride() const;
  const Slab& SlabOf(size_t number) const { return slabs_[number / kPlaces]; }

  static constexpr size_t kPlaces = 16;  // of a slab
  const DrawingPacker& packer_;
  const Contents contents_;
  const uint64_t generation_;  // of fork()
  std::mutex mutex_;
  std::vector<Slab> slabs_;
  std::vector<size_t> idle_;  // numbers of places
};

// Whether the pictures of `context` can be taken by CUDA where they are, in words for people. On
// the context's thread.
std::string SharedPicturesText(const EglContext& context);

}  // namespace mjp

#endif  // PLUGIN_PICTURES_SHARED_PICTURES_H_
