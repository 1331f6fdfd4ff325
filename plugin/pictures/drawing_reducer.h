#ifndef PLUGIN_PICTURES_DRAWING_REDUCER_H_
#define PLUGIN_PICTURES_DRAWING_REDUCER_H_

#include <cstdint>
#include <memory>

#include "plugin/pictures/egl_context.h"

namespace mjp {

// ResizeDrawing by OpenGL, where the drawing is: the same bytes, of which 27 KB come back in place
// of 768 KB. Everything on the thread that the context is current on, which lives as long as the
// process; so does this.
class DrawingReducer {
 public:
  // Null where OpenGL is older than 4.4, or has no memory for it: ResizeDrawing remains.
  static std::unique_ptr<DrawingReducer> Make(const EglContext& context);
  ~DrawingReducer();
  DrawingReducer(const DrawingReducer&) = delete;
  DrawingReducer& operator=(const DrawingReducer&) = delete;

  // Makes `framebuffer` keep its colours, width x height, in a texture, whose name is returned.
  // The texture is the caller's, for Reduce and DeleteTarget. Throws Error(kEnvironment).
  unsigned MakeTarget(unsigned framebuffer, int width, int height) const;
  void DeleteTarget(unsigned target) const;

  // Reduces the lower left 512 x 512 pixels of `target`, row 0 at the bottom, to rgb (96, 96, 3),
  // row 0 at the top. Throws Error(kEnvironment) where OpenGL does not get it done.
  void Reduce(unsigned target, uint8_t* rgb) const;

 private:
  struct Gl;
  explicit DrawingReducer(std::unique_ptr<Gl> gl);
  bool Prepare();

  std::unique_ptr<Gl> gl_;
  unsigned program_ = 0, picture_ = 0;  // names of a program and a buffer
};

}  // namespace mjp

#endif  // PLUGIN_PICTURES_DRAWING_REDUCER_H_
