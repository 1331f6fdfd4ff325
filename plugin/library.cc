#include <mujoco/mujoco.h>

#include "plugin/register.h"

mjPLUGIN_LIB_INIT(mjpolicy) { mjp::RegisterPlugin(); }
