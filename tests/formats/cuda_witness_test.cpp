// CUDA's own host conversions as a second witness. Built where the CUDA headers are found; nothing
// of CUDA is linked.
//
// Where the two disagree, and why this library keeps its rule:
//   NaN from double  CUDA's __nv_cvt_double_to_fp8 keeps the sign and, for e5m2, the top payload
//   bits.
//                    PTX `cvt` has no fp64 source; through fp32, both give the canonical 0x7f.
#include "formats/minifloat.h"
#include "tests/formats/format_param.h"
#include "tests/formats/oracle.h"

#include <gtest/gtest.h>

// cuda_fp6.h and cuda_fp4.h came with CUDA 12.8.
#if __has_include(<cuda_fp4.h>) && __has_include(<cuda_fp6.h>)

#include <cstring>
#include <random>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

namespace tilewright {
namespace {

constexpr int kRandomInputs = 3'000'000;

uint32_t bits_of(__half x) {
  return __half_raw(x).x;
}
uint32_t bits_of(__nv_bfloat16 x) {
  return __nv_bfloat16_raw(x).x;
}

__half_raw half_of(uint32_t bits) {
  __half_raw raw;
  raw.x = static_cast<unsigned short>(bits);
  return raw;
}

__nv_bfloat16_raw bfloat16_of(uint32_t bits) {
  __nv_bfloat16_raw raw;
  raw.x = static_cast<unsigned short>(bits);
  return raw;
}

// --- encoding ------------------------------------------------------------------------------------

template <class Real>
struct EncodeWitness {
  const char* name;
  FormatSpec format;
  EncodeOptions options;
  uint32_t (*cuda)(Real);
};

constexpr EncodeOptions kEvenSat{Rounding::kNearestEven, Saturation::kSaturate};
constexpr EncodeOptions kEvenNone{Rounding::kNearestEven, Saturation::kNone};
constexpr EncodeOptions kZeroSat{Rounding::kTowardZero, Saturation::kSaturate};
constexpr EncodeOptions kZeroNone{Rounding::kTowardZero, Saturation::kNone};
constexpr EncodeOptions kUpSat{Rounding::kUp, Saturation::kSaturate};
constexpr EncodeOptions kUpNone{Rounding::kUp, Saturation::kNone};
constexpr EncodeOptions kDownNone{Rounding::kDown, Saturation::kNone};

using FromFloat = EncodeWitness<float>;
const FromFloat kFromFloat[] = {
    {"float2half_rn", kFp16, kEvenNone, [](float x) { return bits_of(__float2half_rn(x)); }},
    {"float2half_rz", kFp16, kZeroNone, [](float x) { return bits_of(__float2half_rz(x)); }},
    {"float2half_ru", kFp16, kUpNone, [](float x) { return bits_of(__float2half_ru(x)); }},
    {"float2half_rd", kFp16, kDownNone, [](float x) { return bits_of(__float2half_rd(x)); }},
    {"float2bfloat16_rn", kBf16, kEvenNone,
     [](float x) { return bits_of(__float2bfloat16_rn(x)); }},
    {"float2bfloat16_rz", kBf16, kZeroNone,
     [](float x) { return bits_of(__float2bfloat16_rz(x)); }},
    {"float2bfloat16_ru", kBf16, kUpNone, [](float x) { return bits_of(__float2bfloat16_ru(x)); }},
    {"float2bfloat16_rd", kBf16, kDownNone,
     [](float x) { return bits_of(__float2bfloat16_rd(x)); }},
    {"e4m3_satfinite", kE4m3, kEvenSat,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }},
    {"e4m3_nosat", kE4m3, kEvenNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); }},
    {"e5m2_satfinite", kE5m2, kEvenSat,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); }},
    {"e5m2_nosat", kE5m2, kEvenNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); }},
    {"e3m2_rn", kE3m2, kEvenNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest); }},
    {"e3m2_rz", kE3m2, kZeroNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundZero); }},
    {"e2m3_rn", kE2m3, kEvenSat,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest); }},
    {"e2m3_rz", kE2m3, kZeroSat,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundZero); }},
    {"e2m1_rn", kE2m1, kEvenSat,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); }},
    {"e2m1_rz", kE2m1, kZeroNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundZero); }},
    {"ue8m0_rz_satfinite", kUe8m0, kZeroSat,
     [](float x) -> uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero); }},
    {"ue8m0_rz_nosat", kUe8m0, kZeroNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundZero); }},
    {"ue8m0_rp_satfinite", kUe8m0, kUpSat,
     [](float x) -> uint32_t {
       return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
     }},
    {"ue8m0_rp_nosat", kUe8m0, kUpNone,
     [](float x) -> uint32_t { return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundPosInf); }},
};

