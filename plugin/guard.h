#ifndef PLUGIN_GUARD_H_
#define PLUGIN_GUARD_H_

#include <mujoco/mujoco.h>

#include <exception>

namespace mjp {

// True of a model that the compiler only tries: it signs what it gives away.
inline bool WithinCompiler(const mjModel* model) { return model->signature == 0; }

// Says `text` where the host shows its warnings, as coming from this plugin.
inline void Warn(const char* text) {
  mju_warning("diffusion policy: %.900s", text);  // the engine cuts messages at 1024 characters
}

// Runs `function` as the body of a callback of the engine: an exception becomes one warning and
// the result `failed`, because nothing may be thrown through the engine's C frames.
template <typename Function, typename Result>
Result Guarded(Result failed, Function&& function) noexcept {
  try {
    return function();
  } catch (const std::exception& e) {
    Warn(e.what());
  } catch (...) {
    Warn("unknown exception");
  }
  return failed;
}

}  // namespace mjp

#endif  // PLUGIN_GUARD_H_
