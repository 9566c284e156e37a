// The conversions that kernels spend time in, by vectors.
#include "sim/insn/scalar/convert_exec.h"
#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/half_lanes.h"

#include <array>

namespace tilewright::sim {
namespace {

using half::Bf16;
using half::F16;

/// Stores a row of computed values, or the active ones of them.
template <class T>
void store(Warp& warp, Row row, const T* values, std::uint32_t active) {
  T* d = warp.row<T>(row);
  if (active == kAllLanes) {
    std::memcpy(d, values, sizeof(T) * kLanes);
  } else {
    blend(d, values, active);
  }
}

template <class Format, bool kFtz, bool kRelu>
Step narrow_half(Warp& warp, const Insn& insn, std::uint32_t active) {
  alignas(64) float inputs[kLanes];
  alignas(64) std::uint16_t codes[kLanes];
  const float* a = warp.row<float>(insn.op[1]);
  for (int i = 0; i < kLanes; ++i) inputs[i] = floating::input<kFtz>(a[i]);
  Format::narrow(inputs, codes, kLanes);
  if constexpr (kRelu) {
    for (auto& code : codes) code = (code & 0x8000) != 0 ? std::uint16_t{0} : code;
  }
  store(warp, insn.op[0], codes, active);
  return Step::kNext;
}

template <class Format>
Step widen_half(Warp& warp, const Insn& insn, std::uint32_t active) {
  alignas(64) float values[kLanes];
  Format::widen(warp.row<std::uint16_t>(insn.op[1]), values, kLanes);
  if constexpr (std::is_same_v<Format, F16>) {  // bf16 is only moved up, NaNs too
    for (float& value : values) value = floating::canonical(value);
  }
  store(warp, insn.op[0], values, active);
  return Step::kNext;
}

/// op: d, the upper half, the lower half.
template <class Format, bool kRelu>
Step narrow_pair(Warp& warp, const Insn& insn, std::uint32_t active) {
  alignas(64) std::uint16_t high[kLanes];
  alignas(64) std::uint16_t low[kLanes];
  alignas(64) std::uint32_t pairs[kLanes];
  Format::narrow(warp.row<float>(insn.op[1]), high, kLanes);
  Format::narrow(warp.row<float>(insn.op[2]), low, kLanes);
  for (int i = 0; i < kLanes; ++i) {
    const auto relu = [](std::uint16_t x) {
      return kRelu && (x & 0x8000) != 0 ? std::uint16_t{0} : x;
    };
    pairs[i] = relu(low[i]) | static_cast<std::uint32_t>(relu(high[i])) << 16;
  }
  store(warp, insn.op[0], pairs, active);
  return Step::kNext;
}

/// op: d, the upper byte, the lower byte.
template <bool kIsE5m2, bool kRelu>
Step narrow_fp8_pair(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* a = warp.row<std::uint32_t>(insn.op[1]);
  const auto* b = warp.row<std::uint32_t>(insn.op[2]);
  alignas(64) std::uint32_t pairs[kLanes];
  alignas(64) std::uint16_t codes[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const auto code = [](std::uint32_t word) {
      const std::uint32_t x = to_fp8<kIsE5m2>(word);
      return kRelu && (x & 0x80) != 0 ? 0u : x;
    };
    pairs[i] = code(b[i]) | code(a[i]) << 8;
  }
  for (int i = 0; i < kLanes; ++i) codes[i] = static_cast<std::uint16_t>(pairs[i]);
  store(warp, insn.op[0], codes, active);
  return Step::kNext;
}

template <FormatSpec kFormat>
constexpr std::array<std::uint16_t, 256> make_f16_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    const double value = decode(kFormat, code);
    table[code] =
        is_nan(kFormat, code) ? kNanHalf : static_cast<std::uint16_t>(encode(kFp16, value));
  }
  return table;
}

