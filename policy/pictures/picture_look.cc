#include "policy/pictures/picture_look.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "policy/checkpoint/config.h"

namespace mjp {
namespace {

constexpr char kMujoco[] = "mujoco", kRaster[] = "raster";
constexpr int kMostPixels = 8192, kMostSamples = 64;

struct Effect {
  const char* name;
  bool PictureLook::*on;
};
constexpr Effect kEffects[] = {{"shadows", &PictureLook::shadows},
                               {"reflections", &PictureLook::reflections},
                               {"skybox", &PictureLook::skybox},
                               {"haze", &PictureLook::haze},
                               {"fog", &PictureLook::fog}};

// Each choice of the renderer, as words that follow "drawn"; who draws is the first.
std::vector<std::string> Choices(const PictureLook& look) {
  std::vector<std::string> choices = {
      "by " + look.renderer,
      "at " + std::to_string(look.width) + " x " + std::to_string(look.height)};
  if (look.renderer != kMujoco) return choices;
  choices.push_back("with " + std::to_string(look.samples) +
                    (look.samples == 1 ? " sample a pixel" : " samples a pixel"));
  for (const Effect& effect : kEffects) {
    choices.push_back((look.*effect.on ? "with " : "without ") + std::string(effect.name));
  }
  return choices;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// "by raster then, by mujoco now"
std::string ThenAndNow(const PictureLook& trained, const PictureLook& drawn) {
  const std::vector<std::string> before = Choices(trained), after = Choices(drawn);
  if (trained.renderer != drawn.renderer) return before[0] + " then, " + after[0] + " now";
  std::vector<std::string> then, now;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == after[i]) continue;
    then.push_back(before[i]);
    now.push_back(after[i]);
  }
  return Joined(then) + " then, " + Joined(now) + " now";
}

}  // namespace

Json LookToJson(const PictureLook& look) {
  Json json = {{"renderer", look.renderer}, {"drawn_shape", {look.height, look.width}}};
  if (look.renderer != kMujoco) return json;
  json["samples"] = look.samples;
  for (const Effect& effect : kEffects) json[effect.name] = look.*effect.on;
  return json;
}

PictureLook ParseLook(const Json& json, const std::string& where) {
  KeyReader keys(json, where);
  PictureLook look;
  look.renderer = keys.Choice<const char*>("renderer", {{kMujoco, kMujoco}, {kRaster, kRaster}});
  const std::vector<int> shape = keys.Ints("drawn_shape", 2, 2, 1, kMostPixels);
  look.height = shape[0];
  look.width = shape[1];
  if (look.renderer == kMujoco) {
    look.samples = keys.Int("samples", 1, kMostSamples);
    for (const Effect& effect : kEffects) look.*effect.on = keys.Bool(effect.name);
  }
  keys.RejectRest();
  return look;
}

PictureLooks ReadLooks(const std::string& path, std::span<const CameraFeature> cameras) {
  PictureLooks looks;
  std::error_code none;  // a link that leads nowhere is no absent file, as for CheckpointFiles::Has
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, none))) return looks;
  const Json json = ReadJson(path);
  if (!json.is_object()) throw BadInput(path + ": must be an object of looks by camera");
  for (const auto& [camera, look] : json.items()) {
    if (std::ranges::find(cameras, camera, &CameraFeature::name) == cameras.end()) {
      throw BadInput(path + ": names \"" + camera + "\", which is no camera of config.json");
    }
    looks[camera] = ParseLook(look, path + ": \"" + camera + "\"");
  }
  return looks;
}

Json LooksToJson(const PictureLooks& looks) {
  Json json = Json::object();
  for (const auto& [camera, look] : looks) json[camera] = LookToJson(look);
  return json;
}

std::string LookText(const PictureLook& look) { return Joined(Choices(look)); }

std::string UnlikeTraining(std::span<const CameraFeature> cameras, const PictureLooks& trained,
                           std::span<const PictureLook> drawn) {
  std::string text;
  bool other_renderer = false;
  for (size_t i = 0; i < std::min(cameras.size(), drawn.size()); ++i) {
    const auto found = trained.find(cameras[i].name);
    if (found == trained.end() || found->second == drawn[i]) continue;
    other_renderer = other_renderer || found->second.renderer != drawn[i].renderer;
    text += (text.empty() ? "" : "; ") + cameras[i].name + ", drawn " +
            ThenAndNow(found->second, drawn[i]);
  }
  if (text.empty()) return "";
  return "sees other pictures than its training did: " + text +
         (other_renderer ? "; choose the renderer of its training, or score it with this one"
                         : "; score it with these before it is trusted");
}

}  // namespace mjp
