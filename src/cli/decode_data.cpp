#include "cli/decode_data.h"

#include "formats/minifloat.h"
#include "ops/attention_decode_problem.h"
#include "reference/attention_bound.h"
#include "reference/error_bound.h"
#include "reference/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using Problem = AttentionDecodeProblem;

// Odd, so that rows do not come back to the same place.
constexpr std::int64_t kNumbers = (1 << 22) - 3;

const FormatSpec& decode_format(DType dtype) {
  return dtype == DType::kF8_E4M3 ? kE4m3 : dtype == DType::kF16 ? kFp16 : kBf16;
}

template <class Code>
std::vector<Code> draw_codes(std::mt19937_64& random, std::int64_t count, DType dtype) {
  std::normal_distribution<double> normal;
  std::vector<Code> codes;
  for (std::int64_t i = 0; i < count; ++i)
    codes.push_back(static_cast<Code>(encode(decode_format(dtype), normal(random))));
  return codes;
}

void draw_lengths(DecodeData& data, std::int64_t keys, DecodeLengths lengths,
                  std::mt19937_64& random) {
  std::uniform_int_distribution<std::int64_t> any(0, keys);
  for (std::int64_t b = 0; b < data.problem.batch; ++b)
    data.lengths.push_back(
        static_cast<std::int32_t>(lengths == DecodeLengths::kFull ? keys : any(random)));
}

void draw_table(DecodeData& data, std::mt19937_64& random) {
  const Problem& p = data.problem;
  if (p.page_size == 0) return;
  data.table.resize(static_cast<std::size_t>(p.num_pages));
  std::iota(data.table.begin(), data.table.end(), 0);
  std::ranges::shuffle(data.table, random);
}

void draw_rotation(DecodeData& data) {
  const DecodeAppend& a = data.problem.append;
  for (std::int64_t t = 0; t < a.max_position; ++t) {
    for (std::int64_t i = 0; i < a.rotary_dim / 2; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(a.rotary_dim));
      data.cos.push_back(static_cast<float>(std::cos(angle)));
      data.sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

/// New rows of a sequence as numbers, rotated if `is_rotated`, rounded to `format`.
std::vector<double> new_rows(const DecodeData& data, const std::vector<std::uint16_t>& codes,
                             std::int64_t heads, std::int64_t batch_idx, bool is_rotated,
                             const FormatSpec& format) {
  const Problem& p = data.problem;
  const std::int64_t each = p.q_len * heads * p.head_dim;
  std::vector<double> x;
  for (std::int64_t i = batch_idx * each; i < (batch_idx + 1) * each; ++i)
    x.push_back(decode(decode_format(p.dtype), codes[static_cast<std::size_t>(i)]));
  if (is_rotated && p.append.rotary != RotaryPairs::kNone) {
    std::vector<std::int64_t> positions(static_cast<std::size_t>(p.q_len));
    std::iota(positions.begin(), positions.end(),
              data.lengths[static_cast<std::size_t>(batch_idx)]);
    const std::vector<double> cos(data.cos.begin(), data.cos.end());
    const std::vector<double> sin(data.sin.begin(), data.sin.end());
    x = reference::rotary_table({.tokens = p.q_len,
                                 .heads = heads,
                                 .head_dim = p.head_dim,
                                 .rotary_dim = p.append.rotary_dim,
                                 .is_interleaved = p.append.rotary == RotaryPairs::kInterleaved},
                                x, positions, cos, sin);
  }
  for (double& value : x) value = round_to(format, value);
  return x;
}

/// A cache's rows of a sequence; `first` is where its numbers begin.
std::vector<double> cache_rows(const DecodeData& data, std::int64_t batch_idx, std::int64_t first) {
  const Problem& p = data.problem;
  const std::int64_t row = p.kv_heads * p.head_dim;
  const FormatSpec& format = decode_format(p.kv_dtype);
  std::vector<double> x;
  for (std::int64_t key = 0; key < data.lengths[static_cast<std::size_t>(batch_idx)]; ++key) {
    std::int64_t at = batch_idx * p.cache_strides.page + key * row;
    if (p.page_size > 0) {
      const std::int64_t entry = batch_idx * p.table_stride + key / p.page_size;
      at = data.table[static_cast<std::size_t>(entry)] * p.cache_strides.page +
           key % p.page_size * row;
    }
    for (std::int64_t i = 0; i < row; ++i) {
      const auto elem = static_cast<std::size_t>((first + at + i) % kNumbers);
      const std::uint32_t code =
          data.elem_bytes() == 1
              ? data.numbers[elem]
              : data.numbers[2 * elem] | std::uint32_t{data.numbers[2 * elem + 1]} << 8;
      x.push_back(decode(format, code));
    }
  }
  return x;
}

}  // namespace

std::int64_t DecodeData::cache_elems() const {
  return (problem.page_size > 0 ? problem.num_pages : problem.batch) * problem.cache_strides.page;
}

std::int64_t DecodeData::total(std::int64_t batch_idx) const {
  return lengths[static_cast<std::size_t>(batch_idx)] +
         (problem.append.is_wanted ? problem.q_len : 0);
}

double DecodeData::bytes() const {
  double sum = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) sum += ops::decode_bytes(problem, total(b));
  return sum;
}

double DecodeData::flops() const {
  double sum = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) sum += ops::decode_flops(problem, total(b));
  return sum;
}

