#include "model/share.h"

#include "base/error.h"
#include "base/quote.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::model {
namespace {

enum class Split { kNone, kRows, kColumns };

Split tensor_split(TensorRole role) {
  switch (role) {
    case TensorRole::kHead:
    case TensorRole::kQuery:
    case TensorRole::kOutputGroup:
    case TensorRole::kSink:
    case TensorRole::kExpertIn:
    case TensorRole::kSharedIn:
      return Split::kRows;
    case TensorRole::kOutput:
    case TensorRole::kExpertOut:
    case TensorRole::kSharedOut:
      return Split::kColumns;
    default:
      return Split::kNone;
  }
}

bool is_tensor_parallel(const Share& share) {
  return share.scheme == Scheme::kTensorParallel;
}

// Rows of the operators' weights are multiples of 16, so columns of an expert's w2 are.
constexpr std::int64_t kLeastColumns = 16;

// Whole blocks of FP8 scales, or parts of one.
bool fits_blocks(std::int64_t count) {
  constexpr std::int64_t kBlock = 128;
  return count % kBlock == 0 || kBlock % count == 0;
}

bool can_split(const Config& c, std::int64_t world) {
  return c.o_groups % world == 0 && c.vocab % world == 0 &&
         c.inter % (world * kLeastColumns) == 0 && fits_blocks(c.inter / world) &&
         fits_blocks(c.o_groups / world * c.o_rank);
}

std::vector<std::int64_t> possible_worlds(const Config& config) {
  std::vector<std::int64_t> worlds;
  for (std::int64_t n = 1; n <= config.o_groups; ++n)
    if (can_split(config, n)) worlds.push_back(n);
  return worlds;
}

// Rows or columns of a matrix in the units that its scales stand for.
Range blocks_of(const CheckpointWeight& matrix, const char* what, const Range& range,
                std::int64_t block, std::int64_t size) {
  const std::int64_t end = range.first + range.count;
  const bool is_whole = range.first % block == 0 && (end % block == 0 || end == size);
  const bool is_inside = range.first / block == (end - 1) / block;
  require(is_whole || is_inside, ErrorKind::kInvalidArgument,
          "weight {}: a rank's {} {} to {} of {} cut blocks of {}, which have one scale in {}. "
          "Take a number of ranks that divides the blocks, or the other scheme",
          quote(matrix.name), what, range.first, end - 1, size, block, matrix.format);
  return {range.first / block, (end - 1) / block + 1 - range.first / block};
}

ConstTensorView window(const ConstTensorView& view, const Range& rows, const Range& cols) {
  ConstTensorView part = view;
  part.data = static_cast<const std::uint8_t*>(view.data) +
              (rows.first * view.strides[0] + cols.first) * bits_per_elem(view.dtype) / 8;
  part.shape = {rows.count, cols.count};
  return part;
}

}  // namespace

const char* to_string(Scheme scheme) noexcept {
  return scheme == Scheme::kExpertParallel ? "expert parallel" : "tensor parallel";
}

Range rank_range(const Share& share, std::int64_t size) {
  const std::int64_t first = size * share.rank / share.world;
  return {first, size * (share.rank + 1) / share.world - first};
}

MatrixRange share_of(const Share& share, TensorRole role, std::int64_t rows, std::int64_t cols,
                     std::int64_t expert, std::int64_t experts) {
  MatrixRange range = {{0, rows}, {0, cols}};
  if (!is_tensor_parallel(share)) {
    if (expert < 0) return range;
    const Range kept = rank_range(share, experts);
    if (expert < kept.first || expert >= kept.first + kept.count) range.rows = {};
    return range;
  }
  const Split split = tensor_split(role);
  if (split == Split::kRows) range.rows = rank_range(share, rows);
  if (split == Split::kColumns) range.cols = rank_range(share, cols);
  return range;
}

LocalSizes local_sizes(const Share& share, const Config& c) {
  if (!is_tensor_parallel(share))
    return {c.heads, c.o_groups, c.inter, rank_range(share, c.experts), {0, c.vocab}};
  return {c.heads / share.world,
          c.o_groups / share.world,
          c.inter / share.world,
          {0, c.experts},
          rank_range(share, c.vocab)};
}

Config rank_config(const Share& share, const Config& config) {
  const LocalSizes local = local_sizes(share, config);
  Config part = config;
  part.heads = local.heads;
  part.o_groups = local.o_groups;
  part.inter = local.inter;
  return part;
}

void check_share(const Share& share, const Config& config) {
  constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;
  require(share.world >= 1 && share.rank >= 0 && share.rank < share.world, kInvalid,
          "rank {} of {}; expected 0 to the number of ranks - 1", share.rank, share.world);
  if (!is_tensor_parallel(share)) {
    require(share.world <= config.experts, kInvalid,
            "{} ranks share {} experts; expected at most as many ranks as experts", share.world,
            config.experts);
    return;
  }
  require(can_split(config, share.world), kInvalid,
          "{} ranks cannot split the tensors of this model (o_groups {}, moe_intermediate_size {}, "
          "vocab_size {}) evenly, in blocks of 128; expected {} ranks. Or share it by experts",
          share.world, config.o_groups, config.inter, config.vocab,
          fmt::join(possible_worlds(config), ", "));
}

CheckpointWeight part_of(const CheckpointWeight& matrix, const MatrixRange& range) {
  CheckpointWeight part = matrix;
  part.rows = range.rows.count;
  part.cols = range.cols.count;
  if (range == MatrixRange{{0, matrix.rows}, {0, matrix.cols}}) return part;
  const DType dtype = matrix.codes.dtype;
  const std::int64_t per_elem = dtype == DType::kU8 || dtype == DType::kI8 ? 2 : 1;
  part.codes =
      window(matrix.codes, range.rows, {range.cols.first / per_elem, range.cols.count / per_elem});
  if (matrix.format.empty()) return part;
  const BlockFormat& format = block_format_by_name(matrix.format);
  part.scales =
      window(matrix.scales, blocks_of(matrix, "rows", range.rows, format.block_rows, matrix.rows),
             blocks_of(matrix, "columns", range.cols, format.block_cols, matrix.cols));
  return part;
}

}  // namespace tilewright::model
