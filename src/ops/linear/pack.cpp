#include "ops/linear/pack.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "formats/e4m3_magnitudes.h"
#include "formats/minifloat.h"
#include "formats/packed_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace tilewright::ops {

namespace {

using kernels::kBrickK;
using kernels::kBrickRows;
using kernels::PackedShape;
using kernels::WordOrder;
using KernelFormat = kernels::WeightFormat;

constexpr int kHalfRows = kBrickRows / 2, kGroups = kBrickK / kernels::kGroupK;

// encode_word() is a sum over the codes: four bytes of two codes each, looked up one by one.
using WordTable = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr WordTable make_word_table(WordOrder order) {
  WordTable table = {};
  for (std::size_t place = 0; place < 4; ++place) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint8_t codes[8] = {};
      codes[2 * place] = byte & 15;
      codes[2 * place + 1] = static_cast<std::uint8_t>(byte >> 4);
      table[place][byte] = kernels::encode_word(order, codes);
    }
  }
  return table;
}

const WordTable& word_table(WordOrder order) {
  static const WordTable bf16 = make_word_table(WordOrder::kBf16);
  static const WordTable e4m3 = make_word_table(WordOrder::kE4m3);
  return order == WordOrder::kBf16 ? bf16 : e4m3;
}

// Scale code -> packed byte; 0 for those that no block with values has.
std::array<std::uint8_t, 256> make_scale_table(KernelFormat format, int origin) {
  std::array<std::uint8_t, 256> table = {};
  for (std::uint32_t code = 0; code < 256; ++code) {
    if (format == KernelFormat::kNvfp4) {
      if (code == 0 || code > 126) continue;
      const kernels::ScaleParts parts = kernels::split_ue4m3(code);
      if (parts.exponent <= origin)
        table[code] = kernels::nvfp4_scale_byte(parts, kernels::nvfp4_shift(origin));
    } else {
      const int exponent = static_cast<int>(code) - 127;
      if (exponent <= origin && exponent >= origin - kernels::kMxfp4Span)
        table[code] = kernels::mxfp4_scale_byte(exponent, origin);
    }
  }
  return table;
}

// The 16 elements of a group as bytes; zeros where the matrix has none.
template <int kBytes>
struct Group {
  std::uint8_t bytes[kBytes] = {};
};

class BrickPacker {
 public:
  explicit BrickPacker(const PackRequest& request)
      : request_(request), words_(word_table(request.order)) {
    if (kernels::is_fp4(request.shape.format))
      scales_ = make_scale_table(request.shape.format, request.origin);
  }

  void pack(std::int32_t brick_row, std::int32_t brick_k, std::uint8_t* out) const {
    switch (request_.shape.format) {
      case KernelFormat::kNvfp4:
      case KernelFormat::kMxfp4:
        return pack_fp4(brick_row, brick_k, out);
      case KernelFormat::kFp8:
        return pack_fp8(brick_row, brick_k, out);
      case KernelFormat::kBf16:
        return pack_bf16(brick_row, brick_k, out);
    }
  }

 private:
  // Row `row` of the brick; without values past the last one.
  PackRow row_at(std::int32_t brick_row, int row) const {
    const std::int32_t at = brick_row * kBrickRows + row;
    return at < request_.shape.rows ? request_.rows[static_cast<std::size_t>(at)] : PackRow{};
  }

  template <int kBytes>
  Group<kBytes> load(const PackRow& row, std::int32_t group) const {
    Group<kBytes> out;
    if (row.values != nullptr && group * kernels::kGroupK < request_.shape.k)
      std::memcpy(out.bytes, row.values + std::int64_t{group} * kBytes, kBytes);
    return out;
  }

  // The packed scale of a group of 16; codes under a scale of zero become zero.
  std::uint8_t load_scale(const PackRow& row, std::int32_t group, Group<8>& codes) const {
    if (row.values == nullptr || group * kernels::kGroupK >= request_.shape.k) return 0;
    if (request_.shape.format == KernelFormat::kMxfp4) return scales_[row.scales[group / 2]];
    const std::uint8_t code = row.scales[group];
    if ((code & 0x7f) == 0) codes = {};
    return scales_[code];
  }

