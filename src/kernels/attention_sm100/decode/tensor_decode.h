// Contract of flash decode on Blackwell's tensor core: the problem of attention/decode/decode.h,
// with other tiles and other shared memory.
#pragma once

#include "kernels/attention/decode/decode.h"

#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kTensorDecodeKeys = 128;  ///< of a step: the lanes of Tensor Memory
inline constexpr int kTensorDecodeRowThreads = 128;
inline constexpr int kTensorDecodeThreads = 256;
inline constexpr int kTensorDecodeMostStages = 12;
inline constexpr int kTensorDecodeMostRows = 64;
inline constexpr int kTensorDecodeStateBytes = 4096;
/// Queries and weights that go with codes are sums of three codes each: 12 bits, as f16 has 11.
inline constexpr int kTensorDecodeCodeParts = 3;

/// Elements that are multiplied of rows of head_dim.
constexpr int tensor_decode_width(int head_dim) {
  return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256;
}

/// Entries decode_tensor_16bit_rROWS and decode_tensor_e4m3_rROWS; any head_dim.
struct TensorDecodeParams {
  DecodeAnyParams decode;  ///< without guess and ahead_keys
  std::int32_t width;      ///< tensor_decode_width(decode.head_dim)
  std::int32_t is_f16;     ///< 16-bit caches are of f16, else bf16
  std::int32_t has_boxes;  ///< maps are there; else keys are gathered, 16 bytes at a time
};

/// How a CTA's shared memory is cut. Keys and values come as items of 128 rows, as boxes of up to
/// 128 bytes of each, one behind the other: K, V, K, V, ... through one ring.
struct TensorDecodeShape {
  int head_dim;  ///< the width
  bool is_codes;
  int rows;  ///< of a tile, at most

  constexpr int row_bytes() const { return is_codes ? head_dim : 2 * head_dim; }
  constexpr int span() const { return decode_box_bytes(row_bytes()); }
  constexpr int item_bytes() const { return kTensorDecodeKeys * row_bytes(); }
  /// Columns of scores and of results.
  constexpr int columns() const { return rows * (is_codes ? kTensorDecodeCodeParts : 1); }
  constexpr int query_bytes() const { return columns() * row_bytes(); }
  constexpr int weight_bytes() const { return kTensorDecodeKeys * columns() * (is_codes ? 1 : 2); }
  /// Results of 16 rows, where weights were.
  constexpr int exchange_bytes() const { return 16 * head_dim * 4; }
  constexpr int weight_or_exchange_bytes() const {
    return weight_bytes() > exchange_bytes() ? weight_bytes() : exchange_bytes();
  }
  constexpr int fixed_bytes() const {
    return query_bytes() + weight_or_exchange_bytes() + kTensorDecodeStateBytes;
  }
  constexpr int stages() const {
    const int room = (decode_max_shared(1) - fixed_bytes()) / item_bytes();
    return room < kTensorDecodeMostStages ? room : kTensorDecodeMostStages;
  }
  constexpr int shared_bytes() const { return stages() * item_bytes() + fixed_bytes(); }
};

}  // namespace tilewright::kernels
