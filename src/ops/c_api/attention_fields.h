// Fields that the problems of all attention operators have, from C.
#pragma once

#include "tilewright/tensor.h"
#include "tilewright/tilewright.h"

#include "base/error.h"

#include <cstdint>

namespace tilewright::c_api {

/// TW_BF16 or TW_F16, or TW_E4M3 where that is possible.
inline DType to_attention_dtype(const char* function, const char* field, std::int32_t dtype,
                                bool may_be_e4m3) {
  require(dtype == TW_BF16 || dtype == TW_F16 || (may_be_e4m3 && dtype == TW_E4M3),
          ErrorKind::kInvalidArgument, "{}: problem.{} = {}; expected TW_BF16 = 0{}", function,
          field, dtype, may_be_e4m3 ? ", TW_F16 = 1 or TW_E4M3 = 3" : " or TW_F16 = 1");
  if (dtype == TW_E4M3) return DType::kF8_E4M3;
  return dtype == TW_F16 ? DType::kF16 : DType::kBF16;
}

/// An enumerator, by its number.
template <class Enum>
Enum to_enum(const char* function, const char* field, std::int32_t value, Enum last) {
  const auto most = static_cast<std::int32_t>(last);
  require(value >= 0 && value <= most, ErrorKind::kInvalidArgument,
          "{}: problem.{} = {}; expected 0 to {}", function, field, value, most);
  return static_cast<Enum>(value);
}

template <class Strides>
Strides to_strides(const tw_strides& s) {
  return {s.batch, s.row, s.head};
}

}  // namespace tilewright::c_api