  void pack_fp4(std::int32_t brick_row, std::int32_t brick_k, std::uint8_t* out) const {
    const KernelFormat format = request_.shape.format;
    for (int g = 0; g < kHalfRows; ++g) {
      const PackRow rows[2] = {row_at(brick_row, g), row_at(brick_row, g + kHalfRows)};
      for (int s = 0; s < kGroups; ++s) {
        const std::int32_t group = brick_k * kGroups + s;
        Group<8> codes[2];
        for (int h = 0; h < 2; ++h) {
          codes[h] = load<8>(rows[h], group);
          const std::uint8_t scale = load_scale(rows[h], group, codes[h]);
          out[kernels::brick_scale_offset(format, g + kHalfRows * h, s * kernels::kGroupK)] = scale;
        }
        std::uint32_t granule[4];
        for (int d = 0; d < 4; ++d) {
          granule[d] = words_[0][codes[0].bytes[d]] | words_[1][codes[0].bytes[d + 4]] |
                       words_[2][codes[1].bytes[d]] | words_[3][codes[1].bytes[d + 4]];
        }
        std::memcpy(out + kernels::granule_position(g, s) * kernels::kGranuleBytes, granule, 16);
      }
    }
  }

  void pack_fp8(std::int32_t brick_row, std::int32_t brick_k, std::uint8_t* out) const {
    for (int row = 0; row < kBrickRows; ++row) {
      const PackRow from = row_at(brick_row, row);
      std::uint8_t* const half =
          out + row / kHalfRows * kernels::kGranules * kernels::kGranuleBytes;
      for (int s = 0; s < kGroups; ++s) {
        const Group<16> group = load<16>(from, brick_k * kGroups + s);
        std::uint8_t* const granule =
            half + kernels::granule_position(row % kHalfRows, s) * kernels::kGranuleBytes;
        for (int d = 0; d < 4; ++d)
          for (int i = 0; i < 4; ++i)
            granule[4 * d + i] = group.bytes[kernels::element_of_word(d, i)];
      }
    }
  }

  void pack_bf16(std::int32_t brick_row, std::int32_t brick_k, std::uint8_t* out) const {
    for (int row = 0; row < kBrickRows; ++row) {
      const PackRow from = row_at(brick_row, row);
      for (int s = 0; s < kGroups; ++s) {
        const Group<32> group = load<32>(from, brick_k * kGroups + s);
        for (int q = 0; q < 2; ++q) {
          const int part = row / kHalfRows * 2 + q;
          const int granule =
              part * kernels::kGranules + kernels::granule_position(row % kHalfRows, s);
          std::memcpy(out + granule * kernels::kGranuleBytes, group.bytes + 16 * q, 16);
        }
      }
    }
  }

  const PackRequest& request_;
  const WordTable& words_;
  std::array<std::uint8_t, 256> scales_ = {};
};

float kernel_scale(float block_scale) {
  return block_scale > 0 ? block_scale : 1;
}

// The same values without those under a block scale of zero: the kernels want scales above 0.
std::vector<std::uint8_t> without_empty_blocks(const HostWeight& weight) {
  std::vector<std::uint8_t> values(weight.values.begin(), weight.values.end());
  const std::int64_t blocks = (weight.k + kFp8Block - 1) / kFp8Block;
  for (std::int64_t i = 0; i < weight.n * weight.k; ++i) {
    const std::int64_t block = i / weight.k / kFp8Block * blocks + i % weight.k / kFp8Block;
    if (weight.block_scales[static_cast<std::size_t>(block)] == 0)
      values[static_cast<std::size_t>(i)] = 0;
  }
  return values;
}

// [k / 128][row / 128], all above 0.
std::vector<float> scales_by_k(const HostWeight& weight) {
  const std::int64_t blocks_n = (weight.n + kFp8Block - 1) / kFp8Block;
  const std::int64_t blocks_k = (weight.k + kFp8Block - 1) / kFp8Block;
  std::vector<float> scales(weight.block_scales.size());
  for (std::int64_t n = 0; n < blocks_n; ++n)
    for (std::int64_t k = 0; k < blocks_k; ++k)
      scales[static_cast<std::size_t>(k * blocks_n + n)] =
          kernel_scale(weight.block_scales[static_cast<std::size_t>(n * blocks_k + k)]);
  return scales;
}

