#include <mujoco/mujoco.h>

#include "plugin/register.h"

mjPLUGIN_LIB_INIT(diffusion_policy) { dp::RegisterPlugin(); }
