#include "plugin/pictures/drawing_packer.h"

#include <GL/glcorearb.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/picture_resize.h"

namespace mjp {
namespace {

// A word of the picture, which begins in one pixel and ends in the next. Reduced as in
// kernels/cpu/picture_resize.cc, in the same integers.
constexpr char kShader[] = R"(#version 430
layout(local_size_x = 256) in;
layout(location = 0) uniform ivec4 shape;  // width, height, whether to reduce, first word
layout(binding = 0) uniform sampler2D drawing;
layout(std430, binding = 0) writeonly buffer Picture { uint words[]; };

ivec3 Texel(int x, int y) { return ivec3(round(255.0 * texelFetch(drawing, ivec2(x, y), 0).rgb)); }
ivec3 Tap(int x, int y) { return Texel(x, 511 - y); }
int SecondWeight(int i) { return i % 3 == 0 ? 341 : i % 3 == 1 ? 1024 : 1707; }

ivec3 Reduced(int x, int y) {
  int tap_x = (32 * x + 13) / 6, tap_y = (32 * y + 13) / 6, w = SecondWeight(x), h = SecondWeight(y);
  ivec3 upper = Tap(tap_x, tap_y) * (2048 - w) + Tap(tap_x + 1, tap_y) * w;
  ivec3 lower = Tap(tap_x, tap_y + 1) * (2048 - w) + Tap(tap_x + 1, tap_y + 1) * w;
  return ((((2048 - h) * (upper >> 4)) >> 16) + ((h * (lower >> 4)) >> 16) + 2) >> 2;
}

ivec3 Pixel(int i) {
  int x = i % shape.x, y = i / shape.x;
  if (y >= shape.y) return ivec3(0);
  return shape.z != 0 ? Reduced(x, y) : Texel(x, shape.y - 1 - y);
}

void main() {
  int word = int(gl_GlobalInvocationID.x), pixel = 4 * word / 3;
  if (4 * word >= 3 * shape.x * shape.y) return;
  uvec3 a = uvec3(Pixel(pixel)), b = uvec3(Pixel(pixel + 1));
  uint two[6] = uint[6](a.r, a.g, a.b, b.r, b.g, b.b);
  int first = 4 * word % 3;
  words[shape.w + word] =
      two[first] | two[first + 1] << 8 | two[first + 2] << 16 | two[first + 3] << 24;
}
)";
constexpr GLenum kDedicated = 0x9581;           // GL_DEDICATED_MEMORY_OBJECT_EXT
constexpr GLenum kOpaqueDescriptor = 0x9586;    // GL_HANDLE_TYPE_OPAQUE_FD_EXT
constexpr uint64_t kPatience = 60'000'000'000;  // nanoseconds for a picture
constexpr int kWordsOfGroup = 256;              // as the shader has it
constexpr Packing kReduced = {kReducedSize, kReducedSize, true};

}  // namespace

// The functions of OpenGL.
struct DrawingPacker::Gl {
  PFNGLGETERRORPROC GetError;
  PFNGLCREATESHADERPROC CreateShader;
  PFNGLSHADERSOURCEPROC ShaderSource;
  PFNGLCOMPILESHADERPROC CompileShader;
  PFNGLDELETESHADERPROC DeleteShader;
  PFNGLCREATEPROGRAMPROC CreateProgram;
  PFNGLATTACHSHADERPROC AttachShader;
  PFNGLLINKPROGRAMPROC LinkProgram;
  PFNGLGETPROGRAMIVPROC GetProgramiv;
  PFNGLDELETEPROGRAMPROC DeleteProgram;
  PFNGLUSEPROGRAMPROC UseProgram;
  PFNGLUNIFORM4IPROC Uniform4i;
  PFNGLGENTEXTURESPROC GenTextures;
  PFNGLDELETETEXTURESPROC DeleteTextures;
  PFNGLBINDTEXTUREPROC BindTexture;
  PFNGLTEXSTORAGE2DPROC TexStorage2D;
  PFNGLBINDFRAMEBUFFERPROC BindFramebuffer;
  PFNGLFRAMEBUFFERTEXTURE2DPROC FramebufferTexture2D;
  PFNGLFRAMEBUFFERRENDERBUFFERPROC FramebufferRenderbuffer;
  PFNGLCHECKFRAMEBUFFERSTATUSPROC CheckFramebufferStatus;
  PFNGLGENBUFFERSPROC GenBuffers;
  PFNGLDELETEBUFFERSPROC DeleteBuffers;
  PFNGLBINDBUFFERPROC BindBuffer;
  PFNGLBINDBUFFERBASEPROC BindBufferBase;
  PFNGLBUFFERSTORAGEPROC BufferStorage;
  PFNGLBUFFERSUBDATAPROC BufferSubData;
  PFNGLMAPBUFFERRANGEPROC MapBufferRange;
  PFNGLDISPATCHCOMPUTEPROC DispatchCompute;
  PFNGLMEMORYBARRIERPROC MemoryBarrier;
  PFNGLFENCESYNCPROC FenceSync;
  PFNGLCLIENTWAITSYNCPROC ClientWaitSync;
  PFNGLDELETESYNCPROC DeleteSync;
  // of EXT_memory_object_fd, which glcorearb.h does not have; null where the driver lacks it
  void (*CreateMemoryObjects)(GLsizei count, GLuint* memory);
  void (*DeleteMemoryObjects)(GLsizei count, const GLuint* memory);
  void (*MemoryObjectParameteriv)(GLuint memory, GLenum parameter, const GLint* value);
  void (*ImportMemoryFd)(GLuint memory, GLuint64 bytes, GLenum kind, GLint descriptor);
  void (*BufferStorageMem)(GLenum target, GLsizeiptr bytes, GLuint memory, GLuint64 first);
  const void* mapped;  // the picture, as the host reads it
};

