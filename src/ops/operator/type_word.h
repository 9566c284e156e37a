// Element types in the text of plans, in the words that options of the tool and names of kernels
// have.
#pragma once

#include "tilewright/tensor.h"

namespace tilewright::ops {

/// "bf16", "e4m3"; the safetensors name of a type that no kernel computes in.
inline const char* type_word(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kF32:
      return "f32";
    case DType::kF8_E4M3:
      return "e4m3";
    case DType::kF4:
      return "e2m1";
    default:
      return to_string(dtype);
  }
}

}  // namespace tilewright::ops
