// The cases: operands laid out, results predicted. Nothing here touches a device.

#include "arch/fragments/matrix_copy.h"
#include "arch/fragments/mma_sync.h"
#include "arch/fragments/smem_tiles.h"
#include "arch/fragments/wgmma.h"
#include "formats/minifloat.h"
#include "hardware/probe.h"
#include "kernels/probe/warp_probe.h"
#include "kernels/probe/wgmma_probe.h"

#include <bit>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace tilewright::hardware {

namespace {

using arch::Major;
using arch::SmemSwizzle;
using Words = std::vector<std::uint32_t>;
using Rng = std::mt19937;

// A matrix of small integers, row-major.
struct IntMatrix {
  int rows, columns;
  std::vector<int> value;
  int at(std::int64_t i, std::int64_t j) const {
    return value[static_cast<std::size_t>(i * columns + j)];
  }
};

IntMatrix random_matrix(Rng& rng, int rows, int columns) {
  IntMatrix out{rows, columns, {}};
  for (int i = 0; i < rows * columns; ++i) out.value.push_back(static_cast<int>(rng() % 5) - 2);
  return out;
}

// An element type of an MMA: its width and the code of a small integer.
struct ElementType {
  const char* name;
  int bits;
  const FormatSpec& format;
  std::uint32_t code(int value) const {
    const std::uint32_t code = encode(format, value);
    return bits == 32 ? code << 13 : code;  // tf32 lies in the upper bits of an fp32 word
  }
};
constexpr ElementType kBf16Type = {"bf16", 16, kBf16};
constexpr ElementType kE4m3Type = {"e4m3", 8, kE4m3};
constexpr ElementType kTf32Type = {"tf32", 32, kTf32};

void put_element(Words& words, std::int64_t element, int bits, std::uint32_t code) {
  const std::int64_t bit = element * bits;
  std::uint32_t& word = words[static_cast<std::size_t>(bit / 32)];
  const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const auto shift = static_cast<int>(bit % 32);
  word = (word & ~(mask << shift)) | code << shift;
}

Words random_words(Rng& rng, std::size_t count) {
  Words out(count);
  for (std::uint32_t& word : out) word = static_cast<std::uint32_t>(rng());
  return out;
}

// sum over k of a(m,k) * b(n,k) + c(m,n), exact.
int dot(const IntMatrix& a, const IntMatrix& b, std::int64_t m, std::int64_t n) {
  int sum = 0;
  for (int k = 0; k < a.columns; ++k) sum += a.at(m, k) * b.at(n, k);
  return sum;
}

// Fragment registers of a (thread, value) layout: values packed, lowest first.
Words pack_fragment(const Layout& tv, const IntMatrix& matrix, const ElementType& type) {
  const auto threads = static_cast<int>(size(tv, 0)), values = static_cast<int>(size(tv, 1));
  Words out(static_cast<std::size_t>(threads * values * type.bits / 32));
  for (int t = 0; t < threads; ++t) {
    for (int v = 0; v < values; ++v) {
      const std::int64_t at = tv(t, v);
      put_element(out, t * values + v, type.bits,
                  type.code(matrix.at(at % matrix.rows, at / matrix.rows)));
    }
  }
  return out;
}

// ---- wgmma ------------------------------------------------------------------------------------

const char* name_of(SmemSwizzle swizzle) {
  switch (swizzle) {
    case SmemSwizzle::kNone:
      return "none";
    case SmemSwizzle::k32B:
      return "32B";
    case SmemSwizzle::k64B:
      return "64B";
    default:
      return "128B";
  }
}

struct WgmmaShape {
  const ElementType& type;
  int n;
  Major a_major, b_major;
  bool a_in_registers;
  SmemSwizzle swizzle;
  int k_step;  // which k-step of the tile the instruction reads

