// targets: sm_100f
//
// Proofs, no kernel: columns of Tensor Memory as kernels of sm_100 count them, against the layouts
// of tcgen05.mma. What one product leaves must end where the next thing begins.
#include "arch/fragments/block_scales.h"
#include "arch/fragments/tmem.h"
#include "kernels/attention_sm100/decode/state.h"
#include "kernels/attention_sm100/one_tile.h"
#include "kernels/attention_sm100/tensor_attention_pair.h"
#include "kernels/linear/block_scaled/stages.h"
#include "kernels/sparse_attention/indexer/sm100/shared.h"
#include "kernels/sparse_attention/pair/shared.h"

namespace tilewright::kernels {
namespace {

using arch::TmemRows;

// Columns that a layout (row, column) of elements of so many bits reaches; a third mode counts
// copies. Modes are independent, so all columns of the first and the last row will do.
constexpr int columns_of(const Layout& cells, int bits = 32) {
  const std::int64_t in_lane = arch::kTmemLane * 32 / bits;
  std::int64_t last = 0;
  for (const std::int64_t row : {std::int64_t{0}, size(cells, 0) - 1}) {
    for (std::int64_t i = 0; i < size(cells, 1); ++i) {
      const IntTuple at = rank(cells) == 3 ? make_coord(row, i, 0) : make_coord(row, i);
      const std::int64_t column = cells(at) % in_lane;
      last = column > last ? column : last;
    }
  }
  return static_cast<int>(last * bits / 32) + 1;
}
constexpr int results(TmemRows rows, int n) {
  return columns_of(arch::tmem_c(rows, n));
}
constexpr int operand(TmemRows rows, int k) {
  return columns_of(arch::tmem_a(rows, k, 16), 16);
}

// Attention, a tile of 128 rows a CTA: scores, P, results (stages B, C and D). Two tiles in flight
// (E): P is where the scores were.
using Columns = tile::TensorColumns<tile::kKeys>;
static_assert(Columns::kOperand == Columns::kScores + results(TmemRows::kM128, tile::kKeys));
static_assert(Columns::kResults == Columns::kOperand + operand(TmemRows::kM128, tile::kKeys));
static_assert(operand(TmemRows::kM128, tile::kKeys) <= results(TmemRows::kM128, tile::kKeys));

// Pairs of CTAs with 64 rows each (F of large heads, G, sparse attention): half of the columns, and
// the two lanes of a row are kHalfRows apart, for results and for A.
constexpr TmemRows kHalves = TmemRows::kPairM128;
constexpr bool has_rows_in_two_lanes(int n) {
  const Layout c = arch::tmem_c(kHalves, n), a = arch::tmem_a(kHalves, n, 16);
  constexpr std::int64_t kOther = tile::kHalfRows * arch::kTmemLane;
  for (int row = 0; row < tile::kHalfRows; ++row) {
    if (c(row, n / 2) != c(row, 0) + kOther || c(row, 0) != row * arch::kTmemLane) return false;
    if (a(make_coord(row, 0, 1)) != a(make_coord(row, 0, 0)) + 2 * kOther) return false;
  }
  return true;
}
static_assert(has_rows_in_two_lanes(tile::kKeys));
static_assert(results(kHalves, 4 * tile::kBoxElems) ==
              tile::kTensorRows);  // issue_values_of_halves
static_assert(operand(kHalves, tile::kBoxElems) == 32);

// Weights are inside their scores; those of even blocks in front of scores of odd ones, those of
// odd blocks behind scores of even ones.
template <class Pair>
constexpr bool has_room_of_pair() {
  constexpr int kScores = results(kHalves, 2 * kSparseBlockKeys);
  constexpr int kWeights = operand(kHalves, kSparseBlockKeys);
  return kWeights <= Pair::kScores && kScores <= Pair::kWeights &&
         Pair::kScores <= Pair::kWeights && Pair::kWeights + kWeights <= Pair::kScores + kScores &&
         Pair::kScores + kScores <= Pair::kQueries &&
         Pair::kQueries + operand(kHalves, Pair::kDims / 2) == tile::kPairResults &&
         (Pair::kHasTail || kScores <= Pair::kScores);
}
static_assert(has_room_of_pair<tile::PairForm<kKvDims>>() &&
              has_room_of_pair<tile::PairForm<kKvMlaDims>>());
static_assert(tile::kPairColumns == tile::kPairResults + 2 * results(kHalves, 256));

// Decode attention: keys are the rows of the product, columns its queries.
template <class Decode>
constexpr bool decodes_in_columns =
    Decode::kColumns == results(TmemRows::kM128, Decode::kColumns) &&
    Decode::kUsed == Decode::kResults + 2 * results(TmemRows::kM128, Decode::kColumns) &&
    Decode::kUsed <= Decode::kAllocated;
static_assert(decodes_in_columns<tile::TensorDecode<false, 16>> &&
              decodes_in_columns<tile::TensorDecode<false, 64>> &&
              decodes_in_columns<tile::TensorDecode<true, 16>> &&
              decodes_in_columns<tile::TensorDecode<true, 32>>);

// Scales: bytes of a cell are four of a row, 32 rows a column.
constexpr int scales(int rows) {
  return columns_of(arch::tmem_scales(rows), 8);
}

// The indexer's logits: accumulators, then scales of two parts' queries and of stages of keys.
template <class Traits>
constexpr bool has_room_for_accumulators(int end) {
  return Traits::kColumns == results(TmemRows::kM128, Traits::kColumns) &&
         Traits::kAccumulators * Traits::kColumns <= end;
}
using Mxfp4Traits = tile::TensorIndexerTraits<IndexFormat::kMxfp4>;
static_assert(
    has_room_for_accumulators<tile::TensorIndexerTraits<IndexFormat::kFp8>>(arch::kTmemColumns));
static_assert(has_room_for_accumulators<Mxfp4Traits>(Mxfp4Traits::kQueryScales));
static_assert(Mxfp4Traits::kScaleColumns == scales(128));
static_assert(Mxfp4Traits::kKeyScales ==
              Mxfp4Traits::kQueryScales + 2 * 2 * Mxfp4Traits::kScaleColumns);
static_assert(Mxfp4Traits::kKeyScales + kTensorIndexerMaxStages * Mxfp4Traits::kScaleColumns <=
              arch::kTmemColumns);

// GEMMs: two accumulators, which may share columns, then places for the scales of a step.
template <BlockScaledKind Kind, int Tile>
constexpr bool has_room_for_steps() {
  constexpr BlockScaledConfig kConfig = {Kind, kBlockScaledTiles[Tile]};
  using Columns = tile::BlockScaledColumns<kConfig>;
  constexpr TmemRows kRows = kConfig.tile.ctas == 2 ? TmemRows::kPairM256 : TmemRows::kM128;
  constexpr int kAccumulator = results(kRows, kConfig.tile.n);
  return Columns::kSecond + Columns::kShared == kAccumulator &&
         Columns::kScaleBase == Columns::kSecond + kAccumulator &&
         Columns::kAScaleColumns == scales(128) &&
         Columns::kBScaleColumns == scales(128) * kConfig.scale_atoms_n() &&
         Columns::kScaleBase + Columns::kPlaces * Columns::kPerStep <= arch::kTmemColumns;
}
template <BlockScaledKind Kind>
constexpr bool has_room_in_all_tiles =
    has_room_for_steps<Kind, 0>() && has_room_for_steps<Kind, 1>() &&
    has_room_for_steps<Kind, 2>() && has_room_for_steps<Kind, 3>();
static_assert(has_room_in_all_tiles<BlockScaledKind::kNvfp4>);
static_assert(has_room_in_all_tiles<BlockScaledKind::kMxfp8Mxfp4>);
static_assert(has_room_in_all_tiles<BlockScaledKind::kMxfp8>);

}  // namespace
}  // namespace tilewright::kernels
