// The exchanges of the row kernel across clusters under random interleavings, without a GPU: they
// end, and nothing is overwritten before it has been read. Planted faults are found.

#include "kernels/reference/row_kernel_protocol.h"

#include <gtest/gtest.h>

namespace {

using mjp::reference::ProtocolFault;
using mjp::reference::ProtocolShape;
using mjp::reference::RowKernelProtocol;

constexpr uint32_t kRuns = 200;

TEST(RowKernelProtocol, EndsInEveryOrder) {
  const ProtocolShape shapes[] = {
      {}, {4, 8, 3, 2, 1, 2, {0, 4}}, {2, 4, 6, 1, 0, 1}, {3, 12, 3, 4, 4, 2, {0, 4, 7}}};
  for (const ProtocolShape& shape : shapes)
    for (uint32_t seed = 0; seed < kRuns; ++seed)
      ASSERT_EQ(RowKernelProtocol(shape).Run(seed), "") << shape.layers << " layers, seed " << seed;
}

class RowKernelFaults : public testing::TestWithParam<ProtocolFault> {};

TEST_P(RowKernelFaults, AreFound) {
  int found = 0;
  for (uint32_t seed = 0; seed < kRuns; ++seed)
    found += !RowKernelProtocol({3, 7, 4}, GetParam()).Run(seed).empty();
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(Faults, RowKernelFaults,
                         testing::Values(ProtocolFault::kHeadAmongTheOthers,
                                         ProtocolFault::kNoBarrierForInput,
                                         ProtocolFault::kOnePlaceForSums,
                                         ProtocolFault::kOneMailbox,
                                         ProtocolFault::kShortcutsTooNear));

}  // namespace
