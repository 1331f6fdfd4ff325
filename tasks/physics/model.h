#ifndef TASKS_PHYSICS_MODEL_H_
#define TASKS_PHYSICS_MODEL_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>

// Owners of MuJoCo's model and data, and how a model is found and loaded, for every task.

namespace mjp::app {

struct ModelDeleter {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
};
struct DataDeleter {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using ModelPtr = std::unique_ptr<mjModel, ModelDeleter>;
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

// Loads an MJCF file. Throws Error with the compiler's own text where it cannot be compiled.
ModelPtr LoadModel(const std::string& path);

// Allocates the data of a simulation of `model`. Throws Error where MuJoCo cannot.
DataPtr MakeData(const mjModel* model);

// The path of a model of this project ("pusht.xml"): in MJPOLICY_MODELS if that is set, then in the
// source tree this program was built from, then where it was installed. Throws Error if in none.
std::string ModelPath(const std::string& file);

}  // namespace mjp::app

#endif  // TASKS_PHYSICS_MODEL_H_
