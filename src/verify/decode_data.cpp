#include "verify/decode_data.h"

#include "formats/minifloat.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "reference/rotation/rotary_table.h"
#include "reference/round.h"

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

/// New rows of a sequence as numbers, rotated if `is_rotated`, rounded to `format`; and how far off
/// those may be that are rotated in fp32.
struct NewRows {
  std::vector<double> numbers, doubt;
};
NewRows new_rows(const DecodeData& data, const std::vector<std::uint16_t>& codes,
                 std::int64_t heads, std::int64_t batch_idx, bool is_rotated,
                 const FormatSpec& format) {
  const Problem& p = data.problem;
  const std::int64_t each = p.q_len * heads * p.head_dim;
  std::vector<double> x;
  for (std::int64_t i = batch_idx * each; i < (batch_idx + 1) * each; ++i)
    x.push_back(decode(decode_format(p.dtype), codes[static_cast<std::size_t>(i)]));
  std::vector<double> doubt(x.size());
  if (is_rotated && p.append.rotary != RotaryPairs::kNone) {
    std::vector<std::int64_t> positions(static_cast<std::size_t>(p.q_len));
    std::iota(positions.begin(), positions.end(),
              data.lengths[static_cast<std::size_t>(batch_idx)]);
    const std::vector<double> cos(data.cos.begin(), data.cos.end());
    const std::vector<double> sin(data.sin.begin(), data.sin.end());
    const reference::RotaryTableParams params = {
        .tokens = p.q_len,
        .heads = heads,
        .head_dim = p.head_dim,
        .rotary_dim = p.append.rotary_dim,
        .is_interleaved = p.append.rotary == RotaryPairs::kInterleaved};
    const std::vector<double> error = reference::rotary_table_error(params, x, positions, cos, sin);
    x = reference::rotary_table(params, x, positions, cos, sin);
    for (std::size_t i = 0; i < x.size(); ++i)
      doubt[i] = reference::rounding_doubt(format, x[i], error[i]);
  }
  for (double& value : x) value = round_to(format, value);
  return {std::move(x), std::move(doubt)};
}

/// A cache's rows of a sequence; `first` is where its numbers begin.
std::vector<double> cache_rows(const DecodeData& data, std::int64_t batch_idx, std::int64_t first) {
  const Problem& p = data.problem;
  const std::int64_t row = p.kv_heads * p.head_dim;
  const FormatSpec& format = decode_format(p.kv_dtype);
  std::vector<double> x;
  for (std::int64_t key = 0; key < data.lengths[static_cast<std::size_t>(batch_idx)]; ++key) {
    std::int64_t at = batch_idx * p.cache_strides.batch + key * row;
    if (p.page_size > 0) {
      const std::int64_t entry = batch_idx * p.table_stride + key / p.page_size;
      at = data.table[static_cast<std::size_t>(entry)] * p.cache_strides.batch +
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

// What is no number is wrong without measure.
void keep_larger(double& most, double x) {
  if (!(x <= most)) most = std::isnan(x) ? INFINITY : x;
}

reference::AttentionRow bound_of(const DecodeData& data, std::int64_t batch_idx,
                                 const DecodeExact& exact, std::size_t line) {
  const AttentionDecodeProblem& p = data.problem;
  const reference::AttentionResult& result = exact.result;
  const bool is_f16 = p.dtype == DType::kF16, weighs_in_f16 = p.kv_dtype != DType::kBF16;
  const bool is_empty = std::isinf(result.row_max[line]);
  return {.head_dim = p.head_dim,
          .num_keys = data.total(batch_idx),
          .score_magnitude = result.score_magnitude[line],
          .row_max = result.row_max[line],
          .score_shift = exact.score_shift[line],
          .top_share = is_empty ? 0 : std::exp(result.row_max[line] - result.lse_with_sink[line]),
          .softcap = p.softcap,
          .value_max = exact.value_max,
          .p_roundoff = weighs_in_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16,
          .p_subnormal = weighs_in_f16 ? 0x1p-24 : 0,
          .out_roundoff = is_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16};
}

}  // namespace

std::int64_t DecodeData::cache_elems() const {
  return (problem.page_size > 0 ? problem.num_pages : problem.batch) * problem.cache_strides.batch;
}

std::int64_t DecodeData::total(std::int64_t batch_idx) const {
  return lengths[static_cast<std::size_t>(batch_idx)] +
         (problem.append.is_wanted ? problem.q_len : 0);
}

double DecodeData::bytes() const {
  double sum = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) sum += count_work(problem, total(b)).bytes;
  return sum;
}

double DecodeData::flops() const {
  double sum = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) sum += count_work(problem, total(b)).flops;
  return sum;
}