  std::string kernel() const {
    const char* source = a_in_registers ? "rs" : "ss";
    std::string trans;
    if (type.bits == 16) {
      trans = a_in_registers ? "" : a_major == Major::kMN ? "1" : "0";
      trans += b_major == Major::kMN ? "1" : "0";
    }
    return fmt::format("wgmma_probe_n{}_{}_{}{}", n, type.name, source, trans);
  }
};

// Puts an operand into the image at `base` bytes and returns the descriptor of its k-step.
std::uint64_t place_operand(Words& image, const IntMatrix& matrix, const WgmmaShape& of,
                            Major major, std::uint32_t base) {
  const int bits = of.type.bits;
  const Layout atom = arch::smem_atom(major, of.swizzle, bits);
  const std::int64_t k_instruction = arch::wgmma_k(bits), k_first = of.k_step * k_instruction;
  const std::int64_t mn_extent = ceil_div(matrix.rows, size(atom, 0)) * size(atom, 0);
  const std::int64_t k_extent = ceil_div(k_first + k_instruction, size(atom, 1)) * size(atom, 1);
  const ComposedLayout tile = arch::make_smem_tile(major, of.swizzle, bits, mn_extent, k_extent);
  const std::size_t end = base / 4 + static_cast<std::size_t>(size(tile) * bits / 32);
  if (image.size() < end) image.resize(end, 0x7F7F7F7F);  // what is not an operand is NaN or large
  for (int i = 0; i < matrix.rows; ++i) {
    for (int k = 0; k < matrix.columns; ++k) {
      put_element(image, base * 8 / bits + tile(i, k_first + k), bits,
                  of.type.code(matrix.at(i, k)));
    }
  }
  arch::SmemDescriptor descriptor = arch::describe_smem_tile(tile, major, of.swizzle, bits, base);
  descriptor.start_address += static_cast<std::uint32_t>(tile.layout(0, k_first) * bits / 8);
  return arch::encode_wgmma_descriptor(descriptor);
}

ProbeCase make_wgmma_case(const WgmmaShape& of, Rng& rng) {
  const auto k = static_cast<int>(arch::wgmma_k(of.type.bits));
  const IntMatrix a = random_matrix(rng, 64, k), b = random_matrix(rng, of.n, k);
  WgmmaInputs in;
  std::uint32_t b_base = 0;
  if (of.a_in_registers) {
    in.a_registers = pack_fragment(arch::make_wgmma_rs(of.n, of.type.bits).a_tv, a, of.type);
  } else {
    in.a_descriptor = place_operand(in.shared_image, a, of, of.a_major, 0);
    b_base = static_cast<std::uint32_t>(
        ceil_div(static_cast<std::int64_t>(in.shared_image.size()) * 4, 1024) * 1024);
  }
  in.b_descriptor = place_operand(in.shared_image, b, of, of.b_major, b_base);

  ProbeCase out;
  out.kernel = of.kernel();
  out.name = fmt::format("{}.{}.step{}", out.kernel.substr(out.kernel.find("_n") + 1),
                         name_of(of.swizzle), of.k_step);
  const Layout c = arch::wgmma_c(of.n);
  for (int t = 0; t < 128; ++t) {
    for (int v = 0; v < of.n / 2; ++v) {
      const std::int64_t at = c(t, v);
      out.expected.push_back(
          std::bit_cast<std::uint32_t>(static_cast<float>(dot(a, b, at % 64, at / 64))));
    }
  }
  out.inputs = std::move(in);
  return out;
}

void add_wgmma_cases(std::vector<ProbeCase>& cases, Rng& rng) {
  constexpr SmemSwizzle kSwizzles[] = {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B,
                                       SmemSwizzle::k128B};
  const auto add = [&](const WgmmaShape& shape) { cases.push_back(make_wgmma_case(shape, rng)); };
  for (const SmemSwizzle swizzle : kSwizzles) {
    for (const Major a : {Major::kK, Major::kMN}) {
      for (const Major b : {Major::kK, Major::kMN}) add({kBf16Type, 64, a, b, false, swizzle, 1});
    }
    add({kBf16Type, 64, Major::kK, Major::kMN, true, swizzle, 0});
    add({kE4m3Type, 64, Major::kK, Major::kK, false, swizzle,
         swizzle == SmemSwizzle::k32B ? 0 : 1});
    add({kTf32Type, 64, Major::kK, Major::kK, false, swizzle, 0});
  }
  for (const int n : {8, 24, 256})
    add({kBf16Type, n, Major::kK, Major::kK, false, SmemSwizzle::k32B, 0});
  add({kBf16Type, 64, Major::kK, Major::kK, false, SmemSwizzle::k128B, 3});
  add({kBf16Type, 64, Major::kK, Major::kK, true, SmemSwizzle::k128B, 2});
  add({kE4m3Type, 64, Major::kK, Major::kK, true, SmemSwizzle::k64B, 1});
  add({kTf32Type, 64, Major::kK, Major::kK, true, SmemSwizzle::k128B, 2});
}

// ---- warp instructions --------------------------------------------------------------------------

ProbeCase make_mma_case(const char* name, const MmaAtom& mma, const ElementType& type, Rng& rng) {
  const auto m = static_cast<int>(mma.m()), n = static_cast<int>(mma.n()),
             k = static_cast<int>(mma.k());
  const IntMatrix a = random_matrix(rng, m, k), b = random_matrix(rng, n, k),
                  c = random_matrix(rng, m, n);
  const Words a_words = pack_fragment(mma.a_tv, a, type),
              b_words = pack_fragment(mma.b_tv, b, type);
  WarpInputs in;
  in.registers = random_words(rng, 32 * kernels::kWarpProbeRegisters);
  in.shared = random_words(rng, kernels::kWarpProbeSharedBytes / 4);
  in.result_registers = 4;
  ProbeCase out;
  const std::size_t num_a = a_words.size() / 32, num_b = b_words.size() / 32;
  for (std::size_t t = 0; t < 32; ++t) {
    std::uint32_t* lane = &in.registers[t * kernels::kWarpProbeRegisters];
    std::copy_n(&a_words[t * num_a], num_a, lane);
    std::copy_n(&b_words[t * num_b], num_b, lane + num_a);
    for (std::size_t v = 0; v < 4; ++v) {
      const std::int64_t at = mma.c_tv(t, v), row = at % m, column = at / m;
      lane[num_a + num_b + v] = std::bit_cast<std::uint32_t>(static_cast<float>(c.at(row, column)));
      const auto sum = static_cast<float>(dot(a, b, row, column) + c.at(row, column));
      out.expected.push_back(std::bit_cast<std::uint32_t>(sum));
    }
  }
  out.name = std::string("mma.") + name;
  out.kernel = std::string("warp_probe_") + name;
  out.inputs = std::move(in);
  return out;
}

// Where element e of a stack of 8x8 matrices (column-major) lies in rows of 16 bytes.
std::int64_t row_major_element(std::int64_t at, int matrices) {
  const std::int64_t rows = 8 * matrices;
  return at % rows * 8 + at / rows;
}

ProbeCase make_matrix_copy_case(int matrices, bool transposed, bool is_store, Rng& rng) {
  WarpInputs in;
  in.registers = random_words(rng, 32 * kernels::kWarpProbeRegisters);
  in.shared = random_words(rng, kernels::kWarpProbeSharedBytes / 4);
  in.returns_shared = is_store;
  in.result_registers = matrices;
  const Layout registers = arch::matrix_registers(matrices, transposed);
  ProbeCase out;
  if (is_store) out.expected = in.shared;
  for (std::size_t t = 0; t < 32; ++t) {
    for (int r = 0; r < matrices; ++r) {
      std::uint32_t loaded = 0;
      const std::uint32_t stored =
          in.registers[t * kernels::kWarpProbeRegisters + static_cast<std::size_t>(r)];
      for (int half = 0; half < 2; ++half) {
        const std::int64_t element = row_major_element(registers(t, 2 * r + half), matrices);
        const std::uint32_t word = in.shared[static_cast<std::size_t>(element / 2)];
        loaded |= (word >> (16 * (element % 2)) & 0xFFFF) << (16 * half);
        if (is_store) put_element(out.expected, element, 16, stored >> (16 * half) & 0xFFFF);
      }
      if (!is_store) out.expected.push_back(loaded);
    }
  }
  const std::string form =
      fmt::format("{}matrix_x{}{}", is_store ? "st" : "ld", matrices, transposed ? "_trans" : "");
  out.name = form;
  out.kernel = "warp_probe_" + form;
  out.inputs = std::move(in);
  return out;
}

// ---- tensor copies
// --------------------------------------------------------------------------------

struct BoxOf {
  int bits;
  SmemSwizzle swizzle;
  int rows;
  int x, y;
};

ProbeCase make_tensor_copy_case(const BoxOf& of, Rng& rng) {
  TensorCopyInputs in;
  in.rows = 48;
  in.columns = 160;
  in.element_bits = of.bits;
  in.box_rows = of.rows;
  in.box_columns = arch::swizzle_span_bytes(of.swizzle) * 8 / of.bits;
  in.swizzle_bytes = of.swizzle == SmemSwizzle::kNone ? 0 : arch::swizzle_span_bytes(of.swizzle);
  in.x = of.x;
  in.y = of.y;
  in.matrix = random_words(rng, static_cast<std::size_t>(in.rows * in.columns * of.bits / 32));
  const ComposedLayout tile =
      arch::make_smem_tile(Major::kK, of.swizzle, of.bits, of.rows, in.box_columns);
  ProbeCase out;
  out.expected.resize(static_cast<std::size_t>(size(tile) * of.bits / 32));
  for (int i = 0; i < of.rows; ++i) {
    for (int j = 0; j < in.box_columns; ++j) {
      const int row = of.y + i, column = of.x + j;
      const bool is_inside = row >= 0 && row < in.rows && column >= 0 && column < in.columns;
      const std::int64_t bit = (std::int64_t{row} * in.columns + column) * of.bits;
      const std::uint32_t mask = of.bits == 32 ? ~0u : (1u << of.bits) - 1;
      const std::uint32_t code =
          is_inside ? in.matrix[static_cast<std::size_t>(bit / 32)] >> (bit % 32) & mask : 0;
      put_element(out.expected, tile(i, j), of.bits, code);
    }
  }
  out.kernel = "tensor_copy_probe";
  out.name = fmt::format("tensor_copy.{}bit.{}.x{}y{}", of.bits, name_of(of.swizzle), of.x, of.y);
  out.inputs = std::move(in);
  return out;
}

void hash_bytes(std::uint64_t& hash, const void* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3ull;
  }
}
void hash_words(std::uint64_t& hash, const Words& words) {
  hash_bytes(hash, words.data(), words.size() * sizeof(std::uint32_t));
}

}  // namespace