std::vector<PackRow> all_rows(const HostWeight& weight, const std::uint8_t* values) {
  std::vector<PackRow> rows(static_cast<std::size_t>(weight.n));
  const bool has_scales = !weight.scales.empty();
  for (std::int64_t r = 0; r < weight.n; ++r) {
    rows[static_cast<std::size_t>(r)] = {
        values + r * weight.value_row_bytes(),
        has_scales ? weight.scales.data() + r * weight.scale_row_bytes() : nullptr};
  }
  return rows;
}

}  // namespace

kernels::WeightFormat to_kernel(NumberFormat format) noexcept {
  switch (format) {
    case NumberFormat::kBf16:
      return KernelFormat::kBf16;
    case NumberFormat::kFp8:
      return KernelFormat::kFp8;
    case NumberFormat::kMxfp4:
      return KernelFormat::kMxfp4;
    default:
      return KernelFormat::kNvfp4;
  }
}

kernels::WordOrder word_order(LinearActivations activations) noexcept {
  return activations == LinearActivations::kFp8 ? WordOrder::kE4m3 : WordOrder::kBf16;
}

int scale_origin(NumberFormat format, std::uint8_t largest_scale) noexcept {
  if (format == NumberFormat::kMxfp4) return int{largest_scale} - 127;
  const std::uint32_t code = largest_scale & 0x7fu;
  return format == NumberFormat::kNvfp4 && code != 0 ? kernels::split_ue4m3(code).exponent : 0;
}

int bias_exponent(NumberFormat format, kernels::WordOrder decoded_for, int origin) noexcept {
  if (format == NumberFormat::kNvfp4)
    return kernels::nvfp4_bias_exponent(decoded_for, kernels::nvfp4_shift(origin));
  return format == NumberFormat::kMxfp4 ? kernels::mxfp4_bias_exponent(decoded_for, origin) : 0;
}

void require_scale_span(const HostWeight& weight) {
  if (weight.format != NumberFormat::kMxfp4) return;
  const int span = int{weight.largest_scale} - int{weight.smallest_scale};
  require(span <= kernels::kMxfp4Span, ErrorKind::kInvalidArgument,
          "linear: scales of the mxfp4 weight reach from 2^{} to 2^{}; expected a span of at most "
          "2^{} in one matrix. Set the values under the smallest scales to zero.",
          int{weight.smallest_scale} - 127, int{weight.largest_scale} - 127, kernels::kMxfp4Span);
}

void pack_bricks(const PackRequest& request, std::span<std::uint8_t> out) {
  const PackedShape& shape = request.shape;
  require(out.size() == static_cast<std::size_t>(shape.bytes()) &&
              request.rows.size() == static_cast<std::size_t>(shape.rows),
          ErrorKind::kInternal, "pack_bricks: {} bytes and {} rows for a matrix of {} and {}",
          out.size(), request.rows.size(), shape.bytes(), shape.rows);
  const BrickPacker packer(request);
  const int brick_bytes = kernels::brick_bytes(shape.format);
  ThreadPool pool;
  // Rows are read from left to right, 64 of them at a time: whole lines of the source, and pieces
  // of the result that are longer than lines.
  pool.parallel_for(0, shape.bricks_rows(), 4, [&](std::int64_t first, std::int64_t last) {
    for (std::int32_t k = 0; k < shape.bricks_k(); ++k) {
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t brick = std::int64_t{k} * shape.bricks_rows() + row;
        packer.pack(static_cast<std::int32_t>(row), k, out.data() + brick * brick_bytes);
      }
    }
  });
}

float PackedWeight::alpha(kernels::WordOrder decoded_for) const noexcept {
  return std::ldexp(global_scale, bias_exponent(format, decoded_for, origin));
}

