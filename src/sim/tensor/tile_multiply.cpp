#include "sim/tensor/tile_multiply.h"

#include "base/error.h"
#include "sim/tensor/tile_kernel.h"

#include <cstring>
#include <memory>
#include <vector>

namespace tilewright::sim {

namespace {

using TileKernel = void (*)(const TileKernelCall&);

TileKernel kernel_of(KernelVariant variant, int n) {
  switch (variant) {
#ifdef __x86_64__
    case KernelVariant::kAvx512:
      // Few columns would leave lanes empty: mma.sync has 8.
      return n % 16 == 0 || n > 64 ? &multiply_tile_avx512 : &multiply_tile_avx2;
    case KernelVariant::kAvx2:
      return &multiply_tile_avx2;
#endif
    default:
      return &multiply_tile_generic;
  }
}

std::uint32_t load_code(const TileOperand& operand, std::size_t index) {
  const auto bytes = static_cast<std::size_t>(code_bytes(*operand.format));
  std::uint32_t code = 0;
  std::memcpy(&code, operand.codes.data() + index * bytes, bytes);
  return code;
}

TensorNumber number_at(const TileOperand& operand, std::size_t index) {
  return decode_number(*operand.format, load_code(operand, index), operand.is_negated);
}

void check_operand(const char* name, const TileOperand& operand, int rows, int k) {
  const FormatSpec& format = *operand.format;
  require(format.is_signed && format.bits() <= 19, ErrorKind::kInvalidArgument,
          "multiply_tile: {} is {}; tensor cores multiply signed formats of at most 19 bits", name,
          format.name);
  const std::size_t expected = elems(rows, k) * static_cast<std::size_t>(code_bytes(format));
  require(operand.codes.size() == expected, ErrorKind::kInvalidArgument,
          "multiply_tile: {} has {} bytes; a {} x {} tile of {} needs {}", name,
          operand.codes.size(), rows, k, format.name, expected);
}

void check(const TileExtents& e, const TileOperand& a, const TileOperand& b,
           std::span<const std::uint32_t> c, std::span<std::uint32_t> d) {
  const auto fits = [](int extent) { return 0 < extent && extent <= kMaxTileRows; };
  require(fits(e.m) && fits(e.n) && fits(e.k), ErrorKind::kInvalidArgument,
          "multiply_tile: extents {} x {} x {}; each must be 1..{}", e.m, e.n, e.k, kMaxTileRows);
  check_operand("a", a, e.m, e.k);
  check_operand("b", b, e.n, e.k);
  require((c.empty() || c.size() == elems(e.m, e.n)) && d.size() == elems(e.m, e.n),
          ErrorKind::kInvalidArgument,
          "multiply_tile: c and d have {} and {} elements; {} x {} tiles need {}", c.size(),
          d.size(), e.m, e.n, elems(e.m, e.n));
}

/// What the kernels call back for single elements.
struct ElementContext {
  const TensorArithmetic* arithmetic;
  const TileOperand* a;
  const TileOperand* b;
  int k;
  std::vector<TensorNumber> a_numbers;  ///< one row each; empty until an element needs them
  std::vector<TensorNumber> b_numbers;
};

std::uint32_t compute_element(void* context, int row, int col, std::uint32_t c) {
  auto& x = *static_cast<ElementContext*>(context);
  const auto k = static_cast<std::size_t>(x.k);
  x.a_numbers.resize(k);
  x.b_numbers.resize(k);
  for (std::size_t i = 0; i < k; ++i) {
    x.a_numbers[i] = number_at(*x.a, static_cast<std::size_t>(row) * k + i);
    x.b_numbers[i] = number_at(*x.b, static_cast<std::size_t>(col) * k + i);
  }
  return dot_add(*x.arithmetic, x.a_numbers, x.b_numbers,
                 decode_number(code_format(x.arithmetic->output), c));
}

bool has_kernel(const TensorArithmetic& arithmetic, int k) {
  const bool is_short = arithmetic.fraction_bits <= kMaxShortFractionBits;
  return !arithmetic.is_exact && arithmetic.fraction_bits <= kMaxFractionBits &&
         arithmetic.fraction_bits >= 0 && k <= (is_short ? kMaxTileKShort : kMaxTileK);
}

KernelOperand kernel_operand(const TileOperand& operand, int rows) {
  const FormatSpec& f = *operand.format;
  KernelFormat format{};
  format.mantissa_bits = f.mantissa_bits;
  format.bias = f.bias;
  format.magnitude_mask = f.magnitude_mask();
  format.sign_mask = f.sign_mask();
  format.first_special = max_finite_code(f) + 1;
  format.first_nan = format.first_special + (f.has_infinity() ? 1 : 0);
  format.code_shift = is_tf32(f) ? 13 : 0;
  format.code_bytes = code_bytes(f);
  format.negate_mask = operand.is_negated ? f.sign_mask() : 0;
  return {operand.codes.data(), rows, format};
}

void* workspace() {
  struct Deleter {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  thread_local const std::unique_ptr<std::byte, Deleter> memory(
      static_cast<std::byte*>(::operator new (kTileWorkspaceBytes, std::align_val_t{64})));
  return memory.get();
}

}  // namespace

bool is_supported(KernelVariant variant) noexcept {
#ifdef __x86_64__
  switch (variant) {
    case KernelVariant::kGeneric:
      return true;
    case KernelVariant::kAvx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    case KernelVariant::kAvx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  }
#endif
  return variant == KernelVariant::kGeneric;
}

KernelVariant best_variant() noexcept {
  static const KernelVariant best = is_supported(KernelVariant::kAvx512) ? KernelVariant::kAvx512
                                    : is_supported(KernelVariant::kAvx2) ? KernelVariant::kAvx2
                                                                         : KernelVariant::kGeneric;
  return best;
}

std::string_view name_of(KernelVariant variant) noexcept {
  switch (variant) {
    case KernelVariant::kAvx512:
      return "avx512";
    case KernelVariant::kAvx2:
      return "avx2";
    default:
      return "generic";
  }
}

void multiply_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                   const TileOperand& a, const TileOperand& b, std::span<const std::uint32_t> c,
                   std::span<std::uint32_t> d, KernelVariant variant) {
  require(is_supported(variant), ErrorKind::kInvalidArgument,
          "multiply_tile: this processor or build has no {} kernels", name_of(variant));
  if (!has_kernel(arithmetic, extents.k)) {
    multiply_tile_reference(arithmetic, extents, a, b, c, d);
    return;
  }
  check(extents, a, b, c, d);
  ElementContext context{&arithmetic, &a, &b, extents.k, {}, {}};
  TileKernelCall call{};
  call.a = kernel_operand(a, extents.m);
  call.b = kernel_operand(b, extents.n);
  call.k = extents.k;
  call.fraction_bits = arithmetic.fraction_bits;
  call.output = static_cast<int>(arithmetic.output);
  call.least_exponent = arithmetic.least_exponent();
  call.c = c.empty() ? nullptr : c.data();
  call.d = d.data();
  call.workspace = workspace();
  call.context = &context;
  call.element = &compute_element;
  kernel_of(variant, extents.n)(call);
}

void multiply_tile_reference(const TensorArithmetic& arithmetic, const TileExtents& extents,
                             const TileOperand& a, const TileOperand& b,
                             std::span<const std::uint32_t> c, std::span<std::uint32_t> d) {
  check(extents, a, b, c, d);
  ElementContext context{&arithmetic, &a, &b, extents.k, {}, {}};
  for (int row = 0; row < extents.m; ++row) {
    for (int col = 0; col < extents.n; ++col) {
      const std::size_t at = elems(row, extents.n) + static_cast<std::size_t>(col);
      d[at] = compute_element(&context, row, col, c.empty() ? 0 : c[at]);
    }
  }
}

}  // namespace tilewright::sim