DecodeExact DecodeData::exact(std::int64_t batch_idx) const {
  const Problem& p = problem;
  std::vector<double> k = cache_rows(*this, batch_idx, 0), k_doubt;
  std::vector<double> v = cache_rows(*this, batch_idx, cache_elems());
  if (p.append.is_wanted) {
    const FormatSpec& format = decode_format(p.kv_dtype);
    const NewRows new_keys = new_rows(*this, new_k, p.kv_heads, batch_idx, true, format);
    k_doubt.resize(k.size());
    std::ranges::copy(new_keys.numbers, std::back_inserter(k));
    std::ranges::copy(new_keys.doubt, std::back_inserter(k_doubt));
    std::ranges::copy(new_rows(*this, new_v, p.kv_heads, batch_idx, false, format).numbers,
                      std::back_inserter(v));
  }
  const std::vector<double> sinks(sink.begin(), sink.end());
  const NewRows queries = new_rows(*this, q, p.heads, batch_idx, true, decode_format(p.dtype));
  const reference::AttentionParams params = {.batch = 1,
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
                                             .magnitudes = true};
  DecodeExact exact = {.result = reference::attention(params, queries.numbers, k, v),
                       .score_shift = reference::attention_score_shift(params, queries.numbers,
                                                                       queries.doubt, k, k_doubt)};
  for (const double x : v) exact.value_max = std::max(exact.value_max, std::abs(x));
  return exact;
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
  data.problem = complete(problem);
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
  const AttentionDecodeProblem& p = data.problem;
  const DecodeExact exact = data.exact(batch_idx);
  const reference::AttentionResult& result = exact.result;
  const FormatSpec& format = p.dtype == DType::kF16 ? kFp16 : kBf16;
  const std::int64_t rows = p.q_len * p.heads;
  const auto compare = [&](double got, double want, double bound, double& most) {
    const double error = std::abs(got - want);
    keep_larger(most, error);
    keep_larger(worst_of_bound, error == 0 ? 0 : error / bound);
  };
  ++sequences;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto line = static_cast<std::size_t>(i % p.heads * p.q_len + i / p.heads);
    const reference::AttentionRow row = bound_of(data, batch_idx, exact, line);
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(i * p.head_dim + d);
      const auto got = static_cast<std::size_t>((batch_idx * rows + i) * p.head_dim + d);
      const double want = result.out[at];
      const double bound = reference::attention_out_bound(row, want, result.out_magnitude[at]);
      bounds += bound;
      magnitudes += result.out_magnitude[at];
      compare(decode(format, out[got]), want, bound, max_out_error);
    }
    if (!p.has_lse) continue;
    const float got = lse[static_cast<std::size_t>(batch_idx * rows) + line];
    const double want = result.lse[line];
    if (std::isinf(want)) {  // of a row without keys
      if (got != want) keep_larger(worst_of_bound, INFINITY);
      continue;
    }
    compare(got, want, reference::attention_lse_bound(row, want), max_lse_error);
  }
}

nlohmann::json DecodeDifference::log() const {
  // JSON has no infinity.
  const auto finite = [](double x) { return std::isfinite(x) ? x : 1e300; };
  const bool is_decided = magnitudes == 0 || bounds < magnitudes;
  return {{"ok", is_decided && worst_of_bound <= 1 && (sequences > 0 || has_none)},
          {"decided", is_decided},
          {"worst_of_bound", finite(worst_of_bound)},
          {"max_out_error", finite(max_out_error)},
          {"max_lse_error", finite(max_lse_error)},
          {"reference", fmt::format("float64, {} sequences", sequences)}};
}

}  // namespace tilewright::cli