std::unique_ptr<DrawingPacker> DrawingPacker::Make(const EglContext& context) {
  auto gl = std::make_unique<Gl>();
  bool all = true;
  const auto find = [&](const char* name, auto& function) {
    all = all && context.Find(name, function);
  };
  find("glGetError", gl->GetError);
  find("glCreateShader", gl->CreateShader);
  find("glShaderSource", gl->ShaderSource);
  find("glCompileShader", gl->CompileShader);
  find("glDeleteShader", gl->DeleteShader);
  find("glCreateProgram", gl->CreateProgram);
  find("glAttachShader", gl->AttachShader);
  find("glLinkProgram", gl->LinkProgram);
  find("glGetProgramiv", gl->GetProgramiv);
  find("glDeleteProgram", gl->DeleteProgram);
  find("glUseProgram", gl->UseProgram);
  find("glUniform4i", gl->Uniform4i);
  find("glGenTextures", gl->GenTextures);
  find("glDeleteTextures", gl->DeleteTextures);
  find("glBindTexture", gl->BindTexture);
  find("glTexStorage2D", gl->TexStorage2D);
  find("glBindFramebuffer", gl->BindFramebuffer);
  find("glFramebufferTexture2D", gl->FramebufferTexture2D);
  find("glFramebufferRenderbuffer", gl->FramebufferRenderbuffer);
  find("glCheckFramebufferStatus", gl->CheckFramebufferStatus);
  find("glGenBuffers", gl->GenBuffers);
  find("glDeleteBuffers", gl->DeleteBuffers);
  find("glBindBuffer", gl->BindBuffer);
  find("glBindBufferBase", gl->BindBufferBase);
  find("glBufferStorage", gl->BufferStorage);
  find("glBufferSubData", gl->BufferSubData);
  find("glMapBufferRange", gl->MapBufferRange);
  find("glDispatchCompute", gl->DispatchCompute);
  find("glMemoryBarrier", gl->MemoryBarrier);
  find("glFenceSync", gl->FenceSync);
  find("glClientWaitSync", gl->ClientWaitSync);
  find("glDeleteSync", gl->DeleteSync);
  if (!all) return nullptr;
  find("glCreateMemoryObjectsEXT", gl->CreateMemoryObjects);
  find("glDeleteMemoryObjectsEXT", gl->DeleteMemoryObjects);
  find("glMemoryObjectParameterivEXT", gl->MemoryObjectParameteriv);
  find("glImportMemoryFdEXT", gl->ImportMemoryFd);
  find("glBufferStorageMemEXT", gl->BufferStorageMem);
  std::unique_ptr<DrawingPacker> packer(new DrawingPacker(std::move(gl)));
  return packer->Prepare() ? std::move(packer) : nullptr;
}

DrawingPacker::DrawingPacker(std::unique_ptr<Gl> gl) : gl_(std::move(gl)) {}

DrawingPacker::~DrawingPacker() {
  gl_->DeleteProgram(program_);
  gl_->DeleteBuffers(1, &picture_);
}

// Forgets the errors that others left behind.
void DrawingPacker::ClearErrors() const {
  constexpr int kMost = 16;  // a lost context has no end of them
  for (int i = 0; i < kMost && gl_->GetError() != GL_NO_ERROR; ++i) {
  }
}

// False where OpenGL refuses: older than it must be, or out of memory.
bool DrawingPacker::Prepare() {
  ClearErrors();
  const GLuint shader = gl_->CreateShader(GL_COMPUTE_SHADER);
  const char* text = kShader;
  gl_->ShaderSource(shader, 1, &text, nullptr);
  gl_->CompileShader(shader);
  program_ = gl_->CreateProgram();
  gl_->AttachShader(program_, shader);
  gl_->LinkProgram(program_);
  gl_->DeleteShader(shader);
  constexpr GLbitfield kMapping = GL_MAP_READ_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
  gl_->GenBuffers(1, &picture_);
  gl_->BindBuffer(GL_SHADER_STORAGE_BUFFER, picture_);
  gl_->BufferStorage(GL_SHADER_STORAGE_BUFFER, kReducedBytes, nullptr,
                     kMapping | GL_CLIENT_STORAGE_BIT);
  gl_->mapped = gl_->MapBufferRange(GL_SHADER_STORAGE_BUFFER, 0, kReducedBytes, kMapping);
  gl_->BindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
  GLint linked = 0;
  gl_->GetProgramiv(program_, GL_LINK_STATUS, &linked);
  return linked && gl_->mapped && gl_->GetError() == GL_NO_ERROR;
}

