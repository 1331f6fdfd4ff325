// How rows become launches of the denoising chain: planned without a device.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "policy/cuda/unet/megakernel_denoiser.h"
#include "tests/support/megakernel_network.h"

namespace {

using mjp::Format;

constexpr mjp::MegakernelDevice kH200 = {true, true, 132};

class Network : public mjp_test::PlannedUnet {
 public:
  using PlannedUnet::PlannedUnet;

  bool Runs(int environments, int window = 1, const mjp::MegakernelDevice& device = kH200) const {
    return mjp::MegakernelDenoiser::Supports(unet(), Format::kFp16, horizon(), environments, window,
                                             device);
  }
  bool WarpSpecialized(int environments, const mjp::MegakernelDevice& device = kH200) const {
    return mjp::MegakernelDenoiser::WarpSpecialized(unet(), Format::kFp16, horizon(), environments,
                                                    device);
  }
  int Launches(int rows) const {
    mjp::DeviceArena arena;
    return Plan(rows, 1, arena).launches();
  }
  int RestRows(int environments, int window) const {
    mjp::DeviceArena arena;
    return Plan(environments * window, window, arena).Fallback(unet())->rows();
  }
  // Of a plan, and of what finishes its windows.
  size_t Bytes(int environments, int window = 1) const {
    mjp::DeviceArena arena;
    const mjp::MegakernelDenoiser plan = Plan(environments * window, window, arena);
    if (window > 1) plan.Fallback(unet());
    return arena.bytes();
  }

 private:
  mjp::MegakernelDenoiser Plan(int rows, int per_env, mjp::DeviceArena& arena) const {
    return {unet(), Format::kFp16, horizon(), rows, per_env, arena, kH200};
  }
};

// Threads of the kernel have roles at the notebook's size, at LeRobot's they have none.
const Network& Notebook() {
  static const Network network({256, 512, 1024});
  return network;
}
const Network& LeRobot() {
  static const Network network({512, 1024, 2048});
  return network;
}

// Up to where a launch per layer takes no longer (`mjpolicy bench pass`).
TEST(MegakernelLaunches, ShareMoreRowsThanOneTakes) {
  const std::pair<int, int> with_roles[] = {{1, 1},  {16, 1}, {32, 1}, {33, 2},
                                            {64, 2}, {96, 3}, {127, 4}};
  for (const auto& [rows, launches] : with_roles) {
    EXPECT_TRUE(Notebook().Runs(rows)) << rows;
    EXPECT_EQ(Notebook().Launches(rows), launches) << rows;
  }
  const std::pair<int, int> without[] = {{1, 1},  {16, 1}, {17, 2}, {32, 2},
                                         {33, 3}, {64, 4}, {127, 8}};
  for (const auto& [rows, launches] : without) {
    EXPECT_TRUE(LeRobot().Runs(rows)) << rows;
    EXPECT_EQ(LeRobot().Launches(rows), launches) << rows;
  }
  EXPECT_FALSE(Notebook().Runs(128)) << "512 positions of 1024 channels";
  EXPECT_FALSE(LeRobot().Runs(128));
}

// What windows give up is finished in one launch too, also of rows that are two step by step.
TEST(MegakernelLaunches, WindowsAreOfOne) {
  EXPECT_TRUE(Notebook().Runs(2, 16));
  EXPECT_FALSE(Notebook().Runs(3, 16)) << "48 rows";
  EXPECT_TRUE(LeRobot().Runs(1, 16));
  EXPECT_FALSE(LeRobot().Runs(17, 2)) << "34 rows";
  EXPECT_EQ(LeRobot().RestRows(17, 2), 17);
  EXPECT_TRUE(Network({512}, 2).Runs(17, 2)) << "34 rows of few positions";
}

// Windows by a launch per layer do not overtake those.
TEST(MegakernelLaunches, SpecializeWarpsAtTheNotebooksSize) {
  for (const int environments : {1, 5, 32, 33}) {
    EXPECT_TRUE(Notebook().WarpSpecialized(environments)) << environments;
    EXPECT_FALSE(LeRobot().WarpSpecialized(environments)) << environments;
    EXPECT_FALSE(Network({128, 256, 512}).WarpSpecialized(environments)) << environments;
  }
  EXPECT_FALSE(Notebook().WarpSpecialized(128)) << "a launch per layer";
  EXPECT_FALSE(Notebook().WarpSpecialized(1, {})) << "a device without clusters";
}

TEST(MegakernelLaunches, ShareTheWeights) {
  const auto bytes = [](int environments, int window = 1) {
    return static_cast<double>(Notebook().Bytes(environments, window));
  };
  EXPECT_LT(bytes(96), 1.1 * bytes(32)) << "three alike share all";
  EXPECT_LT(bytes(33), 1.3 * bytes(32)) << "a smaller one has buffers of its own";
  EXPECT_LT(bytes(1, 16), 1.3 * bytes(16)) << "and so has the rest of windows";
}

TEST(MegakernelLaunches, NeedADeviceThatRunsAllBlocksAtOnce) {
  EXPECT_FALSE(Notebook().Runs(33, 1, {}));
  EXPECT_FALSE(Notebook().Runs(33, 1, {true, false, 132})) << "no code";
  EXPECT_FALSE(Notebook().Runs(33, 1, {true, true, 114}));
}

}  // namespace