/// Two bytes to two f16, which is exact.
template <FormatSpec kFormat, bool kRelu>
Step widen_fp8_pair(Warp& warp, const Insn& insn, std::uint32_t active) {
  static constexpr std::array<std::uint16_t, 256> kTable = make_f16_table<kFormat>();
  const auto* codes = warp.row<std::uint16_t>(insn.op[1]);
  alignas(64) std::uint32_t pairs[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    std::uint32_t low = kTable[codes[i] & 0xff];
    std::uint32_t high = kTable[codes[i] >> 8];
    if constexpr (kRelu) {
      low = (low & 0x8000) != 0 ? 0 : low;
      high = (high & 0x8000) != 0 ? 0 : high;
    }
    pairs[i] = low | high << 16;
  }
  store(warp, insn.op[0], pairs, active);
  return Step::kNext;
}

template <IntegralRounding kRounding, class T>
T integral(T x) {
  if constexpr (kRounding == IntegralRounding::kNearest) return std::nearbyint(x);
  if constexpr (kRounding == IntegralRounding::kZero) return std::trunc(x);
  if constexpr (kRounding == IntegralRounding::kDown) return std::floor(x);
  if constexpr (kRounding == IntegralRounding::kUp) return std::ceil(x);
  return x;
}

template <IntegralRounding kRounding>
std::int32_t float_to_s32(float a) {
  const double x = static_cast<double>(integral<kRounding>(a));
  double clamped = x > 2147483647.0 ? 2147483647.0 : x;
  clamped = clamped < -2147483648.0 ? -2147483648.0 : clamped;
  clamped = x == x ? clamped : 0.0;
  return static_cast<std::int32_t>(clamped);
}
template <IntegralRounding kRounding>
std::uint32_t float_to_u32(float a) {
  const double x = static_cast<double>(integral<kRounding>(a));
  double clamped = x > 0.0 ? x : 0.0;  // NaN too
  clamped = clamped > 4294967295.0 ? 4294967295.0 : clamped;
  // vectors convert signed integers only
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(clamped - 2147483648.0)) ^
         0x80000000u;
}

float s32_to_float(std::int32_t a) {
  return static_cast<float>(a);
}
double s32_to_double(std::int32_t a) {
  return static_cast<double>(a);
}
double u32_to_double(std::uint32_t a) {
  return static_cast<double>(static_cast<std::int32_t>(a ^ 0x80000000u)) + 2147483648.0;
}
float u32_to_float(std::uint32_t a) {
  return static_cast<float>(u32_to_double(a));
}
/// NaNs keep their sign and payload between f32 and f64, here as on the device.
float double_to_float(double a) {
  return static_cast<float>(a);
}
template <bool kFtz>
double float_to_double(float a) {
  return static_cast<double>(floating::input<kFtz>(a));
}
template <bool kFtz, bool kSat, IntegralRounding kRounding>
float float_to_float(float a) {
  return floating::result<kFtz, kSat>(integral<kRounding>(floating::input<kFtz>(a)));
}
/// To nearest with ties away: 13 bits fewer.
std::uint32_t float_to_tf32(std::uint32_t a) {
  const std::uint32_t magnitude = a & 0x7fffffff;
  const std::uint32_t rounded = (a + 0x1000) & 0xffffe000;
  return magnitude > 0x7f800000 ? kNanF32 : magnitude == 0x7f800000 ? a : rounded;
}

template <template <IntegralRounding> class Exec>
ExecFn for_integral(IntegralRounding rounding) {
  switch (rounding) {
    case IntegralRounding::kNearest:
      return Exec<IntegralRounding::kNearest>::kRun;
    case IntegralRounding::kZero:
      return Exec<IntegralRounding::kZero>::kRun;
    case IntegralRounding::kDown:
      return Exec<IntegralRounding::kDown>::kRun;
    case IntegralRounding::kUp:
      return Exec<IntegralRounding::kUp>::kRun;
    default:
      return Exec<IntegralRounding::kNone>::kRun;
  }
}
template <IntegralRounding kRounding>
struct ToS32 {
  static constexpr ExecFn kRun = lanes<float_to_s32<kRounding>>;
};
template <IntegralRounding kRounding>
struct ToU32 {
  static constexpr ExecFn kRun = lanes<float_to_u32<kRounding>>;
};
template <bool kFtz, bool kSat>
struct FloatToFloat {
  template <IntegralRounding kRounding>
  struct Exec {
    static constexpr ExecFn kRun = lanes<float_to_float<kFtz, kSat, kRounding>>;
  };
};

