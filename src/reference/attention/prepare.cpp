#include "reference/attention/prepare.h"

#include "base/error.h"
#include "formats/minifloat.h"
#include "reference/shape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

constexpr float kMaxCode = 448;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kKeyGroup = 16;

int64_t round_up(int64_t x, int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

struct Sequence {
  int64_t begin, len;  // rows of x
};

Sequence find_sequence(const AttentionPrepareParams& p, int64_t b) {
  if (p.cu_seqlens.empty()) return {b * p.rows, p.rows};
  return {p.cu_seqlens[b], p.cu_seqlens[b + 1] - p.cu_seqlens[b]};
}

int64_t total_rows(const AttentionPrepareParams& p) {
  return p.cu_seqlens.empty() ? p.batch * p.rows : p.cu_seqlens.back();
}

int64_t num_blocks(const AttentionPrepareParams& p) {
  return std::max<int64_t>((p.rows + p.block_rows - 1) / p.block_rows, 1);
}

int64_t num_scales(const AttentionPrepareParams& p) {
  if (p.scales == ScaleSharing::kTensor) return 1;
  if (p.scales == ScaleSharing::kHead) return p.batch * p.kv_heads;
  return p.batch * p.heads * num_blocks(p);
}

// Index of the factor of a row of a sequence.
int64_t scale_index(const AttentionPrepareParams& p, int64_t b, int64_t row, int64_t head) {
  if (p.scales == ScaleSharing::kTensor) return 0;
  if (p.scales == ScaleSharing::kHead) return b * p.kv_heads + head / (p.heads / p.kv_heads);
  return (b * p.heads + head) * num_blocks(p) + row / p.block_rows;
}

void check(const AttentionPrepareParams& p, size_t elems) {
  require_at_least("prepare", "batch", p.batch, 0);
  require_at_least("prepare", "heads", p.heads, 1);
  require_at_least("prepare", "kv_heads", p.kv_heads, 1);
  require_at_least("prepare", "rows", p.rows, 0);
  require_at_least("prepare", "head_dim", p.head_dim, 1);
  require(p.heads % p.kv_heads == 0, kInvalid,
          "prepare: heads = {} and kv_heads = {}; expected kv_heads to divide heads. Repeat or "
          "drop heads.",
          p.heads, p.kv_heads);
  if (!p.cu_seqlens.empty())
    require_shape("prepare", "cu_seqlens", p.cu_seqlens.size(), "[batch + 1]", {p.batch + 1});
  require_shape("prepare", "x", elems, "[rows, heads, head_dim]",
                {total_rows(p), p.heads, p.head_dim});
  if (p.scales == ScaleSharing::kBlock) require_at_least("prepare", "block_rows", p.block_rows, 1);
  if (p.is_rotated) {
    require_shape("prepare", "signs", p.signs.size(), "[head_dim]", {p.head_dim});
    require(std::has_single_bit(static_cast<uint64_t>(p.head_dim)), kInvalid,
            "prepare: head_dim = {} is to be rotated; expected a power of two. Pad the heads.",
            p.head_dim);
  }
  if (p.rope == RopePairing::kNone) return;
  require(p.rotary_dim > 0 && p.rotary_dim % 2 == 0 && p.rotary_dim <= p.head_dim, kInvalid,
          "prepare: rotary_dim = {} and head_dim = {}; expected an even number up to head_dim. "
          "Elements turn in pairs.",
          p.rotary_dim, p.head_dim);
  require_shape("prepare", "positions", p.positions.size(), "[rows]", {total_rows(p)});
  require(p.angles.size() % static_cast<size_t>(p.rotary_dim) == 0, kInvalid,
          "prepare: {} angles; expected [positions, rotary_dim = {}]. Give a cosine and a sine for "
          "every pair.",
          p.angles.size(), p.rotary_dim);
}

void turn(float& a, float& b, float cosine, float sine) {
  const float real = a, imaginary = b;
  a = std::fma(-imaginary, sine, real * cosine);
  b = std::fma(imaginary, cosine, real * sine);
}

void apply_rope(const AttentionPrepareParams& p, std::span<float> x, int64_t position) {
  const int64_t pairs = p.rotary_dim / 2;
  const int64_t num_positions = static_cast<int64_t>(p.angles.size()) / p.rotary_dim;
  if (position < 0 || position >= num_positions) {
    std::ranges::fill(x, kNan);
    return;
  }
  const auto angles = p.angles.subspan(position * p.rotary_dim, p.rotary_dim);
  for (int64_t i = 0; i < pairs; ++i) {
    const bool is_interleaved = p.rope == RopePairing::kInterleaved;
    const int64_t a = is_interleaved ? 2 * i : i, b = is_interleaved ? 2 * i + 1 : i + pairs;
    turn(x[a], x[b], angles[i], angles[pairs + i]);
  }
}

void rotate(std::span<const float> signs, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] *= signs[i];
  for (size_t distance = 1; distance < x.size(); distance *= 2) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (i & distance) continue;
      const float a = x[i], b = x[i + distance];
      x[i] = a + b;
      x[i + distance] = a - b;
    }
  }
}

// Calls visit(batch, row of the sequence, head, offset of the first element).
template <class Visit>
void for_each_row(const AttentionPrepareParams& p, Visit visit) {
  for (int64_t b = 0; b < p.batch; ++b) {
    const Sequence s = find_sequence(p, b);
    for (int64_t row = 0; row < s.len; ++row) {
      for (int64_t head = 0; head < p.heads; ++head)
        visit(b, row, head, ((s.begin + row) * p.heads + head) * p.head_dim);
    }
  }
}

