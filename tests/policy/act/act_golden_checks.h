#ifndef TESTS_POLICY_ACT_ACT_GOLDEN_CHECKS_H_
#define TESTS_POLICY_ACT_ACT_GOLDEN_CHECKS_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/policy.h"
#include "tests/support/check_close.h"
#include "tests/support/shared_data.h"

// The CPU policy against what LeRobot computed in float64. Limits: docs/NUMERICS.md, ACT.

namespace mjp_test {

inline constexpr double kInnerLimit = 5e-5, kActionLimit = 1e-5, kSineLimit = 2e-6;

inline double LimitOf(const std::string& name) {
  if (name.find("cam_pos") != std::string::npos || name.find("encoder_pos") != std::string::npos)
    return kSineLimit;
  return name.find("action") != std::string::npos ? kActionLimit : kInnerLimit;
}

inline mjp::SafetensorsFile ReadStored(const std::string& name) {
  return mjp::SafetensorsFile::Read(SharedPath("goldens_act_dit/" + name + ".safetensors"));
}

// The observation of a case, of all its steps.
struct Stored {
  std::vector<uint8_t> frames;
  std::vector<float> state, environment;

  Stored(const mjp::SafetensorsFile& file, const mjp::PolicyConfig& config) {
    for (const mjp::CameraFeature& camera : config.cameras) {
      const std::vector<uint8_t> picture = file.Bytes("in/" + camera.name);
      frames.insert(frames.end(), picture.begin(), picture.end());
    }
    state = file.Floats("in/observation.state").data;
    if (config.environment_dim > 0)
      environment = file.Floats("in/observation.environment_state").data;
  }

  mjp::PolicyInput Input() const {
    mjp::PolicyInput input;
    input.count = 1;
    input.frames = frames;
    input.state = state;
    input.environment = environment;
    return input;
  }
};

// Compares whatever the case has stored, in float64 where it is.
inline void CheckCase(const std::string& name,
                      const std::shared_ptr<const mjp::Checkpoint>& checkpoint) {
  const mjp::SafetensorsFile file = ReadStored(name);
  const Stored stored(file, checkpoint->config);
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.threads = 2;
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  mjp::Policy::Create(checkpoint, options)->Infer(stored.Input(), output);
  const auto executed =
      static_cast<ptrdiff_t>(checkpoint->config.n_action_steps) * checkpoint->config.action_dim;
  int compared = 0;
  for (const mjp::TensorEntry& entry : file.tensors()) {
    if (!entry.name.starts_with("out/") || entry.name.ends_with(".f64")) continue;
    const std::string what = entry.name.substr(4), exact = entry.name + ".f64";
    const std::vector<float> expected = file.Floats(file.Find(exact) ? exact : entry.name).data;
    std::vector<float> actual;
    if (what == "action_full") {
      actual = output.actions;
    } else if (what == "action_chunk") {
      actual.assign(output.actions.begin(), output.actions.begin() + executed);
    } else if (what.starts_with("cam_pos")) {
      continue;  // part of encoder_pos
    } else {
      ASSERT_TRUE(trace.tensors.contains(what)) << what;
      EXPECT_EQ(trace.tensors.at(what).shape, entry.shape) << what;
      actual = trace.tensors.at(what).data;
    }
    EXPECT_TRUE(CheckClose(actual, expected, LimitOf(what))) << what;
    ++compared;
  }
  for (const mjp::TensorEntry& entry : file.tensors()) {
    // large ones are stored in float64 alone
    if (!entry.name.starts_with("out/") || !entry.name.ends_with(".f64")) continue;
    const std::string what = entry.name.substr(4, entry.name.size() - 8);
    if (file.Find("out/" + what)) continue;
    ASSERT_TRUE(trace.tensors.contains(what)) << what;
    EXPECT_TRUE(
        CheckClose(trace.tensors.at(what).data, file.Floats(entry.name).data, LimitOf(what)))
        << what;
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_ACT_ACT_GOLDEN_CHECKS_H_
