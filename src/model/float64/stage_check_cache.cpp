// StageCheck: rows of caches, and the queries that are stored like them.
#include "formats/block_scale.h"
#include "formats/kv_page.h"
#include "formats/minifloat.h"
#include "model/float64/stage_check.h"
#include "reference/error_bound.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::model {

namespace {

bool is_window(const Stage& stage) {
  return stage.name.starts_with("kv");
}

}  // namespace

const BlockFormat& StageCheck::row_format() const {
  return options_.kv == KvFormat::kNvfp4 ? kNvfp4 : kFp8Block64Pow2;
}

// The numbers of stored codes before their scales; nvfp4 has two in a byte, the even one low.
Doubles StageCheck::code_values(std::span<const double> bytes) const {
  Doubles values;
  for (const double byte : bytes) {
    const auto code = static_cast<std::uint32_t>(byte);
    if (options_.kv != KvFormat::kNvfp4) {
      values.push_back(decode(kE4m3, code));
      continue;
    }
    values.push_back(decode(kE2m1, code & 15U));
    values.push_back(decode(kE2m1, code >> 4));
  }
  return values;
}

// What later stages are made of, of all rows.
void StageCheck::remember(const Stage& stage) {
  LayerMemory& at = memory();
  const auto append_all = [&](Doubles& to) {
    to.insert(to.end(), stage.values.begin(), stage.values.end());
  };
  if (stage.name == "attn_in") return append_all(at.x);
  if (stage.name == "idx_k") return append_all(at.index_keys);
  Doubles& rows = is_window(stage) ? at.kv : at.compressed;
  if (stage.name == "kv" || stage.name == "comp") return append_all(rows);
  if (stage.name.ends_with("_fp8") || stage.name.ends_with("_nvfp4")) {
    stored_ = code_values(stage.values);
  } else if (stage.name.ends_with("_scale")) {
    const auto block = static_cast<std::size_t>(row_format().block_cols);
    for (std::size_t i = 0; i < stored_.size(); ++i)
      stored_[i] *= decode(row_format().scale, static_cast<std::uint32_t>(stage.values[i / block]));
  } else if (stage.name == "kv_rope" || stage.name == "comp_rope") {
    const std::int64_t rope = config_.rope_dim, plain = config_.head_dim - rope;
    for (std::int64_t r = 0; r < stage.shape[0]; ++r) {
      const auto codes = Rows::part(stored_, plain, r, r + 1);
      const auto rotated = Rows::part(stage.values, rope, r, r + 1);
      rows.insert(rows.end(), codes.begin(), codes.end());
      rows.insert(rows.end(), rotated.begin(), rotated.end());
    }
  }
}

// kv: fp32 from the projection, norm, rotation, one rounding to bf16.
Bounded StageCheck::window_rows(const Stage& stage) {
  const std::int64_t dim = config_.head_dim;
  const Doubles frequencies = layer_frequencies(config_, kind());
  const auto tokens = positions();
  return by_rows(rows_, stage.shape[0], [&](std::int64_t first, std::int64_t last) {
    const std::int64_t rows = last - first;
    const auto x = Rows::part(now("attn_in"), config_.hidden, first, last);
    Bounded kv = linear(exactly(x), weights().wkv, rows);
    kv = rms_norm({rows, dim, config_.norm_eps}, kv, weights().kv_norm);
    kv =
        rope({rows, 1, dim, config_.rope_dim}, kv, Rows::part(tokens, 1, first, last), frequencies);
    return round_to_bf16(kv);
  });
}

// Entries [first_row, first_row + rows) of a compressor: bf16 after pooling, norm and rotation.
Bounded StageCheck::entry_rows(const Stage& stage, const Compressor64& weights, std::int64_t dim) {
  const reference::CompressorParams params = compressor_params(kind(), dim);
  const Doubles frequencies = layer_frequencies(config_, kind());
  const Doubles& x = memory().x;
  const auto one = [&](std::int64_t j) {
    const std::int64_t first =
        std::max<std::int64_t>(0, (params.overlap ? j - 1 : j) * params.ratio);
    const std::int64_t tokens = (j + 1) * params.ratio - first;
    const auto input = Rows::part(x, config_.hidden, first, first + tokens);
    Bounded entry = pool(params, linear(exactly(input), weights.wkv, tokens),
                         linear(exactly(input), weights.wgate, tokens), weights.ape, first, j, 1);
    entry = round_to_bf16(entry);
    entry = round_to_bf16(rms_norm({1, dim, config_.norm_eps}, entry, weights.norm));
    const auto position = static_cast<std::int32_t>(j * params.ratio);
    entry = rope({1, 1, dim, config_.rope_dim}, entry, {&position, 1}, frequencies);
    return round_to_bf16(entry);
  };
  return by_rows(rows_, stage.shape[0], [&](std::int64_t first, std::int64_t last) {
    Bounded block;
    for (std::int64_t r = first; r < last; ++r)
      append(block, one(numbers_[static_cast<std::size_t>(r)]));
    return block;
  });
}

void StageCheck::check_plain_row(const Stage& stage) {
  compare(stage,
          is_window(stage) ? window_rows(stage)
                           : entry_rows(stage, weights().compressor, config_.head_dim),
          0);
}

