// The trainer of image-diffusion on 100 damaged data sets: each is a refusal with the file's name,
// and no run is begun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/image_diffusion/folder_faults.h"
#include "tests/image_diffusion/mnist_faults.h"
#include "tests/support/program.h"

namespace mjp_test {
namespace {

constexpr size_t kSets = 100;

// Every kind of fault of MNIST's format and of a folder of pictures, as a program can be given it
// by its user: those of rights are tried by the readers' own tests.
class TrainFaultsTest : public ::testing::Test {
 protected:
  Outcome Train(const std::string& dataset, const std::string& more = "") const {
    return mjp_test::Run(
        "timeout 60 " IMAGE_DIFFUSION " train --dataset " + dataset + " --data " + set_ +
        " --out " + run_ +
        " --image-size 4 --batch-size 4 --unet-channels 16 --sample-every 0 --epochs 0.3 " + more);
  }
  void ExpectRefused(const std::string& dataset, const Fault& fault) const {
    SCOPED_TRACE(dataset + ": " + fault.name);
    fault.damage(set_);
    const Outcome outcome = Train(dataset);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, ::testing::HasSubstr("image-diffusion: error: "));
    EXPECT_THAT(outcome.text, ::testing::HasSubstr(set_));
    for (const std::string& text : fault.said)
      EXPECT_THAT(outcome.text, ::testing::HasSubstr(text));
    EXPECT_FALSE(fs::exists(run_)) << "a run was begun";
    fs::remove_all(run_);
  }

  const TempDir folder_;
  const std::string set_ = folder_ / "set", run_ = folder_ / "run";
};

TEST_F(TrainFaultsTest, AHundredDamagedSetsAreRefused) {
  if (!HAVE_TORCH) GTEST_SKIP() << "the trainer needs libtorch, and this build is without it";
  std::vector<Fault> mnist = MnistFaults(), layouts = LayoutFaults();
  for (std::vector<Fault>* faults : {&mnist, &layouts})
    std::erase_if(*faults, [](const Fault& fault) { return fault.as_nobody; });
  ASSERT_GT(mnist.size() + layouts.size(), kSets);
  const size_t of_mnist = kSets - layouts.size();
  for (size_t i = 0; i < of_mnist; ++i) {  // spread over the table
    WriteMnist(set_);
    ExpectRefused("mnist", mnist[i * mnist.size() / of_mnist]);
  }
  for (const Fault& fault : layouts) {
    WriteGoodSet(set_);
    ExpectRefused("folder", fault);
  }
}

TEST_F(TrainFaultsTest, WholeSetsTrain) {
  if (!HAVE_TORCH) GTEST_SKIP() << "the trainer needs libtorch, and this build is without it";
  WriteMnist(set_);
  Outcome outcome = Train("mnist", "--channels 1");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  fs::remove_all(run_);
  WriteGoodSet(set_);
  outcome = Train("folder");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

}  // namespace
}  // namespace mjp_test
