// The warp-specialised GEMM in all its types and forms: exact sums of small integers, random
// numbers within the bound of the tensor core.
#include "kernels/probe/wgmma_gemm.h"

#include "tests/kernels/gemm_check.h"

namespace tilewright::kernels {
namespace {

using device::TensorMapSwizzle;
using device::TensorMapType;

struct Variant {
  const char* entry;
  const FormatSpec& input;
  const FormatSpec& output;
};
constexpr Variant kVariants[] = {
    {"wgmma_gemm_bf16_f32_ss", kBf16, kFp32}, {"wgmma_gemm_bf16_bf16_ss", kBf16, kBf16},
    {"wgmma_gemm_bf16_f32_rs", kBf16, kFp32}, {"wgmma_gemm_bf16_bf16_rs", kBf16, kBf16},
    {"wgmma_gemm_e4m3_f32_ss", kE4m3, kFp32}, {"wgmma_gemm_e4m3_bf16_ss", kE4m3, kBf16},
    {"wgmma_gemm_e4m3_f32_rs", kE4m3, kFp32},
};

int bytes_of(const FormatSpec& format) {
  return format.bits() / 8;
}

TensorMapType map_type(const FormatSpec& format) {
  if (format == kBf16) return TensorMapType::kBfloat16;
  return format == kFp32 ? TensorMapType::kFloat32 : TensorMapType::kUint8;
}

/// A matrix [rows, cols] on the device, with rows at multiples of 16 bytes.
struct DeviceMatrix {
  const FormatSpec& format;
  int rows, cols;

  int pitch() const {
    return std::max(1, round_up(cols * bytes_of(format), 16)) / bytes_of(format);
  }
  std::size_t size_bytes() const {
    return static_cast<std::size_t>(rows) * pitch() * bytes_of(format);
  }
  device::abi::CUtensorMap map(const Device& device, device::abi::CUdeviceptr address,
                               int box_rows) const {
    return device::encode_tensor_map(
        device, {.name = "matrix",
                 .type = map_type(format),
                 .address = address,
                 .dims = {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)},
                 .strides_bytes = {static_cast<std::uint64_t>(pitch() * bytes_of(format))},
                 .box = {static_cast<std::uint32_t>(kWgmmaGemmTileK / bytes_of(format)),
                         static_cast<std::uint32_t>(box_rows)},
                 .swizzle = TensorMapSwizzle::k128B});
  }
  Buffer upload(const Device& device, const std::vector<double>& values) const {
    if (bytes_of(format) == 1) {
      return Buffer::from(device,
                          pad_rows(encode_all<std::uint8_t>(format, values), rows, cols, pitch()));
    }
    return Buffer::from(device,
                        pad_rows(encode_all<std::uint16_t>(format, values), rows, cols, pitch()));
  }
  /// Values, and whether the padding is still poisoned.
  std::vector<double> decode_all(const std::vector<std::uint8_t>& bytes) const {
    std::vector<double> values;
    for (int i = 0; i < rows * pitch(); ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, bytes.data() + static_cast<std::ptrdiff_t>(i) * bytes_of(format),
                  static_cast<std::size_t>(bytes_of(format)));
      if (i % pitch() < cols) {
        values.push_back(decode(format, code));
      } else {
        EXPECT_EQ(code, bytes_of(format) == 2 ? 0xffffu : ~0u) << "the padding was written";
      }
    }
    return values;
  }
};

