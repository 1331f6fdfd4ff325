// The definitions of the megakernel's layers, put together, are a pass of the U-Net: what
// megakernel_layer_gpu_test holds the kernel against.

#include <map>

#include "kernels/reference/unet_pass.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/unet/unet_model.h"
#include "tests/support/check_close.h"
#include "tests/support/gpu/megakernel_layer_check.h"
#include "tests/support/gpu/megakernel_network.h"

namespace {

using mjp::reference::Signal;

// Layers that are planned, and run by their definitions.
class DefinedLayers {
 public:
  static constexpr int kActions = 2, kTimestep = 37;

  explicit DefinedLayers(const mjp_test::PlannedUnet& planned, const mjp::Checkpoint& weights)
      : checkpoint(&weights), planned_(planned) {
    bool runs;
    layers_ = planned.Program(1, 0, &runs).layers;
    const mjp::UnetWeights& unet = mjp::UnetOf(weights).unet;
    for (int i = 0; i < mjp::UnetOf(weights).config.CondDim(); ++i)
      cond.push_back(0.3 * (i % 7) - 0.8);
    std::vector<double> mish = mjp::reference::StepEmbedding(unet, kTimestep);
    mish.insert(mish.end(), cond.begin(), cond.end());
    mish = mjp::reference::MishOf(mish);
    for (const mjp::ResidualBlock1d* block : mjp::BlocksOf(unet)) {
      const std::vector<double> terms = mjp::reference::Dense(block->film, mish);
      film_.insert(film_.end(), terms.begin(), terms.end());
    }
    x = {kActions, planned.horizon(), {}};
    for (int i = 0; i < kActions * planned.horizon(); ++i)
      x.values.push_back(0.1 * (i * 5 % 23) - 1);
  }

  const std::vector<mjp::megakernel::Layer>& layers() const { return layers_; }
  const mjp::NormConvUnet& unet() const { return planned_.unet(); }
  Signal Activations(int i, int row) {
    if (!made_.contains(i))
      made_[i] = mjp_test::MegakernelLayerCheck(*this).Expected(i, row, 0, layers_[i].shape.out_c);
    return made_[i];
  }
  std::vector<double> FilmTerms(int, int begin, int end) const {
    return {film_.begin() + begin, film_.begin() + end};
  }
  const Signal& X(int) const { return x; }
  const std::vector<float>& Operands(const std::vector<float>& values) const { return values; }

  const mjp::Checkpoint* checkpoint;
  Signal x;
  std::vector<double> cond;

 private:
  const mjp_test::PlannedUnet& planned_;
  std::vector<mjp::megakernel::Layer> layers_;
  std::vector<double> film_;
  std::map<int, Signal> made_;
};

TEST(MegakernelLayerDefinitions, AreThoseOfThePass) {
  for (const std::vector<int>& down_dims : {std::vector<int>{64}, {32, 64}, {16, 32, 64}}) {
    SCOPED_TRACE(down_dims.size());
    const mjp_test::PlannedUnet planned(down_dims, 8);
    const auto checkpoint = mjp::RandomCheckpoint(planned.config(), {}, 3);
    DefinedLayers layers(planned, *checkpoint);
    const Signal expected = mjp::reference::UnetPass(mjp::UnetOf(*checkpoint).unet, layers.x,
                                                     DefinedLayers::kTimestep, layers.cond);
    mjp_test::MegakernelLayerCheck check(layers);
    ASSERT_EQ(check.size(), layers.layers().size());
    EXPECT_TRUE(mjp_test::CheckClose(check.ExpectedOutput(0).values, expected.values, 1e-12));
  }
}

}  // namespace
