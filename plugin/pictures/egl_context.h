#ifndef PLUGIN_PICTURES_EGL_CONTEXT_H_
#define PLUGIN_PICTURES_EGL_CONTEXT_H_

#include <string>

namespace mjp {

// An OpenGL context without a window, made through EGL. libEGL is opened at need, so a program
// that never draws does not ask for it.
class EglContext {
 public:
  // Makes a context and makes it current on the calling thread, where it stays. Tried in order:
  // the GPU that CUDA calls `cuda_device` (if not negative), the other GPUs, software devices,
  // Mesa's surfaceless platform. Throws Error(kEnvironment) listing what each attempt said.
  explicit EglContext(int cuda_device);
  EglContext(const EglContext&) = delete;
  EglContext& operator=(const EglContext&) = delete;

  // What OpenGL calls its renderer, and its version.
  const std::string& description() const { return description_; }
  // Whether that is a program on the CPU: one of Mesa's.
  bool software() const;
  // What CUDA calls the GPU that draws; negative: not one of CUDA's.
  int cuda_device() const { return cuda_device_; }

  // Points `function` at OpenGL's `name`; false where there is none.
  template <typename Function>
  bool Find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(FindAny(name));
    return function != nullptr;
  }

 private:
  static void (*FindAny(const char* name))();

  std::string description_;
  int cuda_device_ = -1;
};

}  // namespace mjp

#endif  // PLUGIN_PICTURES_EGL_CONTEXT_H_
