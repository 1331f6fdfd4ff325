#ifndef POLICY_PICTURES_PICTURE_LOOK_H_
#define POLICY_PICTURES_PICTURE_LOOK_H_

#include <map>
#include <span>
#include <string>

#include "base/json_forward.h"

// What of a picture the renderer decides, whatever the scene. A checkpoint has its training's in
// look.json, a data set in its features of pictures (docs/CHECKPOINTS.md).

namespace mjp {

struct CameraFeature;  // policy/checkpoint/config.h

struct PictureLook {
  std::string renderer;       // who drew: "mujoco", or Push-T's "raster"
  int height = 0, width = 0;  // pixels as drawn, before they were resized to what the policy gets
  // Of "mujoco" alone: "raster" has no such choice.
  int samples = 1;  // of each pixel
  bool shadows = false, reflections = false, skybox = false, haze = false, fog = false;

  bool operator==(const PictureLook&) const = default;
};

// By the name of the camera's feature; a camera whose look is not known has none.
using PictureLooks = std::map<std::string, PictureLook>;

// As files have it.
Json LookToJson(const PictureLook& look);

// Reads what LookToJson writes; `where` names the object in errors. Throws Error naming the key for
// a renderer, a key or a value that is not known.
PictureLook ParseLook(const Json& json, const std::string& where);

// The file of a checkpoint's folder. It changes no action, so that it is not of the identity.
inline constexpr char kLookFile[] = "look.json";

// Reads such a file, an object of looks by camera; empty where there is none. Throws Error as
// ParseLook does, and for one that is not of `cameras`.
PictureLooks ReadLooks(const std::string& path, std::span<const CameraFeature> cameras);
Json LooksToJson(const PictureLooks& looks);

// "by mujoco, at 160 x 120, with 1 sample a pixel, without shadows, with reflections, ..."
std::string LookText(const PictureLook& look);

// What a policy sees otherwise than its training did where `drawn` is the look of each of its
// cameras, and what to do, as the end of a sentence about it; "" where it sees the same, or one of
// the two is not known.
std::string UnlikeTraining(std::span<const CameraFeature> cameras, const PictureLooks& trained,
                           std::span<const PictureLook> drawn);

}  // namespace mjp

#endif  // POLICY_PICTURES_PICTURE_LOOK_H_
