#include "plugin/pictures/egl_context.h"

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/dynamic_library.h"
#include "base/error.h"

namespace mjp {
namespace {

// The functions of libEGL.
struct Egl {
  PFNEGLGETPROCADDRESSPROC GetProcAddress;
  PFNEGLGETERRORPROC GetError;
  PFNEGLQUERYSTRINGPROC QueryString;
  PFNEGLINITIALIZEPROC Initialize;
  PFNEGLBINDAPIPROC BindApi;
  PFNEGLCHOOSECONFIGPROC ChooseConfig;
  PFNEGLCREATECONTEXTPROC CreateContext;
  PFNEGLDESTROYCONTEXTPROC DestroyContext;
  PFNEGLMAKECURRENTPROC MakeCurrent;
  // extensions; null where missing
  PFNEGLQUERYDEVICESEXTPROC QueryDevices;
  PFNEGLQUERYDEVICESTRINGEXTPROC QueryDeviceString;
  PFNEGLQUERYDEVICEATTRIBEXTPROC QueryDeviceAttrib;
  PFNEGLGETPLATFORMDISPLAYEXTPROC GetPlatformDisplay;
};

constexpr char kRemedy[] =
    "; install a GL driver (Debian: libegl1 and libgl1-mesa-dri, or the GPU's own), or choose a "
    "renderer that needs none";

Egl OpenEgl() {
  const DynamicLibrary library({"libEGL.so.1"}, RTLD_NOW | RTLD_GLOBAL, kRemedy);
  Egl egl = {};
  library.Find(egl.GetProcAddress, "eglGetProcAddress");
  library.Find(egl.GetError, "eglGetError");
  library.Find(egl.QueryString, "eglQueryString");
  library.Find(egl.Initialize, "eglInitialize");
  library.Find(egl.BindApi, "eglBindAPI");
  library.Find(egl.ChooseConfig, "eglChooseConfig");
  library.Find(egl.CreateContext, "eglCreateContext");
  library.Find(egl.DestroyContext, "eglDestroyContext");
  library.Find(egl.MakeCurrent, "eglMakeCurrent");
  const auto extension = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(egl.GetProcAddress(name));
  };
  extension(egl.QueryDevices, "eglQueryDevicesEXT");
  extension(egl.QueryDeviceString, "eglQueryDeviceStringEXT");
  extension(egl.QueryDeviceAttrib, "eglQueryDeviceAttribEXT");
  extension(egl.GetPlatformDisplay, "eglGetPlatformDisplayEXT");
  if (!egl.GetPlatformDisplay) {
    throw EnvironmentError("libEGL lacks EGL_EXT_platform_base" + std::string(kRemedy));
  }
  return egl;
}

// Mesa keeps threads for its cache of shaders and ends them from exit(), also in a child that
// fork() made, which does not have them: it would wait for ever. The cache saves less than 0.1 s of
// a process. A host that has set the variable knows better.
void DoWithoutShaderCache() { setenv("MESA_SHADER_CACHE_DISABLE", "true", /*overwrite=*/0); }

const Egl& GetEgl() {
  static const Egl egl = [] {
    DoWithoutShaderCache();
    return OpenEgl();
  }();
  return egl;
}

std::string ErrorName(EGLint error) {
  constexpr const char* kNames[] = {
      "EGL_SUCCESS",       "EGL_NOT_INITIALIZED",     "EGL_BAD_ACCESS",
      "EGL_BAD_ALLOC",     "EGL_BAD_ATTRIBUTE",       "EGL_BAD_CONFIG",
      "EGL_BAD_CONTEXT",   "EGL_BAD_CURRENT_SURFACE", "EGL_BAD_DISPLAY",
      "EGL_BAD_MATCH",     "EGL_BAD_NATIVE_PIXMAP",   "EGL_BAD_NATIVE_WINDOW",
      "EGL_BAD_PARAMETER", "EGL_BAD_SURFACE",         "EGL_CONTEXT_LOST"};
  const int index = error - EGL_SUCCESS;
  if (index >= 0 && index < static_cast<int>(std::size(kNames))) return kNames[index];
  return "EGL error " + std::to_string(error);
}

// One way to a display.
struct Candidate {
  std::string name;
  EGLenum platform;
  void* native;
  int cuda_device;  // what CUDA calls it; negative: not one of CUDA's
  int rank;         // lower is tried first
};

bool HasWord(const char* words, std::string_view word) {
  return words && std::string_view(words).find(word) != std::string_view::npos;
}

// Device `i`, ranked: the CUDA device asked for, then GPUs, then software.
Candidate DeviceCandidate(const Egl& egl, int i, EGLDeviceEXT device, int cuda_device) {
  const char* extensions =
      egl.QueryDeviceString ? egl.QueryDeviceString(device, EGL_EXTENSIONS) : nullptr;
  EGLAttrib ordinal = -1;
  if (!egl.QueryDeviceAttrib || !HasWord(extensions, "EGL_NV_device_cuda") ||
      !egl.QueryDeviceAttrib(device, EGL_CUDA_DEVICE_NV, &ordinal)) {
    ordinal = -1;
  }
  const bool wanted = ordinal >= 0 && ordinal == cuda_device;
  const int rank = HasWord(extensions, "EGL_MESA_device_software") ? 2 : wanted ? 0 : 1;
  return {"EGL device " + std::to_string(i), EGL_PLATFORM_DEVICE_EXT, device,
          static_cast<int>(ordinal), rank};
}

std::vector<Candidate> FindCandidates(const Egl& egl, int cuda_device) {
  constexpr int kMostDevices = 64;
  std::vector<Candidate> candidates;
  EGLDeviceEXT devices[kMostDevices];
  EGLint count = 0;
  if (egl.QueryDevices && egl.QueryDevices(kMostDevices, devices, &count)) {
    for (int i = 0; i < count; ++i)
      candidates.push_back(DeviceCandidate(egl, i, devices[i], cuda_device));
  }
  if (HasWord(egl.QueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS), "EGL_MESA_platform_surfaceless")) {
    candidates.push_back({"surfaceless Mesa", EGL_PLATFORM_SURFACELESS_MESA, nullptr, -1, 3});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
  return candidates;
}

// Makes a context of `candidate` current; returns "" or the call that failed and its error.
std::string TryCandidate(const Egl& egl, const Candidate& candidate) {
  const auto failed = [&](const char* call) { return call + (": " + ErrorName(egl.GetError())); };
  const EGLDisplay display = egl.GetPlatformDisplay(candidate.platform, candidate.native, nullptr);
  if (display == EGL_NO_DISPLAY) return failed("eglGetPlatformDisplayEXT");
  if (!egl.Initialize(display, nullptr, nullptr)) return failed("eglInitialize");
  if (!egl.BindApi(EGL_OPENGL_API)) return failed("eglBindAPI(EGL_OPENGL_API)");
  constexpr EGLint kConfig[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                                EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (!egl.ChooseConfig(display, kConfig, &config, 1, &count)) return failed("eglChooseConfig");
  if (count == 0) return "no EGL configuration for OpenGL";
  const EGLContext context = egl.CreateContext(display, config, EGL_NO_CONTEXT, nullptr);
  if (context == EGL_NO_CONTEXT) return failed("eglCreateContext");
  if (!egl.MakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) {
    std::string reason = failed("eglMakeCurrent");
    egl.DestroyContext(display, context);
    return reason;
  }
  return "";
}

// "renderer, OpenGL version" of the current context; "" where it does not say.
std::string DescribeCurrent(const Egl& egl) {
  constexpr unsigned kRenderer = 0x1F01, kVersion = 0x1F02;  // GL_RENDERER, GL_VERSION
  using GetString = const unsigned char* (*)(unsigned);
  const auto get_string = reinterpret_cast<GetString>(egl.GetProcAddress("glGetString"));
  if (!get_string || !get_string(kRenderer) || !get_string(kVersion)) return "";
  return std::string(reinterpret_cast<const char*>(get_string(kRenderer))) + ", OpenGL " +
         reinterpret_cast<const char*>(get_string(kVersion));
}

}  // namespace

EglContext::EglContext(int cuda_device) {
  const Egl& egl = GetEgl();
  std::string attempts;
  for (const Candidate& candidate : FindCandidates(egl, cuda_device)) {
    std::string reason = TryCandidate(egl, candidate);
    if (reason.empty()) {
      description_ = DescribeCurrent(egl);
      cuda_device_ = candidate.cuda_device;
      if (!description_.empty()) return;
      reason = "OpenGL does not answer";
    }
    attempts += (attempts.empty() ? "" : "; ") + candidate.name + ": " + reason;
  }
  if (attempts.empty()) attempts = "EGL offers neither a device nor surfaceless Mesa";
  throw EnvironmentError("cannot make an OpenGL context without a window (" + attempts + ")" +
                         kRemedy);
}

void (*EglContext::FindAny(const char* name))() { return GetEgl().GetProcAddress(name); }

bool EglContext::software() const {
  for (const char* name : {"llvmpipe", "softpipe", "swrast", "Software Rasterizer"}) {
    if (description_.find(name) != std::string::npos) return true;
  }
  return false;
}

}  // namespace mjp
