// The attention kernels of Blackwell, for the operator: what they can do, and what they cost by
// count.
#pragma once

#include "ops/attention/kernels.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::ops {

/// Stages that are attention as the operator has it: sm100_c, sm100_e, sm100_f, sm100_h; and
/// sm100_pages, stages E and F over keys in pages.
std::vector<AttentionKernel> make_sm100_attention_kernels();

/// Tiles of all sequences of sm100_pages: as many as there can be, whatever the lengths are.
std::int64_t sm100_page_tiles(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Pages as a matrix whose rows are those of all pages and heads, or lie between them: what
/// tile::gather4 takes rows from.
struct RowMatrix {
  std::int64_t rows, row_elems;  ///< row_elems: from row to row
};
/// Of keys or values of `dim` columns. None if rows would overlap, or be too many.
std::optional<RowMatrix> find_row_matrix(const AttentionProblem& problem, const Strides& strides,
                                         std::int64_t dim);

/// Who copies a tile of keys: a warp its parts (kWarps), or four rows a copy (kRows).
kernels::PageCopies sm100_page_copies(const AttentionKernel& kernel,
                                      const AttentionProblem& problem);

/// Of caches of e4m3: why the kernel cannot copy the parts of their pages; empty if it can.
std::string sm100_cache_obstacle(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Microseconds in which no unit of the busiest SM could do more, from the counts of
/// src/kernels/attention_sm100/README.md. No B200 has been measured.
double sm100_attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& problem);

}  // namespace tilewright::ops