PackedWeight pack_weight(const HostWeight& weight, LinearActivations activations) {
  require_scale_span(weight);
  PackedWeight packed;
  packed.format = weight.format;
  packed.shape = {to_kernel(weight.format), static_cast<std::int32_t>(weight.n),
                  static_cast<std::int32_t>(weight.k)};
  packed.order = word_order(activations);
  const auto bytes = static_cast<std::size_t>(packed.shape.bytes());
  packed.bricks = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  std::vector<std::uint8_t> cleaned;
  const bool has_empty_blocks = std::ranges::count(weight.block_scales, 0.0f) > 0;
  if (has_empty_blocks) cleaned = without_empty_blocks(weight);
  const std::vector<PackRow> rows =
      all_rows(weight, has_empty_blocks ? cleaned.data() : weight.values.data());
  const int origin = scale_origin(weight.format, weight.largest_scale);
  pack_bricks({packed.shape, packed.order, rows, origin}, {packed.bricks.get(), bytes});
  packed.global_scale = weight.global_scale;
  packed.origin = origin;
  if (weight.format == NumberFormat::kFp8) packed.block_scales = scales_by_k(weight);
  return packed;
}

E4m3Rows e4m3_rows(const HostWeight& weight) {
  constexpr std::int64_t kOrderBlock = 64;
  const std::vector<std::uint8_t> values = without_empty_blocks(weight);
  const std::int64_t columns = (weight.k + kOrderBlock - 1) / kOrderBlock * kOrderBlock;
  E4m3Rows rows = {std::vector<std::uint8_t>(static_cast<std::size_t>(weight.n * columns)),
                   scales_by_k(weight)};
  ThreadPool pool;
  pool.parallel_for(0, weight.n, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::uint8_t* const from = values.data() + row * weight.k;
      std::uint8_t* const to = rows.values.data() + row * columns;
      for (std::int64_t block = 0; block < columns; block += kOrderBlock) {
        for (int at = 0; at < kOrderBlock; ++at) {
          const std::int64_t column = block + kernels::operand_order(at);
          if (column < weight.k) to[block + at] = from[column];
        }
      }
    }
  });
  return rows;
}

namespace {

double decode_fp4(const PackedWeight& w, const std::uint8_t* brick, int row, int k, WordOrder as) {
  const kernels::BrickPlace place = kernels::brick_place(w.shape.format, row, k);
  std::uint32_t word;
  std::memcpy(&word, brick + 4 * place.word, 4);
  // The one code whose bits are in the word: an inverse without knowledge of the order.
  std::uint32_t code = 0;
  for (std::uint32_t bit = 1; bit < 16; bit *= 2) {
    std::uint8_t codes[8] = {};
    codes[place.place] = static_cast<std::uint8_t>(bit);
    if ((word & kernels::encode_word(w.order, codes)) != 0) code |= bit;
  }
  const std::uint32_t scale = brick[kernels::brick_scale_offset(w.shape.format, row, k)];
  if (as == WordOrder::kE4m3) {
    const std::uint64_t table = kernels::e4m3_magnitudes(w.shape.format, scale);
    const double value = decode(kE4m3, table >> (8 * (code & 7)) & 0xff);
    return (code & 8) != 0 ? -value : value;
  }
  // bf16_factor() is 2^126 too small for what follows e2m1's bias.
  return decode(kE2m1, code) *
         std::ldexp(decode(kBf16, kernels::bf16_factor(w.shape.format, scale)), -126);
}

}  // namespace

std::vector<double> unpack_weight(const PackedWeight& w, WordOrder as) {
  std::vector<double> out(static_cast<std::size_t>(std::int64_t{w.shape.rows} * w.shape.k));
  for (std::int32_t row = 0; row < w.shape.rows; ++row) {
    for (std::int32_t k = 0; k < w.shape.k; ++k) {
      const std::uint8_t* const brick = w.bricks.get() + w.shape.brick_offset(row, k);
      double& value = out[static_cast<std::size_t>(std::int64_t{row} * w.shape.k + k)];
      const int r = row % kBrickRows, c = k % kBrickK;
      if (kernels::is_fp4(w.shape.format)) {
        value = decode_fp4(w, brick, r, c, as);
        continue;
      }
      const kernels::BrickPlace place = kernels::brick_place(w.shape.format, r, c);
      const bool is_fp8 = w.shape.format == KernelFormat::kFp8;
      std::uint32_t word;
      std::memcpy(&word, brick + 4 * place.word, 4);
      value = is_fp8 ? decode(kE4m3, word >> (8 * place.place) & 0xff)
                     : decode(kBf16, word >> (16 * place.place) & 0xffff);
    }
  }
  return out;
}

}  // namespace tilewright::ops