ExecFn from_float(const Conversion& c) {
  const bool is_nearest = c.encode.rounding == Rounding::kNearestEven;
  const bool is_plain = !c.sat && c.encode.saturation != Saturation::kSaturate;
  switch (c.to) {
    case Type::kF16:
      if (!is_nearest || !is_plain) return nullptr;
      if (c.ftz) return c.relu ? nullptr : narrow_half<F16, true, false>;
      return c.relu ? narrow_half<F16, false, true> : narrow_half<F16, false, false>;
    case Type::kBf16:
      if (!is_nearest || !is_plain || c.ftz) return nullptr;
      return c.relu ? narrow_half<Bf16, false, true> : narrow_half<Bf16, false, false>;
    case Type::kTf32: {
      const bool is_away = c.encode.rounding == Rounding::kNearestAway;
      return is_away && is_plain && !c.relu ? lanes<float_to_tf32> : nullptr;
    }
    case Type::kF32:
      if (c.ftz) {
        return c.sat ? for_integral<FloatToFloat<true, true>::Exec>(c.integral)
                     : for_integral<FloatToFloat<true, false>::Exec>(c.integral);
      }
      return c.sat ? for_integral<FloatToFloat<false, true>::Exec>(c.integral)
                   : for_integral<FloatToFloat<false, false>::Exec>(c.integral);
    case Type::kF64:
      if (!is_plain) return nullptr;
      return c.ftz ? lanes<float_to_double<true>> : lanes<float_to_double<false>>;
    case Type::kS32:
      return c.ftz ? nullptr : for_integral<ToS32>(c.integral);
    case Type::kU32:
      return c.ftz ? nullptr : for_integral<ToU32>(c.integral);
    default:
      return nullptr;
  }
}

}  // namespace

ExecFn fast_conversion(const Conversion& c) {
  const bool is_nearest = c.encode.rounding == Rounding::kNearestEven;
  if (c.from == Type::kF32) return from_float(c);
  if (c.sat || !is_nearest) return nullptr;
  if (c.to == Type::kF32) {
    switch (c.from) {
      case Type::kF16:
        return widen_half<F16>;
      case Type::kBf16:
        return widen_half<Bf16>;
      case Type::kF64:
        return c.ftz ? nullptr : lanes<double_to_float>;
      case Type::kS32:
        return lanes<s32_to_float>;
      case Type::kU32:
        return lanes<u32_to_float>;
      default:
        return nullptr;
    }
  }
  if (c.to == Type::kF64 && c.from == Type::kS32) return lanes<s32_to_double>;
  if (c.to == Type::kF64 && c.from == Type::kU32) return lanes<u32_to_double>;
  return nullptr;
}

ExecFn fast_packed_conversion(const PackedConversion& conversion) {
  const Conversion& c = conversion.element;
  if (c.encode.rounding != Rounding::kNearestEven || conversion.num_elements != 2) return nullptr;
  if (c.from == Type::kF32) {
    switch (c.to) {
      case Type::kF16:
        if (c.encode.saturation == Saturation::kSaturate) return nullptr;
        return c.relu ? narrow_pair<F16, true> : narrow_pair<F16, false>;
      case Type::kBf16:
        if (c.encode.saturation == Saturation::kSaturate) return nullptr;
        return c.relu ? narrow_pair<Bf16, true> : narrow_pair<Bf16, false>;
      case Type::kE4m3:
        return c.relu ? narrow_fp8_pair<false, true> : narrow_fp8_pair<false, false>;
      case Type::kE5m2:
        return c.relu ? narrow_fp8_pair<true, true> : narrow_fp8_pair<true, false>;
      default:
        return nullptr;
    }
  }
  if (c.to == Type::kF16 && c.from == Type::kE4m3) {
    return c.relu ? widen_fp8_pair<kE4m3, true> : widen_fp8_pair<kE4m3, false>;
  }
  if (c.to == Type::kF16 && c.from == Type::kE5m2) {
    return c.relu ? widen_fp8_pair<kE5m2, true> : widen_fp8_pair<kE5m2, false>;
  }
  return nullptr;
}

}  // namespace tilewright::sim
