#ifndef TESTS_METAMORPHIC_SUBJECTS_H_
#define TESTS_METAMORPHIC_SUBJECTS_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/unet/unet_model.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/temp_dir.h"

// What runs in the hosts of hosts_test.cc: models that the project ships, each with one kind of
// policy, of random weights or one that is shipped, and with some of the plugin's attributes.

namespace mjp_test {

// An attribute of the plugin and its value; "" takes the attribute out of the model.
using Attributes = std::vector<std::pair<std::string, std::string>>;

struct Subject {
  const char* name;
  const char* file;
  const char* renderer;
  std::vector<std::string> actuators;
  std::function<void(const TempDir& parent)> write_policy;  // into the folder "policy" of it
  Attributes attributes = {};
};
inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

inline mjp::FeatureStats UnitRange(int dim, float range = 2) {
  const auto size = static_cast<size_t>(dim);
  return {mjp::Normalization::kMinMax, std::vector<float>(size, -range),
          std::vector<float>(size, range)};
}

inline void WriteUnet(const TempDir& parent) { WriteSmallCheckpoint(parent / "policy"); }

// A U-Net of state, environment and action in radians and metres, with one camera of 96 x 96. Its
// actions are at most `range`.
inline void WriteUnetOf(const TempDir& parent, int state, int environment, int action,
                        float range = 2) {
  WriteSmallCheckpoint(parent / "policy");
  const auto small = mjp::LoadCheckpoint(parent / "policy");
  mjp::UnetPolicyConfig config = mjp::UnetOf(*small).config;
  mjp::NormalizerStats stats = small->stats;
  config.environment_dim = environment;
  config.state_dim = state;
  config.action_dim = action;
  if (environment > 0) stats.environment = UnitRange(environment);
  stats.state = UnitRange(state);
  stats.action = UnitRange(action, range);
  std::filesystem::remove_all(parent / "policy");
  mjp::WriteCheckpoint(parent / "policy", *mjp::RandomCheckpoint(config, stats, 3),
                       mjp::WeightFormat::kF16);
}

// An ACT of one camera of 96 x 96; it ensembles its chunks where `coefficient` is one.
inline void WriteAct(const TempDir& parent, int environment, std::optional<double> coefficient,
                     float range) {
  mjp::ActPolicyConfig config = SmallActConfig();
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  config.environment_dim = environment;
  config.temporal_ensemble = coefficient;
  if (coefficient) config.n_action_steps = 1;
  mjp::Checkpoint checkpoint = *ActCheckpoint(config);
  for (mjp::FeatureStats* each : {&checkpoint.stats.state, &checkpoint.stats.action}) {
    *each = {mjp::Normalization::kMinMax, {-range, -range}, {range, range}};
  }
  mjp::WriteCheckpoint(parent / "policy", checkpoint, mjp::WeightFormat::kF32);
}

// A multi_task_dit that diffuses or flows, and obeys a text of the letters a, b and c.
inline void WriteDit(const TempDir& parent, mjp::DitObjective objective) {
  mjp::DitConfig config = SmallDitConfig(true);
  config.state_dim = 2;
  config.objective = objective;
  WriteSmallDit(parent, "policy", config);
}

// A U-Net that was trained with the beginnings of its chunks known.
inline void WritePrefixUnet(const TempDir& parent) {
  WriteSmallCheckpoint(parent / "policy");
  const auto small = mjp::LoadCheckpoint(parent / "policy");
  mjp::UnetPolicyConfig config = mjp::UnetOf(*small).config;
  config.trained_prefix = true;
  const auto policy = mjp::RandomCheckpoint(config, small->stats, 3);
  std::filesystem::remove_all(parent / "policy");
  mjp::WriteCheckpoint(parent / "policy", *policy, mjp::WeightFormat::kF16);
}

// A policy of assets/.
inline std::function<void(const TempDir&)> Shipped(const std::string& name) {
  return [name](const TempDir& parent) {
    std::error_code there;
    std::filesystem::create_directory_symlink(MJPOLICY_SOURCE_DIR "/assets/" + name,
                                              parent / "policy", there);
  };
}

inline const std::vector<std::string> kArm = {"shoulder", "elbow"};
inline const std::vector<std::string> kPushtServos = {"ax", "ay"};
inline const std::vector<std::string> kAlohaJoints = {
    "vx300s_left/waist", "vx300s_left/elbow", "vx300s_right/shoulder", "vx300s_right/wrist_rotate"};
// not of a policy without a sampler
inline const Attributes kNoSampler = {{"sampler", ""}, {"steps", ""}};
// of models that say nothing of the sampler
inline const Attributes kFewSteps = {{"sampler", "ddim"}, {"steps", "2"}};
inline const Subject kSubjects[] = {
    {"PushT", "pusht_policy.xml", "raster", kPushtServos, WriteUnet},
    {"PushTByMujoco", "pusht_policy.xml", "mujoco", kPushtServos, WriteUnet},
    {"Reach", "reach_policy.xml", "mujoco", kArm,
     [](const TempDir& parent) { WriteUnetOf(parent, 2, 3, 2); }},
    {"CartPole",
     "cart_pole.xml",
     "mujoco",
     {"push"},
     [](const TempDir& parent) { WriteUnetOf(parent, 2, 0, 1); },
     kFewSteps},
    {"Aloha", "aloha_transfer_cube.xml", "mujoco", kAlohaJoints,
     // random targets of more than that end its physics
     [](const TempDir& parent) { WriteUnetOf(parent, 14, 0, 14, 0.3f); }, kFewSteps},
    {"PushTAsync",
     "pusht_policy.xml",
     "raster",
     kPushtServos,
     WriteUnet,
     {{"async", "1"}, {"latency", "250"}, {"action_steps", "4"}}},
    {"PushTParallel",
     "pusht_policy.xml",
     "raster",
     kPushtServos,
     WriteUnet,
     {{"sampler", "ddpm"},
      {"steps", "20"},
      {"parallel", "5"},
      {"hold_noise", "2"},
      {"action_steps", "3"},
      {"threads", "2"}}},
    {"PushTPrefix",
     "pusht_policy.xml",
     "raster",
     kPushtServos,
     WritePrefixUnet,
     {{"prefix", "1"}, {"latency", "300"}, {"action_steps", "1"}, {"replan_beyond", "40"}}},
    {"ShippedPushT", "pusht_policy.xml", "raster", kPushtServos, Shipped("pusht_image"), kFewSteps},
    {"ShippedStudent", "pusht_policy.xml", "raster", kPushtServos, Shipped("pusht_image_onestep"),
     kNoSampler},
    {"ShippedAloha",
     "aloha_transfer_cube.xml",
     "mujoco",
     kAlohaJoints,
     Shipped("aloha_transfer_cube"),
     {{"sampler", "ddim"}, {"steps", "2"}, {"action_steps", "4"}}},  // decides again within a run
    {"PushTAct", "pusht_policy.xml", "raster", kPushtServos,
     [](const TempDir& parent) { WriteAct(parent, 0, 0.1, 512); }, kNoSampler},
    {"ReachAct", "reach_policy.xml", "mujoco", kArm,
     [](const TempDir& parent) { WriteAct(parent, 3, {}, 2); }, kNoSampler},
    {"ReachActAsync",
     "reach_policy.xml",
     "mujoco",
     kArm,
     [](const TempDir& parent) { WriteAct(parent, 3, 0.1, 2); },
     {{"sampler", ""}, {"steps", ""}, {"async", "1"}, {"latency", "50"}}},
    {"ReachDit",
     "reach_policy.xml",
     "mujoco",
     kArm,
     [](const TempDir& parent) { WriteDit(parent, mjp::DitObjective::kDiffusion); },
     {{"environment", ""}, {"instruction", "ab c"}}},
    {"ReachFlow",
     "reach_policy.xml",
     "mujoco",
     kArm,
     [](const TempDir& parent) { WriteDit(parent, mjp::DitObjective::kFlowMatching); },
     {{"environment", ""}, {"instruction", "c ba"}, {"sampler", "rk4"}, {"steps", "3"}}},
};

// Puts `with` in the place of each `before`, value, `after`; `before` ends and `after` begins with
// a quotation mark.
inline void ReplaceQuoted(std::string& text, const std::string& before, const std::string& after,
                          const std::string& with) {
  for (size_t at = text.find(before); at != std::string::npos;) {
    const size_t end = text.find('"', at + before.size());
    const bool whole = text.compare(end, after.size(), after) == 0;
    if (whole) text.replace(at, end + after.size() - at, with);
    at = text.find(before, at + (whole ? with.size() : 1));
  }
}

// Where the policies run: on the CPU, or where MJPOLICY_TEST_BACKEND says.
inline std::string SubjectBackend() {
  const char* wish = std::getenv("MJPOLICY_TEST_BACKEND");
  return wish != nullptr ? wish : "cpu";
}

// The subject's MJCF in `parent`, with its policy on SubjectBackend and this seed. Writes the
// policy.
inline std::string WriteSubject(const TempDir& parent, const Subject& subject,
                                const std::string& seed) {
  const std::filesystem::path models = MJPOLICY_SOURCE_DIR "/models";
  subject.write_policy(parent);
  std::stringstream text;
  text << std::ifstream(models / subject.file).rdbuf();
  std::string xml = text.str();
  std::error_code there;  // what the models include
  for (const char* part : {"pusht.xml", "aloha"})
    std::filesystem::create_symlink(models / part, parent / part, there);
  const auto set = [&xml](const std::string& key, const std::string& value) {
    ReplaceQuoted(xml, "<config key=\"" + key + "\" value=\"", "\"/>", "");
    const size_t at = xml.find("</instance>");
    if (!value.empty()) {
      xml.insert(at, "<config key=\"" + key + "\" value=\"" + value + "\"/>");
    }
  };
  set("checkpoint", parent / "policy");
  set("renderer", subject.renderer);
  set("backend", SubjectBackend());
  set("seed", seed);
  for (const auto& [key, value] : subject.attributes) set(key, value);
  const mjp::PolicyConfig policy = mjp::LoadCheckpoint(parent / "policy")->config;
  const mjp::CameraFeature& camera = policy.cameras[0];
  const std::pair<const char*, int> sensors[] = {{"chunk", policy.horizon * policy.action_dim},
                                                 {"view", 3 * camera.width * camera.height}};
  for (const auto& [sensor, dim] : sensors) {
    const std::string before = std::string("_") + sensor + "\" dim=\"";
    ReplaceQuoted(xml, before, "\"", before + std::to_string(dim) + "\"");
  }
  return parent.Write("model" + seed + ".xml", xml);
}

}  // namespace mjp_test

#endif  // TESTS_METAMORPHIC_SUBJECTS_H_
