// What `tilewright attention` computes on: names of files and tensors, switches of the problem.
#pragma once

#include "verify/attention/data.h"

#include <optional>
#include <string>

namespace tilewright::cli {

/// As given on the command line. Without `file` the names are .npy files, with it tensors of it.
struct AttentionInput {
  std::string q = "q", k = "k", v = "v", file, layout, dtype, kernel = "auto";
  std::string cu_q, cu_kv;  ///< where packed sequences begin; empty: not packed
  std::string sink, window;
  std::string drawn;  ///< "normal" or "outlier": no files
  /// Then: batch, heads, kv_heads, q_len, kv_len, head_dim; value_dim if it is another.
  std::vector<std::int64_t> shape;
  std::optional<double> scale;
  double softcap = 0;
  bool causal = false;
};

/// One of the tensors. Names that end in .npy are files in any case.
HostTensor load_tensor(const AttentionInput& input, const std::string& name);

/// The problem with what is in files; operands that are to be drawn are still empty, so that a plan
/// can refuse a shape before draw_operands() takes time and memory.
/// Errors   InvalidArgument or ParseError naming the option or file, and what was expected
AttentionData describe_attention(const AttentionInput& input);
void draw_operands(const AttentionInput& input, AttentionData& data);

/// describe_attention(), then draw_operands().
AttentionData load_attention(const AttentionInput& input);

}  // namespace tilewright::cli
