// How numbers are stored in weights, in caches and in the indexer's keys, and what shares a scale.
#pragma once

#include <optional>
#include <string_view>

namespace tilewright {

/// Number formats of stored data. The scales that belong to a format depend on what is stored: the
/// header of each operator says which formats it takes and what shares a scale.
enum class NumberFormat {
  kBf16,
  kFp8,    ///< e4m3
  kMxfp4,  ///< e2m1, ue8m0 scales
  kNvfp4,  ///< e2m1, e4m3 scales
};

/// What shares a scale: the scale granularity. The header of each operator says which of these it
/// takes, and the shapes of the scales.
enum class ScaleSharing {
  kAuto,    ///< what fits the other operand
  kNone,    ///< there are no scales
  kTensor,  ///< all elements
  kHead,    ///< a head of a sequence
  kRow,     ///< a row
  kBlock,   ///< a block of rows or columns, whose size the operator states
};

/// "auto", "none", "tensor", "head", "row", "block".
const char* to_string(ScaleSharing sharing) noexcept;

/// "bf16", "fp8", "mxfp4", "nvfp4".
const char* to_string(NumberFormat format) noexcept;
/// The inverse of to_string; nothing if no format has that name.
std::optional<NumberFormat> number_format_from_string(std::string_view name) noexcept;
/// The inverse of to_string.
/// Errors   InvalidArgument; the message lists the names
NumberFormat parse_number_format(std::string_view name);

}  // namespace tilewright