std::vector<ProbeCase> probe_cases() {
  Rng rng(90);
  std::vector<ProbeCase> cases;
  add_wgmma_cases(cases, rng);
  cases.push_back(make_mma_case("m16n8k16_bf16", arch::kMmaM16N8K16, kBf16Type, rng));
  cases.push_back(make_mma_case("m16n8k8_bf16", arch::kMmaM16N8K8, kBf16Type, rng));
  cases.push_back(make_mma_case("m16n8k8_tf32", arch::kMmaM16N8K8Tf32, kTf32Type, rng));
  cases.push_back(make_mma_case("m16n8k32_e4m3", arch::kMmaM16N8K32, kE4m3Type, rng));
  for (const bool is_store : {false, true}) {
    for (const int matrices : {1, 2, 4}) {
      for (const bool transposed : {false, true}) {
        cases.push_back(make_matrix_copy_case(matrices, transposed, is_store, rng));
      }
    }
  }
  for (const SmemSwizzle swizzle :
       {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B, SmemSwizzle::k128B}) {
    for (const int bits : {8, 16, 32})
      cases.push_back(make_tensor_copy_case({bits, swizzle, 16, 0, 8}, rng));
    cases.push_back(make_tensor_copy_case({16, swizzle, 24, 128, 40}, rng));  // overhangs two edges
    cases.push_back(make_tensor_copy_case({16, swizzle, 8, -8, -3}, rng));    // and the other two
  }
  return cases;
}

std::uint64_t digest(const ProbeCase& probe) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  hash_bytes(hash, probe.kernel.data(), probe.kernel.size());
  if (const auto* wgmma = std::get_if<WgmmaInputs>(&probe.inputs)) {
    hash_words(hash, wgmma->shared_image);
    hash_words(hash, wgmma->a_registers);
    hash_bytes(hash, &wgmma->a_descriptor, sizeof wgmma->a_descriptor);
    hash_bytes(hash, &wgmma->b_descriptor, sizeof wgmma->b_descriptor);
  } else if (const auto* warp = std::get_if<WarpInputs>(&probe.inputs)) {
    hash_words(hash, warp->registers);
    hash_words(hash, warp->shared);
  } else if (const auto* copy = std::get_if<TensorCopyInputs>(&probe.inputs)) {
    const int numbers[] = {copy->rows,
                           copy->columns,
                           copy->element_bits,
                           copy->box_rows,
                           copy->box_columns,
                           copy->swizzle_bytes,
                           copy->x,
                           copy->y};
    hash_words(hash, copy->matrix);
    hash_bytes(hash, numbers, sizeof numbers);
  }
  return hash;
}

}  // namespace tilewright::hardware
