// Masks made into lists of keys, which attention over lists reads (sparse_attention.h).
#pragma once

#include "tilewright/device.h"
#include "tilewright/plan.h"

#include <cstdint>
#include <memory>

namespace tilewright {

/// What an entry of a mask is.
enum class MaskEntry {
  kBytes,  ///< a byte, set if it is not 0: bool of PyTorch and numpy
  kBits,   ///< bit e % 8 of byte e / 8 of its row, the lowest first
};

/// indices[b,i,:] = the keys j < keys, ascending, whose entry mask[b, i / query_block, j /
/// key_block] is set, and -1 behind them. lengths[b,i] is how many there are, at most topk; what is
/// more is left out. totals[b,i] is how many there would be.
///
/// Pages    with page_size > 0 a key is written as its slot in a paged cache:
///          block_table[b, j / page_size] * page_size + j % page_size
/// Shapes   mask [batch, ceil(rows / query_block), ceil(keys / key_block)] entries; indices [batch,
///          rows, topk]; lengths, totals [batch, rows]; block_table [batch, ceil(keys / page_size)]
/// Layout   entries of a row are adjacent; strides of rows and batches are free, in bytes. Rows
///          that begin at multiples of 16 bytes are read fastest
/// Source   the reduction of an additive mask to lists in transformers' DeepSeek-V4; block-sparse
///          masks: FlexAttention
struct MaskListsProblem {
  MaskEntry entry = MaskEntry::kBytes;
  std::int64_t batch = 1, rows = 0, keys = 0;
  std::int64_t query_block = 1, key_block = 1;            ///< rows, and keys, that share an entry
  std::int64_t topk = 0;                                  ///< entries of a list
  std::int64_t index_stride = 0;                          ///< elements from list to list; 0: topk
  std::int64_t mask_batch_bytes = 0, mask_row_bytes = 0;  ///< strides; 0: contiguous
  std::int64_t page_size = 0;                             ///< 0: indices are keys
  std::int64_t table_stride = 0;  ///< elements from batch to batch; 0: contiguous
  bool has_totals = false;
};

/// Device addresses, and the stream to work on.
struct MaskListsArguments {
  const void* mask = nullptr;
  std::int32_t* indices = nullptr;
  std::int32_t* lengths = nullptr;
  std::int32_t* totals = nullptr;             ///< if has_totals
  const std::int32_t* block_table = nullptr;  ///< if page_size > 0
  void* stream = nullptr;                     ///< CUstream; null: the default stream
};

struct MaskListsPlan : Plan {
  MaskListsProblem problem;  ///< with all defaults filled in
};

/// A plan with its kernel loaded on a device.
///
/// Thread   run() may be called from several threads if outputs differ
class MaskLists {
 public:
  /// Errors   InvalidArgument naming field, value and rule; Unsupported without the kernel
  MaskLists(const Device& device, const MaskListsProblem& problem);
  ~MaskLists();
  MaskLists(MaskLists&&) noexcept;
  MaskLists& operator=(MaskLists&&) noexcept;

  const MaskListsPlan& plan() const noexcept;
  /// Enqueues the kernel. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const MaskListsArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as MaskLists' constructor.
MaskListsPlan plan_mask_lists(const Device& device, const MaskListsProblem& problem);

}  // namespace tilewright
