#ifndef TASKS_PUSHT_PICTURES_FLAT_SCENE_DRAWER_H_
#define TASKS_PUSHT_PICTURES_FLAT_SCENE_DRAWER_H_

#include <cstddef>
#include <span>

#include "policy/scene_drawer.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp {

// Draws Push-T as RasteriseCpu does, on the CPU and the GPU; a scene's bytes are a FlatScene.
// For PolicyOptions::scene_drawer.
const SceneDrawer& FlatSceneDrawer();

// `scenes` as that drawer and PolicyInput take them.
inline std::span<const std::byte> SceneBytes(std::span<const FlatScene> scenes) {
  return std::as_bytes(scenes);
}

}  // namespace mjp

#endif  // TASKS_PUSHT_PICTURES_FLAT_SCENE_DRAWER_H_
