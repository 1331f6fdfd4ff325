// Every layer of the launched megakernel by itself: what it published against its definition in
// double precision, made of what it read, which the layers before it left in device memory. So a
// layer answers for itself alone, whatever network it is of.

#include <cmath>
#include <cstdio>
#include <map>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "tests/support/gpu/megakernel_layer_check.h"
#include "tests/support/gpu/megakernel_run.h"

namespace {

namespace mk = mjp::megakernel;
using mjp::Format;
using mjp::reference::Signal;
using mjp_test::MegakernelRun;

// What a layer is, of all that the kernel has different code for.
std::string KindOf(const mk::Layer& l, bool specialized) {
  std::string kind = l.shape.in_c == 0     ? "first"
                     : l.shape.phases == 2 ? "up"
                     : l.shape.stride == 2 ? "down"
                     : l.output == nullptr ? "final"
                     : l.source[1]         ? "concatenated"
                                           : "plain";
  if (l.shape.shortcut) kind += ", shortcut";
  if (l.adds_residual) kind += ", residual";
  if (l.cta_local) kind += ", CTA-local";
  if (l.split_k_log2 > 0) kind += ", K split";
  const int positions = l.shape.out_length << l.rows_log2;
  if (l.shape.in_c > 0) kind += ", " + std::to_string(positions) + " positions";
  return kind + (specialized ? "" : ", not specialized");
}

// Errors per unit: the largest, and their squares added up. A value that is not a number makes both
// infinite.
struct Errors {
  double largest = 0, squares = 0;
  size_t count = 0;

  void Add(const double* actual, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      double error = std::abs(actual[i] - expected[i]) / (1 + std::abs(expected[i]));
      if (std::isnan(error)) error = INFINITY;
      largest = std::max(largest, error);
      squares += error * error;
    }
    count += expected.size();
  }
  double Rms() const { return std::sqrt(squares / static_cast<double>(count)); }
};

// docs/NUMERICS.md, section 4: of a layer; fp16 partial sums are rounded on their way.
struct Limits {
  double largest, rms;
};
Limits LimitsOf(Format format) {
  return format == Format::kFp16 ? Limits{5e-3, 7e-4} : Limits{9e-3, 2e-3};
}

struct Case {
  const char* name;
  std::vector<int> down_dims;
  int horizon, rows;
};
const Case kCases[] = {
    {"one_row", {256, 512, 1024}, 16, 1},      {"two_batches", {256, 512, 1024}, 16, 19},
    {"short", {256, 512, 1024}, 8, 16},        {"one_level", {1024}, 4, 2},
    {"few_channels", {128, 256, 1024}, 16, 3}, {"not_specialized", {512, 2048}, 8, 5},
    {"large", {512, 1024, 2048}, 16, 1},
};

class MegakernelLayers : public testing::TestWithParam<std::tuple<Case, Format>> {};

TEST_P(MegakernelLayers, AgreeWithTheirDefinitions) {
  DEVICE_OR_SKIP();
  const auto& [c, format] = GetParam();
  const Limits limits = LimitsOf(format);
  MegakernelRun launch(c.down_dims, c.horizon, c.rows, format);
  if (mk::Target::On(mjp::GpuTraits::Current()).portable &&
      (format != Format::kFp16 || c.rows > mk::kRowsPerBatch))
    GTEST_SKIP() << "the portable form takes fp16 and 16 rows at most";
  ASSERT_TRUE(launch.Runs());
  std::map<std::string, Errors> errors;
  for (int pass = 0; pass < 2; ++pass) {  // of either buffer
    launch.RunPass();
    mjp_test::MegakernelLayerCheck check(launch);
    ASSERT_EQ(check.size(), launch.layers().size());
    for (int i = 0; i < static_cast<int>(check.size()); ++i) {
      const mk::Layer& l = launch.layers()[i];
      const std::string kind = KindOf(l, launch.specialized());
      const int channels = l.shape.out_c / mk::kNormGroups;
      for (const int row : {0, c.rows / 2, c.rows - 1}) {
        if (l.output == nullptr) continue;
        const int begin = (i + row + 3 * pass) % mk::kNormGroups * channels;
        const Signal published = launch.Activations(i, row);
        const Signal expected = check.Expected(i, row, begin, begin + channels);
        Errors& of_kind = errors[kind];
        of_kind.Add(&published.values[static_cast<size_t>(begin) * published.length],
                    expected.values);
        EXPECT_LE(of_kind.largest, limits.largest)
            << "layer " << i << ", row " << row << ": " << kind;
      }
    }
    for (const int row : {0, c.rows - 1}) {
      const Signal expected = check.ExpectedOutput(row);
      std::vector<double> actual;
      for (int a = 0; a < MegakernelRun::kActions; ++a)
        for (int at = 0; at < c.horizon; ++at)
          actual.push_back(launch.output[(row * c.horizon + at) * MegakernelRun::kActions + a]);
      errors["head"].Add(actual.data(), expected.values);
      EXPECT_LE(errors["head"].largest, limits.largest) << "the network's output of row " << row;
    }
  }
  for (const auto& [kind, of_kind] : errors) {
    EXPECT_LE(of_kind.Rms(), limits.rms) << kind;
    std::printf("    %s: largest %.2g, rms %.2g\n", kind.c_str(), of_kind.largest, of_kind.Rms());
  }
}

// The portable form on other GPUs' multiprocessors and shared memory: who computes a tile changes
// none of its bits.
TEST(PortableMegakernel, BitsAreThoseOfAnyNumberOfCtas) {
  DEVICE_OR_SKIP();
  const mjp::GpuTraits& gpu = mjp::GpuTraits::Current();
  for (const auto& [down_dims, rows] :
       {std::pair<std::vector<int>, int>{{256, 512, 1024}, 16}, {{512, 1024, 2048}, 3}}) {
    std::vector<float> first;
    for (const auto& [ctas, kib] :
         {std::pair{128, 227}, {114, 227}, {108, 163}, {82, 99}, {20, 227}, {8, 163}}) {
      const mjp::megakernel::Target target = {true, ctas, size_t{1024} * kib};
      if (ctas > gpu.multiprocessors || kib * 1024 > gpu.shared_bytes) continue;
      MegakernelRun launch(down_dims, 16, rows, Format::kFp16, &target);
      ASSERT_TRUE(launch.Runs());
      for (int pass = 0; pass < 3; ++pass) launch.RunPass();
      if (first.empty()) first = launch.output;
      EXPECT_EQ(launch.output, first) << ctas << " CTAs of " << kib << " KiB, " << rows << " rows";
    }
    EXPECT_FALSE(first.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, MegakernelLayers,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(Format::kFp16, Format::kBf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  mjp_test::FormatName(std::get<1>(info.param));
                         });

}  // namespace
