#include <array>
#include <map>

#include "kernels/reference/megakernel_program.h"

namespace mjp::reference {

using megakernel::kCtas;
using megakernel::kNormGroups;
using megakernel::kRowsPerBatch;
using megakernel::kTileChannels;
using megakernel::Layer;

megakernel::GemmTile GemmTileOfCta(const MegakernelProgram& program, int layer, int cta,
                                   const MegakernelFault& fault) {
  megakernel::GemmTile gemm =
      megakernel::GemmTileOf(program.layers[layer], megakernel::TileOfCta(cta));
  if (fault.kind == MegakernelFault::kSliceTwice && fault.layer == layer && gemm.k_slice == 1)
    gemm.k_slice = 0;
  return gemm;
}

std::vector<std::string> CheckTiles(const MegakernelProgram& program,
                                    const MegakernelFault& fault) {
  constexpr size_t kMostWrong = 4;
  std::vector<std::string> wrong;
  for (int layer = 0; layer < static_cast<int>(program.layers.size()); ++layer) {
    const Layer& l = program.layers[layer];
    if (l.shape.in_c == 0) continue;
    const int group_c = l.shape.out_c / kNormGroups;
    const int tile_c = l.cta_local ? megakernel::kLocalTileChannels : kTileChannels;
    // row, phase, out channel / tile_c, in channel / kBlockK: how often
    std::map<std::array<int, 4>, int> made;
    for (int cta = 0; cta < kCtas; ++cta) {
      const megakernel::GemmTile gemm = GemmTileOfCta(program, layer, cta, fault);
      if (!gemm.has_work) continue;
      const int out = (gemm.group_block << l.groups_log2) * group_c + gemm.out;
      for (int row = gemm.row0; row < gemm.row0 + (1 << l.rows_log2); ++row)
        for (int in = 0; in < l.k_slice; in += megakernel::kBlockK)
          ++made[{row, gemm.phase, out / tile_c,
                  (gemm.k_slice * l.k_slice + in) / megakernel::kBlockK}];
    }
    const int blocks = l.shape.in_c / megakernel::kBlockK, tiles = l.shape.out_c / tile_c;
    const size_t all = size_t{kRowsPerBatch} * l.shape.phases * tiles * blocks;
    const auto complain = [&](const std::string& what) {
      wrong.push_back("layer " + std::to_string(layer) + ": " + what);
    };
    if (made.size() != all)
      complain(std::to_string(made.size()) + " parts of its tiles are made, of " +
               std::to_string(all));
    for (const auto& [part, times] : made) {
      const auto& [row, phase, tile, in] = part;
      if (row >= kRowsPerBatch || tile >= tiles || in >= blocks) complain("a part is beyond it");
      if (times > 1) complain("a part of a tile of row " + std::to_string(row) + " is made twice");
    }
  }
  if (wrong.size() > kMostWrong) wrong.resize(kMostWrong);
  return wrong;
}

}  // namespace mjp::reference
