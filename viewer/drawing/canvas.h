#ifndef VIEWER_DRAWING_CANVAS_H_
#define VIEWER_DRAWING_CANVAS_H_

#include <cstdint>

#include "viewer/layout.h"

namespace mjp::app {

// The window's picture in a framebuffer of its own, without samples: what did not change in it need
// not be drawn again. Needs a current OpenGL context from its making to its end.
class Canvas {
 public:
  Canvas() = default;
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  // Makes it this large. Returns whether it was not, and so holds nothing.
  bool Resize(int width, int height);
  // Draws into `area` of it alone from now on, filled with the theme's background.
  void Begin(const Area& area) const;
  // Copies as much of a framebuffer, from its corner on, as `area` has room for, reducing samples.
  void Paste(unsigned framebuffer, const Area& area) const;
  // Copies it into the window.
  void Show() const;
  // Its pixels, RGB, row 0 at the bottom.
  void Read(uint8_t* rgb) const;

 private:
  unsigned framebuffer_ = 0, texture_ = 0;
  int width_ = 0, height_ = 0;
};

}  // namespace mjp::app

#endif  // VIEWER_DRAWING_CANVAS_H_
