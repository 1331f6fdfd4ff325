#ifndef TESTS_POLICY_DIT_DIT_CHECKS_H_
#define TESTS_POLICY_DIT_DIT_CHECKS_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "policy/cpu/picture_input.h"
#include "policy/dit/clip_tower.h"
#include "policy/dit/trunk.h"
#include "policy/flow_sampler.h"
#include "tests/policy/dit/dit_goldens.h"
#include "tests/support/check_close.h"

// The CPU's networks and chains of multi_task_dit against the stored ones, in float64.

namespace mjp_test {

// Keeps everything that it is shown.
struct Taps {
  std::map<std::string, std::vector<float>> values;

  mjp::Tap tap() {
    return [this](const std::string& name, const float* data, int64_t rows, int64_t width) {
      values[name].assign(data, data + rows * width);
    };
  }
};

// Compares each tap with the stored tensor `prefix` + name, where there is one. Returns how many.
inline int CheckTaps(const Taps& taps, const mjp::SafetensorsFile& file, const std::string& prefix,
                     double limit) {
  int compared = 0;
  for (const auto& [name, values] : taps.values) {
    const std::string stored = "out/" + prefix + name + ".f64";
    if (file.Find(stored) == nullptr) continue;
    EXPECT_TRUE(CheckClose(values, file.Floats(stored).data, limit)) << stored;
    ++compared;
  }
  return compared;
}

// One camera's rows of (steps, cameras, ...) values.
inline std::vector<float> RowsOfCamera(const std::vector<float>& values, size_t steps,
                                       size_t cameras, size_t camera) {
  const size_t size = values.size() / steps / cameras;
  std::vector<float> rows;
  for (size_t step = 0; step < steps; ++step) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>((step * cameras + camera) * size);
    rows.insert(rows.end(), begin, begin + static_cast<ptrdiff_t>(size));
  }
  return rows;
}

// Pixels after resize and crop, and the vision tower's intermediates, of every camera: `least` are
// stored.
inline void CheckVision(const mjp::Checkpoint& checkpoint, const std::string& network, int least) {
  const mjp::DitModel& model = mjp::DitOf(checkpoint);
  const mjp::DitConfig& config = model.config;
  const mjp::SafetensorsFile file = DitTensors(network);
  const size_t cameras = config.cameras.size(), steps = config.n_obs_steps;
  mjp::cpu::ThreadPool pool(2);
  for (size_t i = 0; i < cameras; ++i) {
    const size_t encoder = config.separate_encoders ? i : 0;
    const std::string prefix =
        config.separate_encoders ? "out/vision/" + std::to_string(i) + "/" : "out/vision/";
    mjp::cpu::PictureInput pictures(
        config.cameras[i], checkpoint.stats.cameras[i],
        {config.resize_height, config.resize_width, config.crop_height, config.crop_width},
        static_cast<int>(steps), 0, pool);
    const std::vector<uint8_t> frames = file.Bytes("in/" + config.cameras[i].name);
    pictures.Prepare(frames.data(), static_cast<int64_t>(frames.size() / steps),
                     static_cast<int>(steps));
    Taps taps;
    const mjp::cpu::Features& view = pictures.view();
    std::vector<float>& pixels = taps.values["vision/pixels"];
    for (int n = 0; n < view.batch; ++n)
      for (int c = 0; c < 3; ++c)
        for (int y = 0; y < view.height; ++y)
          for (int x = 0; x < view.width; ++x) pixels.push_back(view.At(n, y, x)[c]);
    const mjp::cpu::PackedVision packed = mjp::cpu::PackVision(model.weights.vision[encoder]);
    mjp::cpu::VisionTower tower(packed, config.clip, static_cast<int>(steps), pool);
    std::vector<float> features(steps * config.clip.vision.width), again = features;
    tower.Encode(view, static_cast<int>(steps), features.data(), taps.tap());
    int compared = 0;
    for (const auto& [name, values] : taps.values) {
      const std::string stored = prefix + name.substr(name.find('/') + 1) + ".f64";
      if (file.Find(stored) == nullptr) continue;
      std::vector<float> expected = file.Floats(stored).data;
      if (!config.separate_encoders) expected = RowsOfCamera(expected, steps, cameras, i);
      EXPECT_TRUE(CheckClose(values, expected, kClipLimit)) << stored << ", camera " << i;
      ++compared;
    }
    EXPECT_GE(compared, least);
    // without a tap the last layer is computed for one row: the same bits
    tower.Encode(view, static_cast<int>(steps), again.data());
    EXPECT_EQ(again, features);
  }
}

