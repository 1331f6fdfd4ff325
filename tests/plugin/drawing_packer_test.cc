// Pictures of known drawings, by whatever OpenGL this machine has.

#include "plugin/pictures/drawing_packer.h"

#include <GL/glcorearb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/picture_resize.h"

namespace mjp {
namespace {

using Bytes = std::vector<uint8_t>;

// What the test itself asks of OpenGL.
struct Gl {
  explicit Gl(const EglContext& context) {
    context.Find("glGenFramebuffers", GenFramebuffers);
    context.Find("glBindTexture", BindTexture);
    context.Find("glTexSubImage2D", TexSubImage2D);
    context.Find("glBindBuffer", BindBuffer);
    context.Find("glGetBufferSubData", GetBufferSubData);
    context.Find("glGenBuffers", GenBuffers);
    context.Find("glBufferData", BufferData);
    context.Find("glDeleteBuffers", DeleteBuffers);
  }
  PFNGLGENFRAMEBUFFERSPROC GenFramebuffers = nullptr;
  PFNGLBINDTEXTUREPROC BindTexture = nullptr;
  PFNGLTEXSUBIMAGE2DPROC TexSubImage2D = nullptr;
  PFNGLBINDBUFFERPROC BindBuffer = nullptr;
  PFNGLGETBUFFERSUBDATAPROC GetBufferSubData = nullptr;
  PFNGLGENBUFFERSPROC GenBuffers = nullptr;
  PFNGLBUFFERDATAPROC BufferData = nullptr;
  PFNGLDELETEBUFFERSPROC DeleteBuffers = nullptr;
};

// A context with a packer, on a thread of its own; skipped where there is none.
void WithPacker(const std::function<void(const Gl&, const DrawingPacker&)>& work) {
  std::string why;
  std::thread([&] {
    try {
      const EglContext context(-1);
      const auto packer = DrawingPacker::Make(context);
      if (packer) work(Gl(context), *packer);
      if (!packer) why = "OpenGL is too old: " + context.description();
    } catch (const Error& error) {
      why = error.what();
    }
  }).join();
  if (!why.empty()) GTEST_SKIP() << why;
}

// Four bytes a pixel, row 0 at the bottom, every value somewhere.
Bytes Drawing(int width, int height) {
  Bytes rgba(size_t{4} * width * height);
  for (size_t i = 0; i < rgba.size(); ++i) rgba[i] = static_cast<uint8_t>(i * 167 + i / 251);
  return rgba;
}

// Its lower left part as RGB, row 0 at the top.
Bytes Flipped(const Bytes& rgba, int drawing_width, int width, int height) {
  Bytes rgb;
  for (int y = height - 1; y >= 0; --y) {
    for (int x = 0; x < width; ++x) {
      const auto pixel = rgba.begin() + 4 * (ptrdiff_t{y} * drawing_width + x);
      rgb.insert(rgb.end(), pixel, pixel + 3);
    }
  }
  return rgb;
}

unsigned Upload(const Gl& gl, const DrawingPacker& packer, const Bytes& rgba, int width,
                int height) {
  GLuint framebuffer = 0;
  gl.GenFramebuffers(1, &framebuffer);
  const unsigned target = packer.MakeTarget(framebuffer, 0, width, height);
  gl.BindTexture(GL_TEXTURE_2D, target);
  gl.TexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
  gl.BindTexture(GL_TEXTURE_2D, 0);
  return target;
}

unsigned MakeBuffer(const Gl& gl, size_t bytes) {
  GLuint buffer = 0;
  gl.GenBuffers(1, &buffer);
  gl.BindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
  gl.BufferData(GL_SHADER_STORAGE_BUFFER, static_cast<GLsizeiptr>(bytes), nullptr, GL_DYNAMIC_COPY);
  gl.BindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
  return buffer;
}

Bytes Read(const Gl& gl, unsigned buffer, size_t first, size_t bytes) {
  Bytes read(bytes);
  gl.BindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
  gl.GetBufferSubData(GL_SHADER_STORAGE_BUFFER, static_cast<GLintptr>(first),
                      static_cast<GLsizeiptr>(bytes), read.data());
  gl.BindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
  return read;
}

TEST(DrawingPackerTest, PacksAnySizeAnywhere) {
  WithPacker([](const Gl& gl, const DrawingPacker& packer) {
    for (const auto& [width, height] : {std::pair{1, 1}, {2, 1}, {37, 53}, {53, 37}, {640, 480}}) {
      const int wider = width + 7, higher = height + 3;  // as a context of several sizes has it
      const Bytes rgba = Drawing(wider, higher);
      const unsigned target = Upload(gl, packer, rgba, wider, higher);
      const Bytes expected = Flipped(rgba, wider, width, height);
      const size_t stride = (expected.size() + 3) / 4 * 4;
      const unsigned buffer = MakeBuffer(gl, 2 * stride);
      ASSERT_NE(buffer, 0u);
      for (const size_t first : {stride, size_t{0}})
        packer.Pack(target, {width, height, false}, buffer, first);
      for (const size_t first : {size_t{0}, stride}) {
        const Bytes packed = Read(gl, buffer, first, expected.size());
        const auto differs = std::ranges::mismatch(packed, expected).in1 - packed.begin();
        EXPECT_EQ(packed, expected) << width << "x" << height << " from byte " << first << ": byte "
                                    << differs << " is the first that differs";
      }
      gl.DeleteBuffers(1, &buffer);
      packer.DeleteTarget(target);
    }
  });
}

TEST(DrawingPackerTest, ReducesAsTheCpuDoes) {
  WithPacker([](const Gl& gl, const DrawingPacker& packer) {
    const Bytes rgba = Drawing(kDrawingSize, kDrawingSize);
    const unsigned target = Upload(gl, packer, rgba, kDrawingSize, kDrawingSize);
    const Bytes rgb = Flipped(rgba, kDrawingSize, kDrawingSize, kDrawingSize);
    Bytes expected(kReducedBytes), reduced(kReducedBytes);
    ResizeDrawing(rgb.data(), ptrdiff_t{3} * kDrawingSize, expected.data());
    packer.Reduce(target, reduced.data());
    EXPECT_EQ(reduced, expected);
    const unsigned buffer = MakeBuffer(gl, kReducedBytes);
    packer.Pack(target, {kReducedSize, kReducedSize, true}, buffer, 0);
    EXPECT_EQ(Read(gl, buffer, 0, kReducedBytes), expected);
  });
}

}  // namespace
}  // namespace mjp
