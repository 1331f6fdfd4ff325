#include <algorithm>
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

std::vector<int> TilesOfCta(const MegakernelProgram& program, int cta) {
  if (program.ctas == 0) return {cta};
  const int each = kCtas / program.ctas, more = kCtas % program.ctas;
  std::vector<int> order, tiles;
  for (int group = 0; group < kNormGroups; ++group)
    for (int row = 0; row < kRowsPerBatch / 2; ++row)
      for (const int of_pair : {row, row + kRowsPerBatch / 2})
        order.push_back(group * kRowsPerBatch + of_pair);
  int begin = 0;
  for (int before = 0; before < cta; ++before) begin += each + (before < more);
  for (int i = begin; i < begin + each + (cta < more); ++i) tiles.push_back(order.at(i));
  return tiles;
}

namespace {

// Whether two tiles of a CTA are rows r and r + 8 of a norm group.
bool IsPair(int tile, int next) {
  return next == tile + kRowsPerBatch / 2 && tile % kRowsPerBatch < kRowsPerBatch / 2;
}

// Whether the portable kernel takes their GEMM tiles as one: if it has up to 64 columns.
bool JoinsPair(const MegakernelProgram& program, const Layer& l, int tile, int next) {
  constexpr int kMostColumns = 64;
  const int rows = 2 << l.rows_log2;
  return program.ctas > 0 && program.row_slots == kRowsPerBatch && IsPair(tile, next) &&
         l.shape.phases == 1 && rows <= kRowsPerBatch &&
         rows * l.shape.out_length <= kMostColumns &&
         rows << l.in_length_log2 <= megakernel::kMmaThreads;
}

// Whether it takes their input once for both.
bool RepeatsInput(const MegakernelProgram& program, int layer, int tile, int next) {
  const Layer& l = program.layers[layer];
  const megakernel::GemmTile a = GemmTileOfCta(program, layer, tile, {}),
                             b = GemmTileOfCta(program, layer, next, {});
  return program.ctas > 0 && IsPair(tile, next) && !l.shape.shortcut &&
         l.k_slice == megakernel::kBlockK && a.row0 == b.row0 && a.k_slice == b.k_slice;
}

}  // namespace

std::vector<GemmOfCta> GemmsOfCta(const MegakernelProgram& program, int layer,
                                  const std::vector<int>& tiles) {
  const Layer& l = program.layers[layer];
  std::vector<GemmOfCta> gemms;
  if (l.shape.in_c == 0) return gemms;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const megakernel::GemmTile tile = GemmTileOfCta(program, layer, tiles[i], {});
    if (!tile.has_work || tile.row0 >= program.row_slots) continue;
    const bool repeats =
        !gemms.empty() && RepeatsInput(program, layer, gemms.back().tiles.back(), tiles[i]);
    gemms.push_back({{tiles[i]}, repeats});
    if (i + 1 < tiles.size() && JoinsPair(program, l, tiles[i], tiles[i + 1]))
      gemms.back().tiles.push_back(tiles[++i]);
  }
  return gemms;
}

std::set<int> StepRows(const MegakernelProgram& program, const std::vector<int>& used,
                       const std::vector<int>& tiles) {
  std::set<int> rows;
  for (const int tile : used) rows.insert(std::min(tile % kRowsPerBatch, program.rows - 1));
  const bool few = tiles.size() == 1 || (tiles.size() == 2 && IsPair(tiles[0], tiles[1]));
  for (int row = 0; row < program.rows && !few; ++row) rows.insert(row);
  return rows;
}

int EndRow(const MegakernelProgram& program, const Layer& layer, const megakernel::GemmTile& gemm,
           const MegakernelFault& fault) {
  const int end = gemm.row0 + (1 << layer.rows_log2);
  return fault.kind == MegakernelFault::kUnusedRowAwaited ? end : std::min(program.row_slots, end);
}

int OutputTileValues(const Layer& layer) {
  return layer.shape.out_c / kNormGroups * layer.shape.out_length * layer.shape.phases;
}

bool TilesAreSmall(const MegakernelProgram& program) {
  return std::all_of(program.layers.begin(), program.layers.end(),
                     [](const Layer& l) { return OutputTileValues(l) <= kHalfTileValues; });
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
    const int slots = program.row_slots;
    std::vector<int> ctas;
    for (int cta = 0; cta < (program.ctas > 0 ? program.ctas : kCtas); ++cta)
      for (const int tile : TilesOfCta(program, cta)) ctas.push_back(tile);
    for (const int cta : ctas) {
      const megakernel::GemmTile gemm = GemmTileOfCta(program, layer, cta, fault);
      if (!gemm.has_work) continue;
      const int out = (gemm.group_block << l.groups_log2) * group_c + gemm.out;
      for (int row = gemm.row0; row < std::min(slots, gemm.row0 + (1 << l.rows_log2)); ++row)
        for (int in = 0; in < l.k_slice; in += megakernel::kBlockK)
          ++made[{row, gemm.phase, out / tile_c,
                  (gemm.k_slice * l.k_slice + in) / megakernel::kBlockK}];
    }
    const int blocks = l.shape.in_c / megakernel::kBlockK, tiles = l.shape.out_c / tile_c;
    const size_t all = static_cast<size_t>(slots) * l.shape.phases * tiles * blocks;
    const auto complain = [&](const std::string& what) {
      wrong.push_back("layer " + std::to_string(layer) + ": " + what);
    };
    if (made.size() != all)
      complain(std::to_string(made.size()) + " parts of its tiles are made, of " +
               std::to_string(all));
    for (const auto& [part, times] : made) {
      const auto& [row, phase, tile, in] = part;
      if (row >= slots || tile >= tiles || in >= blocks) complain("a part is beyond it");
      if (times > 1) complain("a part of a tile of row " + std::to_string(row) + " is made twice");
    }
  }
  if (wrong.size() > kMostWrong) wrong.resize(kMostWrong);
  return wrong;
}

}  // namespace mjp::reference