reference::AttentionResult DecodeData::exact(std::int64_t batch_idx) const {
  const Problem& p = problem;
  std::vector<double> k = cache_rows(*this, batch_idx, 0);
  std::vector<double> v = cache_rows(*this, batch_idx, cache_elems());
  if (p.append.is_wanted) {
    const FormatSpec& format = decode_format(p.kv_dtype);
    std::ranges::copy(new_rows(*this, new_k, p.kv_heads, batch_idx, true, format),
                      std::back_inserter(k));
    std::ranges::copy(new_rows(*this, new_v, p.kv_heads, batch_idx, false, format),
                      std::back_inserter(v));
  }
  const std::vector<double> sinks(sink.begin(), sink.end());
  return reference::attention({.batch = 1,
                               .heads = p.heads,
                               .kv_heads = p.kv_heads,
                               .q_len = p.q_len,
                               .kv_len = total(batch_idx),
                               .head_dim = p.head_dim,
                               .v_head_dim = p.head_dim,
                               .scale = p.scale,
                               .softcap = p.softcap,
                               .causal = p.causal,
                               .window_left = p.window_left,
                               .sink = sinks,
                               .magnitudes = true},
                              new_rows(*this, q, p.heads, batch_idx, true, decode_format(p.dtype)),
                              k, v);
}

DecodeData draw_decode(Problem problem, std::int64_t keys, DecodeLengths lengths,
                       std::int64_t page_size) {
  const std::int64_t room = keys + (problem.append.is_wanted ? problem.q_len : 0);
  if (page_size > 0) {
    problem.page_size = page_size;
    problem.max_pages = (room + page_size - 1) / page_size;
    problem.num_pages = problem.batch * problem.max_pages;
  } else {
    problem.max_len = room;
  }
  if (problem.append.rotary != RotaryPairs::kNone) problem.append.max_position = room;
  DecodeData data;
  data.problem = ops::complete_decode_problem(problem);
  const Problem& p = data.problem;
  std::mt19937_64 random(1);
  draw_lengths(data, keys, lengths, random);
  draw_table(data, random);
  draw_rotation(data);
  const std::int64_t tokens = p.batch * p.q_len * p.head_dim;
  data.q = draw_codes<std::uint16_t>(random, tokens * p.heads, p.dtype);
  if (p.append.is_wanted) {
    data.new_k = draw_codes<std::uint16_t>(random, tokens * p.kv_heads, p.dtype);
    data.new_v = draw_codes<std::uint16_t>(random, tokens * p.kv_heads, p.dtype);
  }
  const auto numbers = draw_codes<std::uint16_t>(random, kNumbers, p.kv_dtype);
  for (const std::uint16_t code : numbers) {
    data.numbers.push_back(static_cast<std::uint8_t>(code));
    if (data.elem_bytes() == 2) data.numbers.push_back(static_cast<std::uint8_t>(code >> 8));
  }
  std::normal_distribution<float> normal;
  for (std::int64_t h = 0; p.has_sink && h < p.heads; ++h) data.sink.push_back(normal(random));
  return data;
}

void DecodeDifference::add(const DecodeData& data, std::int64_t batch_idx,
                           const std::vector<std::uint16_t>& out, const std::vector<float>& lse) {
  const Problem& p = data.problem;
  const reference::AttentionResult exact = data.exact(batch_idx);
  const bool is_f16 = p.dtype == DType::kF16, weighs_in_f16 = p.kv_dtype != DType::kBF16;
  const std::int64_t rows = p.q_len * p.heads;
  ++sequences;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto line = static_cast<std::size_t>(i % p.heads * p.q_len + i / p.heads);
    reference::AttentionRow row = {
        .head_dim = p.head_dim,
        .num_keys = data.total(batch_idx),
        .score_magnitude = exact.score_magnitude[line],
        .row_max = exact.row_max[line],
        .softcap = p.softcap,
        .value_max = 8,  // of N(0,1), in as many numbers
        .p_roundoff = weighs_in_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16,
        .p_subnormal = weighs_in_f16 ? 0x1p-24 : 0,
        .out_roundoff = is_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16};
    // A rotated number may round to the other neighbour where fp32 and float64 disagree.
    if (p.append.rotary != RotaryPairs::kNone)
      row.score_magnitude *= 1 + 2 * row.out_roundoff / (17 * 0x1p-25);
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(i * p.head_dim + d);
      const auto got = static_cast<std::size_t>((batch_idx * rows + i) * p.head_dim + d);
      const double error = std::abs(decode(decode_format(p.dtype), out[got]) - exact.out[at]);
      const double bound =
          reference::attention_out_bound(row, exact.out[at], exact.out_magnitude[at]);
      // What is no number is wrong without measure.
      max_out_error = error <= max_out_error ? max_out_error : error;
      worst_of_bound = error <= bound * worst_of_bound ? worst_of_bound : error / bound;
    }
    if (!p.has_lse || std::isinf(exact.lse[line])) continue;
    const double error =
        std::abs(static_cast<double>(lse[static_cast<std::size_t>(batch_idx * rows) + line]) -
                 exact.lse[line]);
    const double bound = reference::attention_lse_bound(row, exact.lse[line]);
    max_lse_error = error <= max_lse_error ? max_lse_error : error;
    worst_of_bound = error <= bound * worst_of_bound ? worst_of_bound : error / bound;
  }
}

nlohmann::json DecodeDifference::log() const {
  return {{"ok", worst_of_bound <= 1 && sequences > 0},
          {"worst_of_bound", worst_of_bound},
          {"max_out_error", max_out_error},
          {"max_lse_error", max_lse_error},
          {"reference", fmt::format("float64, {} sequences", sequences)}};
}

}  // namespace tilewright::cli