unsigned DrawingPacker::MakeTarget(unsigned framebuffer, unsigned colours, int width,
                                   int height) const {
  ClearErrors();
  GLuint target = 0;
  gl_->GenTextures(1, &target);
  gl_->BindTexture(GL_TEXTURE_2D, target);
  gl_->TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, width, height);
  gl_->BindTexture(GL_TEXTURE_2D, 0);
  if (gl_->GetError() == GL_NO_ERROR) {
    gl_->BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl_->FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, target, 0);
    if (gl_->CheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE) return target;
    gl_->FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colours);
  }
  DeleteTarget(target);
  ClearErrors();
  throw EnvironmentError("OpenGL has no memory for pictures of " + std::to_string(width) + " x " +
                         std::to_string(height) +
                         " pixels; free some of the GPU's, or draw smaller ones");
}

void DrawingPacker::DeleteTarget(unsigned target) const { gl_->DeleteTextures(1, &target); }

ImportedBuffer DrawingPacker::Import(int descriptor, size_t bytes) const {
  if (!gl_->CreateMemoryObjects || !gl_->DeleteMemoryObjects || !gl_->MemoryObjectParameteriv ||
      !gl_->ImportMemoryFd || !gl_->BufferStorageMem) {
    close(descriptor);
    return {};
  }
  ClearErrors();
  ImportedBuffer made;
  gl_->CreateMemoryObjects(1, &made.memory);
  // of one buffer: other memory NVIDIA's driver compresses, and nobody else reads it then
  const GLint dedicated = GL_TRUE;
  gl_->MemoryObjectParameteriv(made.memory, kDedicated, &dedicated);
  gl_->ImportMemoryFd(made.memory, bytes, kOpaqueDescriptor, descriptor);
  if (gl_->GetError() != GL_NO_ERROR) {
    close(descriptor);
    gl_->DeleteMemoryObjects(1, &made.memory);
    return {};
  }
  gl_->GenBuffers(1, &made.buffer);
  gl_->BindBuffer(GL_SHADER_STORAGE_BUFFER, made.buffer);
  gl_->BufferStorageMem(GL_SHADER_STORAGE_BUFFER, static_cast<GLsizeiptr>(bytes), made.memory, 0);
  gl_->BindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
  if (gl_->GetError() == GL_NO_ERROR) return made;
  Forget(made);
  return {};
}

void DrawingPacker::Write(unsigned buffer, std::span<const uint8_t> bytes) const {
  gl_->BindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
  gl_->BufferSubData(GL_SHADER_STORAGE_BUFFER, 0, static_cast<GLsizeiptr>(bytes.size()),
                     bytes.data());
  gl_->BindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
}

void DrawingPacker::Forget(const ImportedBuffer& imported) const {
  gl_->DeleteBuffers(1, &imported.buffer);
  gl_->DeleteMemoryObjects(1, &imported.memory);
}

void DrawingPacker::Pack(unsigned target, const Packing& packing, unsigned buffer,
                         size_t first) const {
  const int words = (packing.width * packing.height * 3 + 3) / 4;
  gl_->BindTexture(GL_TEXTURE_2D, target);
  gl_->BindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer);
  gl_->UseProgram(program_);
  gl_->Uniform4i(0, packing.width, packing.height, packing.reduce, static_cast<GLint>(first / 4));
  gl_->DispatchCompute((words + kWordsOfGroup - 1) / kWordsOfGroup, 1, 1);
  gl_->UseProgram(0);
  gl_->BindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, 0);
  gl_->BindTexture(GL_TEXTURE_2D, 0);
  gl_->MemoryBarrier(GL_ALL_BARRIER_BITS);
}

void DrawingPacker::Wait() const {
  // glFinish takes 0.5 ms longer every now and then
  const GLsync done = gl_->FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  const GLenum end = gl_->ClientWaitSync(done, GL_SYNC_FLUSH_COMMANDS_BIT, kPatience);
  gl_->DeleteSync(done);
  if (end != GL_ALREADY_SIGNALED && end != GL_CONDITION_SATISFIED)
    throw EnvironmentError("OpenGL does not finish a picture; look at the GPU and its driver");
}

void DrawingPacker::Reduce(unsigned target, uint8_t* rgb) const {
  Pack(target, kReduced, picture_, 0);
  Wait();
  std::memcpy(rgb, gl_->mapped, kReducedBytes);
}

}  // namespace mjp