// What the codes are rounded from, but for the factor.
std::vector<float> transform(const AttentionPrepareParams& p, std::span<const float> x) {
  std::vector<float> out(x.begin(), x.end());
  for_each_row(p, [&](int64_t, int64_t, int64_t, int64_t first) {
    const auto row = std::span(out).subspan(first, p.head_dim);
    if (p.rope != RopePairing::kNone) apply_rope(p, row, p.positions[first / p.head_dim / p.heads]);
    if (p.is_rotated) rotate(p.signs, row);
  });
  return out;
}

float raise_to_power_of_two(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);  // in [0.5, 1); NaN stays
  if (std::isnan(x)) return x;
  const int log2 = fraction == 0.5f ? exponent - 1 : exponent;
  return log2 > 127 ? kNan : std::ldexp(1.0f, log2);
}

// Largest magnitudes; NaN if there is a NaN or an infinity.
std::vector<float> find_amax(const AttentionPrepareParams& p, std::span<const float> x) {
  std::vector<float> amax(num_scales(p), p.least_amax);
  for_each_row(p, [&](int64_t b, int64_t row, int64_t head, int64_t first) {
    float& most = amax[scale_index(p, b, row, head)];
    for (const float value : x.subspan(first, p.head_dim)) {
      if (!std::isfinite(value)) most = kNan;
      if (std::abs(value) > most) most = std::abs(value);
    }
  });
  if (p.has_pow2_scales) {
    for (float& most : amax) most = raise_to_power_of_two(most);
  }
  return amax;
}

}  // namespace

Fp8Operand prepare_attention_operand(const AttentionPrepareParams& p, std::span<const float> x) {
  check(p, x.size());
  const std::vector<float> values = transform(p, x);
  const std::vector<float> amax = find_amax(p, values);
  const double norm = p.is_rotated ? 1 / std::sqrt(static_cast<double>(p.head_dim)) : 1;
  const float factor = static_cast<float>(norm / kMaxCode);
  Fp8Operand out;
  for (const float most : amax) out.descale.push_back(most * factor);
  out.codes.resize(x.size());
  for_each_row(p, [&](int64_t b, int64_t row, int64_t head, int64_t first) {
    const float most = amax[scale_index(p, b, row, head)];
    const float up = kMaxCode / most;
    for (int64_t i = first; i < first + p.head_dim; ++i) {
      out.codes[i] = std::isnan(most) ? 0 : static_cast<uint8_t>(encode(kE4m3, values[i] * up));
    }
  });
  if (p.scales != ScaleSharing::kBlock) return out;
  const int64_t of_kv_head = p.heads / p.kv_heads * num_blocks(p);
  for (int64_t i = 0; i < p.batch * p.kv_heads; ++i) {
    float most = 0;
    for (const float descale : std::span(out.descale).subspan(i * of_kv_head, of_kv_head))
      most = std::isnan(descale) || descale > most ? descale : most;
    out.descale_max.push_back(most);
  }
  return out;
}

std::vector<float> attention_amax(const AttentionPrepareParams& p, std::span<const float> x) {
  check(p, x.size());
  return find_amax(p, transform(p, x));
}

float attention_descale(const AttentionPrepareParams& p, const Fp8Operand& operand,
                        int64_t batch_idx, int64_t row, int64_t head) {
  return operand.descale[scale_index(p, batch_idx, row, head)];
}

std::vector<double> dequantize_attention_operand(const AttentionPrepareParams& p,
                                                 const Fp8Operand& operand) {
  require_shape("prepare", "codes", operand.codes.size(), "[rows, heads, head_dim]",
                {total_rows(p), p.heads, p.head_dim});
  require_shape("prepare", "descale", operand.descale.size(), "[scales]", {num_scales(p)});
  std::vector<double> values(operand.codes.size());
  for_each_row(p, [&](int64_t b, int64_t row, int64_t head, int64_t first) {
    const double descale = attention_descale(p, operand, b, row, head);
    for (int64_t i = first; i < first + p.head_dim; ++i)
      values[i] = decode(kE4m3, operand.codes[i]) * descale;
  });
  return values;
}

std::vector<uint8_t> transpose_values(const AttentionPrepareParams& p,
                                      std::span<const uint8_t> codes) {
  const bool is_packed = !p.cu_seqlens.empty();
  const int64_t columns = is_packed ? round_up(total_rows(p), kKeyGroup) + kKeyGroup * (p.batch + 1)
                                    : round_up(p.rows, kKeyGroup);
  std::vector<uint8_t> out((is_packed ? 1 : p.batch) * p.heads * p.head_dim * columns);
  for_each_row(p, [&](int64_t b, int64_t row, int64_t head, int64_t first) {
    const int64_t begin = is_packed ? round_up(p.cu_seqlens[b], kKeyGroup) + kKeyGroup * b : 0;
    const int64_t key = row % kKeyGroup;  // 8h + 2q + c
    const int64_t slot = key % 8 / 2 * 4 + key / 8 * 2 + key % 2;
    const int64_t column = begin + row - key + slot;
    for (int64_t d = 0; d < p.head_dim; ++d) {
      const int64_t line = ((is_packed ? 0 : b) * p.heads + head) * p.head_dim + d;
      out[line * columns + column] = codes[first + d];
    }
  });
  return out;
}

}  // namespace tilewright::reference
