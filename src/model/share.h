// Which part of a model's weights belongs to one of several ranks.
#pragma once

#include "formats/checkpoint_weight.h"
#include "model/config.h"

#include <cstdint>

namespace tilewright::model {

/// What a tensor of the model is for. It decides what a rank has of it, and how released
/// checkpoints store it.
enum class TensorRole {
  kEmbedding,
  kHead,             ///< [vocab, hidden]
  kNorm,             ///< weights of norms
  kHyper,            ///< hyper-connections: fn, base, scale
  kLatent,           ///< wq_a, wkv
  kQuery,            ///< wq_b: rows are heads
  kOutputGroup,      ///< wo_a: rows are output groups
  kOutput,           ///< wo_b: columns are output groups
  kSink,             ///< attn_sink: one number a head
  kCompressor,       ///< wkv, wgate of a compressor
  kCompressorTable,  ///< its ape
  kIndexQuery,       ///< wq_b of the indexer
  kIndexWeight,      ///< weights_proj of the indexer
  kRouter,
  kRouterBias,
  kRouterTable,  ///< tid2eid
  kExpertIn,     ///< w1, w3 of routed experts
  kExpertOut,    ///< w2
  kSharedIn,     ///< of the shared expert
  kSharedOut,
  kDraftProjection,  ///< e_proj, h_proj of draft layers
};

/// How ranks share the weights.
///
///                     kExpertParallel           kTensorParallel
/// routed experts      experts, in runs          w1, w3 by rows, w2 by columns, of all experts
/// shared expert       all                       w1, w3 by rows, w2 by columns
/// wq_b, attn_sink     all                       heads
/// wo_a, wo_b          all                       output groups: rows of wo_a, columns of wo_b
/// head                all                       rows, tokens of the vocabulary
/// everything else     all                       all
///
/// So with experts in parallel every rank runs attention on sequences of its own, and with tensors
/// in parallel the results of wo_b and of w2 are summed over the ranks.
enum class Scheme { kExpertParallel, kTensorParallel };

/// "expert parallel", "tensor parallel"
const char* to_string(Scheme scheme) noexcept;

/// One rank of several. The default has everything.
struct Share {
  Scheme scheme = Scheme::kExpertParallel;
  std::int64_t rank = 0, world = 1;
};

struct Range {
  std::int64_t first = 0, count = 0;
  bool operator==(const Range&) const = default;
};
/// A part of a matrix; of a vector [n] rows of one column.
struct MatrixRange {
  Range rows, cols;
  bool operator==(const MatrixRange&) const = default;
};

/// What a rank has of `size` things in a row: ranks follow each other, and their counts differ by
/// one at most.
Range rank_range(const Share& share, std::int64_t size);

/// Of a tensor [rows, cols]. `expert`: the routed expert that it belongs to, of `experts`; that of
/// another rank: no rows.
MatrixRange share_of(const Share& share, TensorRole role, std::int64_t rows, std::int64_t cols,
                     std::int64_t expert = -1, std::int64_t experts = 0);

/// Sizes of what a rank works with; those that are not here are Config's.
struct LocalSizes {
  std::int64_t heads = 0, o_groups = 0, inter = 0;
  Range experts;  ///< routed ones
  Range vocab;    ///< rows of the head
};
LocalSizes local_sizes(const Share& share, const Config& config);

/// The model as the operators of a rank see it: Config with the rank's heads, o_groups and inter.
Config rank_config(const Share& share, const Config& config);

/// Errors   InvalidArgument with what would be possible: a rank outside the world, more ranks than
///          experts, a world that does not divide groups, vocabulary or the columns of experts, or
///          not into parts that blocks of 128 x 128 allow
void check_share(const Share& share, const Config& config);

/// The part as views of the same memory.
/// Errors   InvalidArgument if it begins or ends within a block of 128 x 128 or a group of the
///          format, unless it lies in one
CheckpointWeight part_of(const CheckpointWeight& matrix, const MatrixRange& range);

}  // namespace tilewright::model
