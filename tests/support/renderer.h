#ifndef TESTS_SUPPORT_RENDERER_H_
#define TESTS_SUPPORT_RENDERER_H_

#include <string>

#include "base/error.h"
#include "plugin/pictures/mujoco_renderer.h"

namespace mjp_test {

// Why MuJoCo's renderer does not run on this machine; empty where it does.
inline std::string RendererLacks() {
  try {
    mjp::MujocoRendererDescription();
    return "";
  } catch (const mjp::Error& error) {
    return error.what();
  }
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_RENDERER_H_