// Judged when their scales are known.
void StageCheck::check_codes(const Stage& stage) {
  cache_.rows = is_window(stage) ? window_rows(stage)
                                 : entry_rows(stage, weights().compressor, config_.head_dim);
  cache_.codes = code_values(stage.values);
  verdict(stage.name).is_code = true;
}

void StageCheck::check_scales(const Stage& stage) {
  const bool is_nvfp4 = options_.kv == KvFormat::kNvfp4;
  const BlockFormat& format = row_format();
  const std::string codes_name =
      (is_window(stage) ? "kv_" : "comp_") + std::string(is_nvfp4 ? "nvfp4" : "fp8");
  verdict(stage.name).is_code = true;
  const std::int64_t dim = config_.head_dim, plain = dim - config_.rope_dim;
  const std::int64_t block = format.block_cols, blocks = plain / block;
  for (std::int64_t r = 0; r < stage.shape[0]; ++r) {
    bool has_codes = true, has_scales = true;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const double scale = decode(
          format.scale,
          static_cast<std::uint32_t>(stage.values[static_cast<std::size_t>(r * blocks + b)]));
      const std::int64_t at = r * plain + b * block;
      const auto decoded =
          std::span(cache_.codes)
              .subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(block));
      for (double& x : decoded) x *= scale;
      const Bounded row = part(cache_.rows, r * dim + b * block, block);
      const BlockVerdict found = check_block(format, decoded, &scale, row.value, row.error);
      StageVerdict& codes = verdict(codes_name);
      codes.undecided += found.undecided;
      codes.different += found.different;
      codes.elems += block;
      if (found.beyond > 0) {
        const auto i = static_cast<std::size_t>(found.first);
        note(codes, stage, r,
             fmt::format("element {}: {:.6g} stored for {:.9g} +- {:.2g}", b * block + found.first,
                         decoded[i], row.value[i], row.error[i]));
        has_codes = false;
      }
      if (found.has_scale) continue;
      has_scales = false;
      note(verdict(stage.name), stage, r,
           fmt::format("block {}: a scale of {:.6g} for another largest number", b, scale));
    }
    StageVerdict &codes = verdict(codes_name), &scales = verdict(stage.name);
    ++codes.rows;
    ++scales.rows;
    scales.elems += blocks;
    codes.beyond_rows += !has_codes;
    scales.beyond_rows += !has_scales;
  }
}

void StageCheck::check_rotated(const Stage& stage) {
  const std::int64_t dim = config_.head_dim, rope = config_.rope_dim, plain = dim - rope;
  Bounded expected;
  for (std::int64_t r = 0; r < stage.shape[0]; ++r)
    append(expected, part(cache_.rows, r * dim + plain, rope));
  compare(stage, expected, 0);
}

// Rows of the indexer come as the numbers that their codes mean, under scales of their own.
void StageCheck::check_blocks(const Stage& stage, const Bounded& expected) {
  const BlockFormat* format = index_blocks(options_.index);
  if (format == nullptr) return compare(stage, expected, 0);
  StageVerdict& to = verdict(stage.name);
  to.is_code = true;
  const std::int64_t block = format->block_cols;
  const auto cols = static_cast<std::int64_t>(stage.values.size()) / stage.shape[0];
  for (std::int64_t r = 0; r < stage.shape[0]; ++r) {
    bool is_met = true;
    for (std::int64_t at = r * cols; at < (r + 1) * cols; at += block) {
      const Bounded wanted = part(expected, at, block);
      const auto found = check_block(*format, Rows::part(stage.values, 1, at, at + block), nullptr,
                                     wanted.value, wanted.error);
      to.undecided += found.undecided;
      to.different += found.different;
      if (found.beyond == 0) continue;
      is_met = false;
      const auto i = static_cast<std::size_t>(found.first);
      note(to, stage, r,
           fmt::format("element {}: {:.6g} stored for {:.9g} +- {:.2g}",
                       at - r * cols + found.first, stage.values[static_cast<std::size_t>(at) + i],
                       wanted.value[i], wanted.error[i]));
    }
    to.beyond_rows += !is_met;
  }
  to.rows += stage.shape[0];
  to.elems += static_cast<std::int64_t>(stage.values.size());
}

void StageCheck::check_index_keys(const Stage& stage) {
  const std::int64_t dim = config_.index_dim;
  const Bounded rows = entry_rows(stage, weights().indexer.compressor, dim);
  check_blocks(stage, round_to_bf16(hadamard(dim, rows)));
}

void StageCheck::check_index_queries(const Stage& stage) {
  const std::int64_t heads = config_.index_heads, dim = config_.index_dim;
  const Doubles frequencies = layer_frequencies(config_, kind());
  const auto tokens = positions();
  check_blocks(stage, by_rows(rows_, stage.shape[0], [&](std::int64_t first, std::int64_t last) {
                 const std::int64_t rows = last - first;
                 const auto qr = Rows::part(now("qr"), config_.q_rank, first, last);
                 Bounded q = round_to_bf16(linear(exactly(qr), weights().indexer.wq_b, rows));
                 q = rope({rows, heads, dim, config_.rope_dim}, q,
                          Rows::part(tokens, 1, first, last), frequencies);
                 return round_to_bf16(hadamard(dim, round_to_bf16(q)));
               }));
}

}  // namespace tilewright::model