inline void CheckText(const mjp::Checkpoint& checkpoint, const std::string& network, int least) {
  const mjp::DitModel& model = mjp::DitOf(checkpoint);
  const mjp::SafetensorsFile file = DitTensors(network);
  const std::vector<int> ids = TextIds(file);
  if (model.tokenizer != nullptr) {
    EXPECT_EQ(model.tokenizer->Encode(DitCase(network)["task"].get<std::string>(), 77), ids);
  }
  mjp::cpu::ThreadPool pool(2);
  const mjp::cpu::PackedText packed = mjp::cpu::PackText(model.weights.text);
  std::vector<float> pooled(model.config.clip.text.width), again = pooled;
  Taps taps;
  mjp::cpu::EncodeText(packed, model.config.clip, ids, pooled.data(), pool, taps.tap());
  EXPECT_GE(CheckTaps(taps, file, "", kClipLimit), least);
  mjp::cpu::EncodeText(packed, model.config.clip, ids, again.data(), pool);
  EXPECT_EQ(again, pooled);
}

// Single passes of the denoiser from the stored x, given the stored conditioning vector.
inline void CheckPasses(const mjp::Checkpoint& checkpoint, const std::string& network) {
  const mjp::DitModel& model = mjp::DitOf(checkpoint);
  const mjp::SafetensorsFile file = DitTensors(network);
  const std::vector<std::pair<std::string, double>> passes = {
      {"t99/", 99}, {"t50/", 50}, {"t0/", 0}, {"t0.0/", 0}, {"t0.37/", 0.37}, {"t1.0/", 1}};
  std::vector<double> times;
  for (const auto& [name, time] : passes) times.push_back(time);
  mjp::cpu::ThreadPool pool(2);
  const mjp::cpu::PackedTrunk packed = mjp::cpu::PackTrunk(model.config, model.weights);
  mjp::cpu::Trunk trunk(packed, model.config, times, 1, 1, pool);
  const std::vector<float> cond = file.Floats("out/cond.f64").data;
  const std::vector<float> x = file.Floats("in/x_T").data;
  trunk.SetConditioning(cond, 1);
  int compared = 0;
  for (int i = 0; i < static_cast<int>(passes.size()); ++i) {
    const std::string& prefix = passes[i].first;
    if (file.Find("out/" + prefix + "out.f64") == nullptr) continue;
    const int environment = 0;
    std::vector<float> out(x.size());
    Taps taps;
    trunk.Forward(x.data(), &i, &environment, 1, out.data(), taps.tap());
    EXPECT_TRUE(CheckClose(out, file.Floats("out/" + prefix + "out.f64").data, kOutLimit))
        << prefix;
    Taps time;
    time.values["time_mlp"] = taps.values["time_mlp"];
    CheckTaps(time, file, prefix, kTimeLimit);
    CheckTaps(taps, file, prefix, kBlockLimit);
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

// The whole chain, from the pictures and the text, or from the stored conditioning vector.
inline void CheckDitChain(const std::string& chain, bool from_pictures, double step_factor = 1) {
  const std::string network = DitCase(chain)["network"];
  const auto checkpoint = DitCheckpoint(chain);
  DitInputs inputs(network, checkpoint->config);
  const mjp::SafetensorsFile file = DitTensors(chain);
  const mjp::SamplerTraits traits = checkpoint->network->sampler();
  if (traits.noise_steps > 0) inputs.input.noise_by_t = inputs.noise;
  const std::vector<float> cond = DitTensors(network).Floats("out/cond.f64").data;
  if (!from_pictures) inputs.input.global_cond = cond;
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.threads = 2;
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  mjp::Policy::Create(checkpoint, options)->Infer(inputs.input, output);
  EXPECT_TRUE(CheckClose(trace.global_cond, cond, kClipLimit));
  EXPECT_TRUE(
      CheckClose(trace.x_steps, file.Floats("out/x_steps.f64").data, step_factor * kStepLimit));
  EXPECT_TRUE(CheckClose(output.actions, file.Floats("out/action_full.f64").data, kActionLimit));
  EXPECT_EQ(trace.eps_steps.size(), file.Floats("out/pass_out.f64").data.size());
  if (traits.noise_steps > 0) {
    EXPECT_EQ(std::vector<int64_t>(trace.timesteps.begin(), trace.timesteps.end()),
              file.Integers("out/t"));
    return;
  }
  std::vector<double> times;
  const std::vector<double> named = mjp::FlowTimes(traits.kind, traits.steps);
  const bool euler = traits.kind == mjp::SamplerKind::kEuler;
  for (size_t i = 0; i < named.size(); ++i) {
    times.push_back(named[i]);
    if (!euler && i % 3 == 1) times.push_back(named[i]);  // the middle is evaluated twice
  }
  EXPECT_TRUE(CheckClose(times, file.Floats("out/t").data, 0));
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_DIT_DIT_CHECKS_H_