class WgmmaGemm : public KernelTest {
 protected:
  static std::vector<double> multiply(const Device& device, const Variant& variant,
                                      const GemmProblem& p, const std::vector<double>& a,
                                      const std::vector<double>& b, std::uint32_t ctas) {
    const DeviceMatrix a_matrix = {variant.input, p.m, p.k}, b_matrix = {variant.input, p.n, p.k};
    const DeviceMatrix d_matrix = {variant.output, p.m, p.n};
    const Buffer a_buffer = a_matrix.upload(device, a), b_buffer = b_matrix.upload(device, b);
    const Buffer next_tile = Buffer::from(device, std::vector<std::uint32_t>(1));
    const Output<std::uint8_t> d(device, d_matrix.size_bytes());
    WgmmaGemmParams params = {};
    if (p.m > 0 && p.k > 0)
      store_map(params.a_map, a_matrix.map(device, a_buffer.address(), kWgmmaGemmTile));
    if (p.n > 0 && p.k > 0)
      store_map(params.b_map, b_matrix.map(device, b_buffer.address(), kWgmmaGemmTile));
    if (p.m > 0 && p.n > 0)
      store_map(params.d_map, d_matrix.map(device, d.address(), kWgmmaGemmBoxRowsD));
    params.next_tile = pointer_to<std::uint32_t>(next_tile);
    params.tiles_m = static_cast<std::int32_t>(ceil_div(p.m, kWgmmaGemmTile));
    params.tiles_n = static_cast<std::int32_t>(ceil_div(p.n, kWgmmaGemmTile));
    params.steps_k =
        static_cast<std::int32_t>(ceil_div(p.k * bytes_of(variant.input), kWgmmaGemmTileK));
    run_kernel(device, variant.entry,
               {.grid = {ctas},
                .block = {kWgmmaGemmThreads},
                .dynamic_shared_bytes =
                    static_cast<std::uint32_t>(wgmma_gemm_shared_bytes(bytes_of(variant.output)))},
               params);
    EXPECT_EQ(next_tile.to_vector<std::uint32_t>()[0],
              static_cast<std::uint32_t>(params.tiles_m * params.tiles_n) + ctas);
    return d_matrix.decode_all(d.read());
  }

  void check(const Variant& variant, const GemmProblem& p, Numbers numbers, std::uint32_t ctas) {
    SCOPED_TRACE(
        fmt::format("{}, m = {}, n = {}, k = {}, {} CTAs", variant.entry, p.m, p.n, p.k, ctas));
    const std::vector<double> a = draw_many(1, std::int64_t{p.m} * p.k, numbers, variant.input);
    const std::vector<double> b = draw_many(2, std::int64_t{p.n} * p.k, numbers, variant.input);
    const auto run = [&](const Device& where) { return multiply(where, variant, p, a, b, ctas); };
    const std::vector<double> d = run(device());
    const TensorCore& core = variant.input == kE4m3 ? kHopperE4m3TensorCore : kBf16TensorCore;
    check_gemm(p, a, b, numbers, core, variant.output, d);
    expect_same_on_simulator(run, d);
  }

  void check_all(const GemmProblem& p, Numbers numbers, std::uint32_t ctas) {
    for (const Variant& variant : kVariants) check(variant, p, numbers, ctas);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(WgmmaGemm);

TEST_P(WgmmaGemm, WholeTilesOfIntegersAreExact) {
  check_all({128, 128, 256}, Numbers::kIntegers, 1);
}
TEST_P(WgmmaGemm, WholeTiles) {
  check_all({128, 256, 256}, Numbers::kUniform, 2);
}
// More steps than stages, more tiles than CTAs.
TEST_P(WgmmaGemm, RaggedAndPersistent) {
  check_all({200, 300, 520}, Numbers::kUniform, 2);
  check_all({130, 40, 77}, Numbers::kIntegers, 1);
}
TEST_P(WgmmaGemm, MoreCtasThanTiles) {
  check_all({65, 129, 64}, Numbers::kUniform, 5);
}
TEST_P(WgmmaGemm, OneToken) {
  check_all({1, 136, 200}, Numbers::kUniform, 2);
  check_all({1, 1, 1}, Numbers::kUniform, 1);
}
TEST_P(WgmmaGemm, EmptyDimensions) {
  check_all({3, 5, 0}, Numbers::kIntegers, 1);
  check_all({0, 5, 8}, Numbers::kIntegers, 1);
  check_all({3, 0, 8}, Numbers::kIntegers, 1);
}

}  // namespace
}  // namespace tilewright::kernels