using FromDouble = EncodeWitness<double>;
const FromDouble kFromDouble[] = {
    {"double2half", kFp16, kEvenNone, [](double x) { return bits_of(__double2half(x)); }},
    {"double2bfloat16", kBf16, kEvenNone, [](double x) { return bits_of(__double2bfloat16(x)); }},
    {"e4m3_satfinite", kE4m3, kEvenSat,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }},
    {"e4m3_nosat", kE4m3, kEvenNone,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, __NV_E4M3); }},
    {"e5m2_satfinite", kE5m2, kEvenSat,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2); }},
    {"e5m2_nosat", kE5m2, kEvenNone,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, __NV_E5M2); }},
    {"e3m2_rn", kE3m2, kEvenSat,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp6(x, __NV_E3M2, cudaRoundNearest); }},
    {"e2m3_rz", kE2m3, kZeroSat,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp6(x, __NV_E2M3, cudaRoundZero); }},
    {"e2m1_rn", kE2m1, kEvenSat,
     [](double x) -> uint32_t { return __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundNearest); }},
    {"ue8m0_rp_satfinite", kUe8m0, kUpSat,
     [](double x) -> uint32_t {
       return __nv_cvt_double_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
     }},
    {"ue8m0_rz_nosat", kUe8m0, kZeroNone,
     [](double x) -> uint32_t { return __nv_cvt_double_to_e8m0(x, __NV_NOSAT, cudaRoundZero); }},
};

// The values of a format, the middles between them, and the neighbours of all of these.
template <class Real>
void append_boundaries(const FormatSpec& format, std::vector<Real>& inputs) {
  const std::vector<double> values = oracle::Rounder(format).values();
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    for (const double x : {values[i], values[i] / 2 + values[i + 1] / 2}) {
      const auto real = static_cast<Real>(x);
      for (const Real input :
           {real, std::nextafter(real, Real{0}), std::nextafter(real, 2 * real)}) {
        inputs.push_back(input);
        inputs.push_back(-input);
      }
    }
  }
}

template <class Real>
std::vector<Real> make_inputs(const FormatSpec& format) {
  std::vector<Real> inputs;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    inputs.push_back(__half2float(__half(half_of(bits))));
    inputs.push_back(__bfloat162float(__nv_bfloat16(bfloat16_of(bits))));
  }
  append_boundaries(format, inputs);
  using Word = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;
  std::mt19937_64 random(7);
  for (int i = 0; i < kRandomInputs; ++i) {
    inputs.push_back(std::bit_cast<Real>(static_cast<Word>(random())));
  }
  return inputs;
}

template <class Real>
void compare_encodings(const EncodeWitness<Real>& witness) {
  for (const Real x : make_inputs<Real>(witness.format)) {
    const bool is_fp8 = witness.format == kE4m3 || witness.format == kE5m2;
    if (sizeof(Real) == 8 && is_fp8 && std::isnan(x)) continue;  // see the head of this file
    ASSERT_EQ(encode(witness.format, x, witness.options), witness.cuda(x)) << std::hexfloat << x;
  }
}

class CudaFromFloat : public testing::TestWithParam<FromFloat> {};
class CudaFromDouble : public testing::TestWithParam<FromDouble> {};

TEST_P(CudaFromFloat, SameCode) {
  compare_encodings(GetParam());
}
TEST_P(CudaFromDouble, SameCode) {
  compare_encodings(GetParam());
}

template <class Real>
void PrintTo(const EncodeWitness<Real>& witness, std::ostream* out) {
  *out << witness.name;
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaFromFloat, testing::ValuesIn(kFromFloat),
                         [](const testing::TestParamInfo<FromFloat>& test) {
                           return std::string(test.param.name);
                         });
INSTANTIATE_TEST_SUITE_P(Cuda, CudaFromDouble, testing::ValuesIn(kFromDouble),
                         [](const testing::TestParamInfo<FromDouble>& test) {
                           return std::string(test.param.name);
                         });

// From 16 bits without the detour over float: CUDA's functions for half and bfloat16 registers.
TEST(CudaFrom16Bits, SameCode) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const double half = decode(kFp16, bits);
    const double bfloat16 = decode(kBf16, bits);
    for (const auto& [cuda_saturation, options] :
         {std::pair{__NV_SATFINITE, kEvenSat}, std::pair{__NV_NOSAT, kEvenNone}}) {
      ASSERT_EQ(encode(kE4m3, half, options),
                __nv_cvt_halfraw_to_fp8(half_of(bits), cuda_saturation, __NV_E4M3));
      ASSERT_EQ(encode(kE5m2, bfloat16, options),
                __nv_cvt_bfloat16raw_to_fp8(bfloat16_of(bits), cuda_saturation, __NV_E5M2));
      ASSERT_EQ(encode(kUe8m0, bfloat16, {Rounding::kUp, options.saturation}),
                __nv_cvt_bfloat16raw_to_e8m0(bfloat16_of(bits), cuda_saturation, cudaRoundPosInf));
      ASSERT_EQ(encode(kUe8m0, bfloat16, {Rounding::kTowardZero, options.saturation}),
                __nv_cvt_bfloat16raw_to_e8m0(bfloat16_of(bits), cuda_saturation, cudaRoundZero));
    }
    ASSERT_EQ(encode(kE2m3, half),
              __nv_cvt_halfraw_to_fp6(half_of(bits), __NV_E2M3, cudaRoundNearest));
    ASSERT_EQ(encode(kE2m1, bfloat16),
              __nv_cvt_bfloat16raw_to_fp4(bfloat16_of(bits), __NV_E2M1, cudaRoundNearest));
  }
}

