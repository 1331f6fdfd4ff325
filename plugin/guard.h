#ifndef PLUGIN_GUARD_H_
#define PLUGIN_GUARD_H_

#include <mujoco/mujoco.h>

#include <algorithm>
#include <exception>

namespace mjp {

// The model that the engine's compiler is making on this thread; null where none is known.
inline thread_local const mjModel* model_in_compiler = nullptr;

// True of a model whose bodies the engine puts to sleep as it makes or resets an mjData.
inline bool HasSleepers(const mjModel* model) {
  return (model->opt.enableflags & mjENBL_SLEEP) != 0 &&
         std::count(model->tree_sleep_policy, model->tree_sleep_policy + model->ntree,
                    mjSLEEP_INIT) > 0;
}

// True of a model that the compiler only tries. No single sign will do: a model that was read from
// an .mjb file or a pickle has no signature either, so the compiler is known by what it alone does:
// it asks for the size of the state (register.cc notes that) and then tries without contacts, or
// with them where bodies begin asleep.
inline bool WithinCompiler(const mjModel* model) {
  return model == model_in_compiler && model->signature == 0 &&
         ((model->opt.disableflags & mjDSBL_CONTACT) != 0 || HasSleepers(model));
}

// True within mj_makeData and mj_resetData, whose forward pass puts bodies of sleep="init" to
// sleep: what the episode starts from is not there yet. The world body is awake in that pass alone.
inline bool WithinReset(const mjModel* model, const mjData* data) {
  return (model->opt.enableflags & mjENBL_SLEEP) != 0 && data->body_awake[0] == mjS_AWAKE;
}

// Says `text` where the host shows its warnings, as coming from this plugin.
inline void Warn(const char* text) {
  mju_warning("mjpolicy: %.900s", text);  // the engine cuts messages at 1024 characters
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
