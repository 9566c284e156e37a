// What storing values in narrow formats does to them, in the references.
#pragma once

#include "formats/block_format.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Every value to fp32 and that to bf16, nearest even both times: kernels compute in fp32, and
/// frameworks convert doubles in these two steps as well. One step gives another bf16 once in 10^5
/// values, which is enough to change what an indexer selects some layers later.
void round_to_bf16(std::span<double> values);

/// How far apart numbers that are within `error` of x can be once they are rounded to `format`: 0
/// unless a tie lies between them.
double rounding_doubt(const FormatSpec& format, double x, double error);

/// Quantised and dequantised: the first `quantized_cols` of every row of [rows, cols] with the
/// blocks of `format`, by the rule of formats/block_scale.h in its fp32 arithmetic; the other
/// columns stay. A format with a tensor scale uses 1. Values are rounded to fp32 first.
/// Errors   InvalidArgument if an array does not have its shape
void round_to_blocks(const BlockFormat& format, std::span<double> values, int64_t rows,
                     int64_t cols, int64_t quantized_cols);

/// Likewise each row of [.., cols] by itself. A format with a tensor scale uses `encode_scale`, or
/// if there is none, that which maps the row's largest magnitude to the top (1 if the row has a NaN
/// or an infinity).
void round_rows_to_blocks(const BlockFormat& format, std::span<double> values, int64_t cols,
                          std::optional<float> encode_scale);

}  // namespace tilewright::reference
