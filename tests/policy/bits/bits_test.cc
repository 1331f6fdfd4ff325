// One result on every processor: each instruction set that this machine has, in processes of their
// own, prints the stored lines.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "tests/support/program.h"

namespace {

std::vector<std::string> Lines(std::istream& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Stored() {
  std::ifstream file(MJPOLICY_SOURCE_DIR "/tests/policy/bits/bits.txt");
  return Lines(file);
}

std::vector<std::string> Printed(const std::string& settings) {
  const mjp_test::Outcome outcome = mjp_test::Run(settings + " " POLICY_BITS);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream text(outcome.text);
  return Lines(text);
}

class BitsTest : public testing::TestWithParam<mjp::Isa> {};

TEST_P(BitsTest, AreTheStoredOnes) {
  const mjp::Isa isa = GetParam();
  if (isa > mjp::ActiveIsa()) GTEST_SKIP() << "this processor has no " << mjp::IsaName(isa);
  const std::vector<std::string> stored = Stored();
  ASSERT_GT(stored.size(), 10u);
  EXPECT_EQ(Printed(std::string("MJPOLICY_ISA=") + mjp::IsaName(isa)), stored);
}

INSTANTIATE_TEST_SUITE_P(All, BitsTest,
                         testing::Values(mjp::Isa::kBaseline, mjp::Isa::kAvx2, mjp::Isa::kAvx512),
                         [](const auto& info) { return std::string(mjp::IsaName(info.param)); });

// The C library has other sines, logarithms and exponentials in double precision for such
// processors; this setting makes it choose them. Others ignore it.
TEST(BitsTest, DoNotDependOnTheCLibrarysFusedFunctions) {
  EXPECT_EQ(Printed("GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA"),
            Stored());
}

// The fast kernels without fused multiply-adds are not the others: the test above would see it.
TEST(BitsTest, OfTheUnfusedKernelsAreOthers) {
#ifndef __x86_64__
  GTEST_SKIP() << "x86 alone has unfused kernels";
#endif
  const std::vector<std::string> stored = Stored(), printed = Printed("MJPOLICY_ISA=unfused");
  ASSERT_EQ(printed.size(), stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!stored[i].starts_with("decision/")) continue;
    EXPECT_NE(printed[i], stored[i]);
  }
}

}  // namespace