// The defaults of encode() are those of CUDA's constructors.
TEST(CudaConstructors, SameDefaults) {
  for (const float x : {1e6f, -1e6f, 3e38f, std::numeric_limits<float>::infinity(), 449.0f}) {
    EXPECT_EQ(encode(kE4m3, x), __nv_fp8_e4m3(x).__x);
    EXPECT_EQ(encode(kE5m2, x), __nv_fp8_e5m2(x).__x);
    EXPECT_EQ(encode(kE3m2, x), __nv_fp6_e3m2(x).__x);
    EXPECT_EQ(encode(kE2m3, x), __nv_fp6_e2m3(x).__x);
    EXPECT_EQ(encode(kE2m1, x), __nv_fp4_e2m1(x).__x);
    EXPECT_EQ(encode(kFp16, x), bits_of(__half(x)));
    EXPECT_EQ(encode(kBf16, x), bits_of(__nv_bfloat16(x)));
    EXPECT_EQ(encode(kUe8m0, x, {Rounding::kUp}), __nv_fp8_e8m0(x).__x);
  }
}

// --- decoding ------------------------------------------------------------------------------------

struct DecodeWitness {
  const char* name;
  FormatSpec format;
  float (*cuda)(uint32_t);
};

float half_value(__half_raw raw) {
  return __half2float(__half(raw));
}

const DecodeWitness kDecode[] = {
    {"fp16", kFp16, [](uint32_t code) { return half_value(half_of(code)); }},
    {"bf16", kBf16,
     [](uint32_t code) { return __bfloat162float(__nv_bfloat16(bfloat16_of(code))); }},
    {"e4m3", kE4m3,
     [](uint32_t code) {
       return half_value(__nv_cvt_fp8_to_halfraw(static_cast<uint8_t>(code), __NV_E4M3));
     }},
    {"e5m2", kE5m2,
     [](uint32_t code) {
       return half_value(__nv_cvt_fp8_to_halfraw(static_cast<uint8_t>(code), __NV_E5M2));
     }},
    {"e3m2", kE3m2,
     [](uint32_t code) {
       return half_value(__nv_cvt_fp6_to_halfraw(static_cast<uint8_t>(code), __NV_E3M2));
     }},
    {"e2m3", kE2m3,
     [](uint32_t code) {
       return half_value(__nv_cvt_fp6_to_halfraw(static_cast<uint8_t>(code), __NV_E2M3));
     }},
    {"e2m1", kE2m1,
     [](uint32_t code) {
       return half_value(__nv_cvt_fp4_to_halfraw(static_cast<uint8_t>(code), __NV_E2M1));
     }},
    {"ue8m0", kUe8m0,
     [](uint32_t code) {
       return __bfloat162float(__nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(static_cast<uint8_t>(code))));
     }},
};

TEST(CudaDecode, SameValue) {
  for (const DecodeWitness& witness : kDecode) {
    for (uint32_t code = 0; code < witness.format.num_codes(); ++code) {
      const double ours = decode(witness.format, code);
      const double cuda = witness.cuda(code);
      ASSERT_EQ(std::isnan(ours), std::isnan(cuda)) << witness.name << " " << code;
      if (std::isnan(ours)) continue;
      ASSERT_EQ(ours, cuda) << witness.name << " " << code;
      ASSERT_EQ(std::signbit(ours), std::signbit(cuda)) << witness.name << " " << code;
    }
  }
}

// The one disagreement, pinned so that a change in either is noticed.
TEST(CudaDisagreement, NanFromDoubleKeepsItsSign) {
  const double nan = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(__nv_cvt_double_to_fp8(nan, __NV_SATFINITE, __NV_E4M3), 0xff);
  EXPECT_EQ(__nv_cvt_double_to_fp8(nan, __NV_SATFINITE, __NV_E5M2), 0xfe);
  EXPECT_EQ(__nv_cvt_float_to_fp8(static_cast<float>(nan), __NV_SATFINITE, __NV_E4M3), 0x7f);
  EXPECT_EQ(__nv_cvt_float_to_fp8(static_cast<float>(nan), __NV_SATFINITE, __NV_E5M2), 0x7f);
  EXPECT_EQ(encode(kE4m3, nan), 0x7fu);
  EXPECT_EQ(encode(kE5m2, nan), 0x7fu);
}

}  // namespace
}  // namespace tilewright

#else

TEST(CudaWitness, NeedsCudaHeaders) {
  GTEST_SKIP() << "cuda_fp4.h and cuda_fp6.h (CUDA 12.8 or newer) not found; set "
                  "TILEWRIGHT_CUDA_INCLUDE to the folder that holds them";
}

#endif
