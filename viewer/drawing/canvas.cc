#include "viewer/drawing/canvas.h"

#define GL_GLEXT_PROTOTYPES
#include <GL/gl.h>
#include <GL/glext.h>

#include "base/error.h"

namespace mjp::app {

Canvas::~Canvas() {
  if (framebuffer_ != 0) glDeleteFramebuffers(1, &framebuffer_);
  if (texture_ != 0) glDeleteTextures(1, &texture_);
}

bool Canvas::Resize(int width, int height) {
  if (width == width_ && height == height_) return false;
  if (framebuffer_ == 0) {
    glGenFramebuffers(1, &framebuffer_);
    glGenTextures(1, &texture_);
  }
  width_ = width;
  height_ = height;
  glBindTexture(GL_TEXTURE_2D, texture_);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture_, 0);
  if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) {
    throw mjp::EnvironmentError("OpenGL cannot make a framebuffer of the window's size");
  }
  return true;
}

void Canvas::Begin(const Area& area) const {
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  glViewport(0, 0, width_, height_);
  glScissor(static_cast<int>(area.x), height_ - static_cast<int>(area.y + area.height),
            static_cast<int>(area.width), static_cast<int>(area.height));
  glEnable(GL_SCISSOR_TEST);
  glClearColor(13 / 255.0f, 15 / 255.0f, 20 / 255.0f, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  glDisable(GL_SCISSOR_TEST);
}

void Canvas::Paste(unsigned framebuffer, const Area& area) const {
  const int width = static_cast<int>(area.width), height = static_cast<int>(area.height);
  const int left = static_cast<int>(area.x), bottom = height_ - static_cast<int>(area.y) - height;
  glDisable(GL_SCISSOR_TEST);  // which holds for copies too
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer_);
  glBlitFramebuffer(0, 0, width, height, left, bottom, left + width, bottom + height,
                    GL_COLOR_BUFFER_BIT, GL_NEAREST);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
}

void Canvas::Show() const {
  glDisable(GL_SCISSOR_TEST);
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer_);
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  glBlitFramebuffer(0, 0, width_, height_, 0, 0, width_, height_, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
}

void Canvas::Read(uint8_t* rgb) const {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer_);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width_, height_, GL_RGB, GL_UNSIGNED_BYTE, rgb);
}

}  // namespace mjp::app
