#ifndef TESTS_SUPPORT_GOLDENS_GOLDEN_RUNS_H_
#define TESTS_SUPPORT_GOLDENS_GOLDEN_RUNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "policy/checkpoint/safetensors.h"
#include "policy/policy.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/shared_data.h"

namespace mjp_test {

// A chain that the original libraries ran, with its inputs and every intermediate stored.
struct GoldenRun {
  const char* file;    // of inputs and outputs
  const char* frames;  // file of the pictures; null: the conditioning vector is given
  GoldenCase network;
  mjp::SamplerKind kind;
  int steps;
};

inline constexpr GoldenRun kGoldenRuns[] = {
    {"b_lerobot_compact", "b_lerobot_compact", GoldenCase::kLeRobotCompact, mjp::SamplerKind::kDdpm,
     100},
    {"c_notebook_unet", "f_notebook_encoder", GoldenCase::kNotebook, mjp::SamplerKind::kDdpm, 100},
    {"d_ddim10_compact", nullptr, GoldenCase::kLeRobotCompact, mjp::SamplerKind::kDdim, 10},
    {"d_ddim10_notebook", nullptr, GoldenCase::kNotebook, mjp::SamplerKind::kDdim, 10},
    {"h_lerobot_batchnorm", "h_lerobot_batchnorm", GoldenCase::kLeRobotBatchNorm,
     mjp::SamplerKind::kDdpm, 100},
    {"a_lerobot_full", "a_lerobot_full", GoldenCase::kLeRobotFull, mjp::SamplerKind::kDdpm, 100},
};

inline mjp::SafetensorsFile ReadGolden(const std::string& file) {
  return mjp::SafetensorsFile::Read(SharedPath("goldens/" + file + ".safetensors"));
}

// The run's inputs, the same for `count` environments. Not copyable: `input` looks into the rest.
struct GoldenInputs {
  std::vector<uint8_t> frames;
  std::vector<float> state, x_start, noise, cond;
  mjp::PolicyInput input;

  GoldenInputs(const GoldenRun& run, int count) {
    const mjp::SafetensorsFile file = ReadGolden(run.file);
    const auto repeat = [&]<class T>(const std::vector<T>& once, std::vector<T>& all) {
      for (int i = 0; i < count; ++i) all.insert(all.end(), once.begin(), once.end());
    };
    repeat(file.Floats("in/x_T").data, x_start);
    if (run.frames != nullptr) {
      repeat(ReadGolden(run.frames).Bytes("in/frames_u8"), frames);
      repeat(file.Floats("in/agent_pos").data, state);
    } else {
      repeat(file.Floats("in/global_cond").data, cond);
    }
    if (run.kind == mjp::SamplerKind::kDdpm) {
      const std::vector<float> recorded_noise = file.Floats("in/noise_by_t").data;
      const auto row = static_cast<ptrdiff_t>(x_start.size() / count);
      for (auto t = recorded_noise.begin(); t != recorded_noise.end(); t += row) {
        for (int i = 0; i < count; ++i) noise.insert(noise.end(), t, t + row);
      }
    }
    input.count = count;
    input.frames = frames;
    input.state = state;
    input.x_start = x_start;
    input.noise_by_t = noise;
    input.global_cond = cond;
  }
  GoldenInputs(const GoldenInputs&) = delete;
  GoldenInputs& operator=(const GoldenInputs&) = delete;
};

// The part of environment 0 of (steps, count, ...) values.
inline std::vector<float> FirstEnvironment(const std::vector<float>& values, size_t steps,
                                           size_t count) {
  const auto row = static_cast<ptrdiff_t>(values.size() / steps / count);
  std::vector<float> first;
  for (size_t k = 0; k < steps; ++k) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>(k * count) * row;
    first.insert(first.end(), begin, begin + row);
  }
  return first;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_GOLDEN_RUNS_H_
