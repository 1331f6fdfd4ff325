#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/self_check.h"
#include "tests/policy/act/act_golden_checks.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/differences.h"

// ACT on the GPU against what LeRobot computed in float64. Limits: the goldens' own suggestion.

namespace mjp_test {
namespace {

using mjp::Precision;

struct ActLimits {
  double inner, actions;
};
ActLimits LimitsOf(Precision precision) {
  if (precision == Precision::kFp32) return {kInnerLimit, kActionLimit};
  if (precision == Precision::kBf16) return {1e-1, 8e-2};
  return {1e-2, 1e-2};
}

// The middle one of `batch` environments alike, of values (rows, batch, width) or (batch, ...).
std::vector<float> Middle(const mjp::Tensor& all, bool tokens_first, int batch) {
  const size_t rows = tokens_first ? all.shape[0] : 1;
  const size_t width = all.data.size() / rows / batch;
  std::vector<float> one;
  for (size_t r = 0; r < rows; ++r) {
    const auto from = all.data.begin() + static_cast<ptrdiff_t>((r * batch + batch / 2) * width);
    one.insert(one.end(), from, from + static_cast<ptrdiff_t>(width));
  }
  return one;
}

class CudaAct : public testing::TestWithParam<std::tuple<const char*, Precision>> {};

TEST_P(CudaAct, AgreesWithTheGoldens) {
  const auto [name, precision] = GetParam();
  SHARED_OR_SKIP(json, std::string("goldens_act_dit/case_") + name + ".json");
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  const auto checkpoint = StoredActCheckpoint(json);
  const mjp::SafetensorsFile file = ReadStored(name);
  Stored stored(file, checkpoint->config);
  const ActLimits limits = LimitsOf(precision);
  for (const int batch : {1, 3}) {
    SCOPED_TRACE("batch " + std::to_string(batch));
    mjp::PolicyOptions options;
    options.self_check = false;  // the test is the check
    options.precision = precision;
    options.batch = batch;
    const auto policy = mjp::CreateCudaPolicy(checkpoint, options);
    const auto frames = mjp_test::Repeated(stored.frames, batch);
    const auto state = mjp_test::Repeated(stored.state, batch);
    const auto environment = mjp_test::Repeated(stored.environment, batch);
    mjp::PolicyInput input;
    input.count = batch;
    input.frames = frames, input.state = state, input.environment = environment;
    mjp::PolicyTrace trace;
    mjp::PolicyOutput eager, graph, again;
    eager.trace = &trace;
    policy->Infer(input, eager);
    policy->Infer(input, graph);
    policy->Infer(input, again);
    EXPECT_EQ(eager.actions, graph.actions) << "a graph must give the bits of its launches";
    EXPECT_EQ(again.actions, graph.actions);
    int compared = 0;
    for (const mjp::TensorEntry& entry : file.tensors()) {
      if (!entry.name.starts_with("out/") || !entry.name.ends_with(".f64")) continue;
      const std::string what = entry.name.substr(4, entry.name.size() - 8);
      if (!trace.tensors.contains(what) || what == "encoder_pos") continue;
      const bool action = what == "actions_norm", map = what.starts_with("layer4");
      // no norm bounds the backbone's values, of up to 17, nor the tokens made of them; the goldens
      // have no figure for either in rounded formats
      const bool per_unit = (map || what == "encoder_in") && precision != Precision::kFp32;
      const double worst =
          mjp_test::LargestDifference(Middle(trace.tensors.at(what), !action && !map, batch),
                                      file.Floats(entry.name).data, per_unit);
      RecordProperty(what, std::to_string(worst));
      EXPECT_LE(worst, action ? limits.actions : limits.inner) << what;
      ++compared;
    }
    EXPECT_GE(compared, 4);
    const size_t chunk = graph.actions.size() / batch;
    const auto from = graph.actions.begin() + static_cast<ptrdiff_t>(batch / 2 * chunk);
    EXPECT_LE(mjp_test::LargestDifference({from, from + static_cast<ptrdiff_t>(chunk)},
                                          file.Floats("out/action_full.f64").data),
              limits.actions);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaAct,
                         testing::Combine(testing::Values("act_compact", "act_prenorm_env",
                                                          "act_default"),
                                          testing::Values(Precision::kFp32, Precision::kTf32,
                                                          Precision::kFp16, Precision::kBf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::to_string(static_cast<int>(std::get<1>(info.param)));
                         });

void ExpectPasses(const mjp::ActPolicyConfig& config, Precision precision, int batch) {
  mjp::PolicyOptions options;
  options.precision = precision;
  options.batch = batch;
  const mjp::SelfCheck check = mjp::RunSelfCheck(ActCheckpoint(config), options);
  EXPECT_TRUE(check.Passed()) << check.error << " above " << check.limit;
  EXPECT_EQ(check.rows, batch);
}

// Cameras of an odd size, a head size of 8, and a GELU, against the CPU.
TEST(CudaActSelfCheck, PassesForUnusualShapes) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  for (const bool pre_norm : {false, true}) {
    mjp::ActPolicyConfig config = SmallActConfig();
    config.pre_norm = pre_norm;
    for (mjp::CameraFeature& camera : config.cameras) camera.height = 41, camera.width = 75;
    config.activation = mjp::TokenActivation::kGeluErf;
    for (const Precision precision : {Precision::kFp32, Precision::kFp16})
      for (const int batch : {1, 37}) ExpectPasses(config, precision, batch);
  }
}

// Enough channels, tokens and actions that a GPU whose linear layers fold norms folds all of them.
TEST(CudaActSelfCheck, PassesWhereNormsAreFolded) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  for (const bool pre_norm : {false, true}) {
    mjp::ActPolicyConfig config = SmallActConfig();
    config.pre_norm = pre_norm;
    config.width = 128, config.heads = 2, config.feedforward = 192;
    config.horizon = 40;
    for (mjp::CameraFeature& camera : config.cameras) camera.height = 160, camera.width = 192;
    for (const Precision precision : {Precision::kFp16, Precision::kBf16})
      for (const int batch : {1, 2, 5}) ExpectPasses(config, precision, batch);
  }
}

TEST(CudaActSelfCheck, RefusesByName) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  mjp::ActPolicyConfig config = SmallActConfig();
  config.feedforward = 42;
  EXPECT_THROW(mjp::CreateCudaPolicy(ActCheckpoint(config), {}), mjp::Error);
}

}  // namespace
}  // namespace mjp_test
