#ifndef PLUGIN_PICTURES_DRAWING_PACKER_H_
#define PLUGIN_PICTURES_DRAWING_PACKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "plugin/pictures/egl_context.h"

namespace mjp {

// How a drawing becomes a picture (height, width, 3) RGB, row 0 at the top.
struct Packing {
  int width = 0, height = 0;  // of the picture
  bool reduce = false;        // from 512 x 512 by ResizeDrawing; the picture is 96 x 96 then
};

// Memory of another library as OpenGL knows it.
struct ImportedBuffer {
  unsigned buffer = 0, memory = 0;  // names; 0: none
};

// Makes pictures of drawings by OpenGL, where these are. They stay there in a buffer, for CUDA to
// take, or come to the host: of a reduced one 27 KB in place of 768 KB. Everything on the thread
// that the context is current on, which lives as long as the process; so does this.
class DrawingPacker {
 public:
  // Null where OpenGL is older than 4.4, or has no memory for it: mjr_readPixels remains.
  static std::unique_ptr<DrawingPacker> Make(const EglContext& context);
  ~DrawingPacker();
  DrawingPacker(const DrawingPacker&) = delete;
  DrawingPacker& operator=(const DrawingPacker&) = delete;

  // Makes `framebuffer` keep its colours, width x height, in a texture, whose name is returned,
  // and no longer in the renderbuffer `colours` (0: in none). The texture is the caller's, for
  // DeleteTarget. Throws Error(kEnvironment), and leaves the framebuffer as it is.
  unsigned MakeTarget(unsigned framebuffer, unsigned colours, int width, int height) const;
  void DeleteTarget(unsigned target) const;
  // Makes a buffer of all `bytes` of the memory that `descriptor` stands for, which is OpenGL's
  // from then on. None where it does not take such memory. It is the caller's, for Forget.
  ImportedBuffer Import(int descriptor, size_t bytes) const;
  void Forget(const ImportedBuffer& imported) const;
  // Enqueues `bytes` to the beginning of `buffer`.
  void Write(unsigned buffer, std::span<const uint8_t> bytes) const;

  // Enqueues the picture of the lower left part of `target`, row 0 at the bottom, to `buffer`, from
  // byte `first` on, a multiple of 4. It is written in whole words of 4 bytes.
  void Pack(unsigned target, const Packing& packing, unsigned buffer, size_t first) const;
  // Waits until all is packed. Throws Error(kEnvironment) where OpenGL does not get it done.
  void Wait() const;
  // The picture that ResizeDrawing makes, to rgb (96, 96, 3). Throws Error(kEnvironment) where
  // OpenGL does not get it done.
  void Reduce(unsigned target, uint8_t* rgb) const;

 private:
  struct Gl;
  explicit DrawingPacker(std::unique_ptr<Gl> gl);
  void ClearErrors() const;
  bool Prepare();

  std::unique_ptr<Gl> gl_;
  unsigned program_ = 0, picture_ = 0;  // names of a program and a buffer
};

}  // namespace mjp

#endif  // PLUGIN_PICTURES_DRAWING_PACKER_H_
