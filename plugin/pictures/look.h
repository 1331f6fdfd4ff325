#ifndef PLUGIN_PICTURES_LOOK_H_
#define PLUGIN_PICTURES_LOOK_H_

#include <mujoco/mujoco.h>

#include <cstdint>

// What a picture depends on beside the pose: hosts recolour, resize and relight a model while it
// runs, and a batch gives each simulation a model of its own.

namespace mjp {

// A hash of every field of `model` that rendering a pose reads: kinematics, geoms, sites, cameras,
// lights, materials, textures, meshes, visual options. Less than 2^53: a state holds it exactly.
uint64_t HashLook(const mjModel* model);

// A hash of those of which OpenGL keeps a copy once a context was made for the model.
uint64_t HashUploads(const mjModel* model);

}  // namespace mjp

#endif  // PLUGIN_PICTURES_LOOK_H_
