// What a rung of the ladder of attention kernels can do.
#pragma once

namespace tilewright::kernels {

/// What a rung can do besides bf16 and f16, any lengths, a causal mask, grouped heads and strides.
struct AttentionSupport {
  int max_head_dim;  ///< of 64, 128 and 256
  bool has_lse, has_window, has_packed_sequences, has_softcap, has_sink;
};

}  // namespace tilewright::kernels
