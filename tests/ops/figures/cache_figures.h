// What caches keep of rows, and attention of them.
#pragma once

#include "tilewright/cache_writer.h"
#include "tilewright/sparse_attention.h"

#include "formats/kv_row.h"
#include "reference/sparse_attention/sparse_attention.h"
#include "tests/ops/figures/document_figure.h"

#include <numeric>

namespace tilewright::ops {

// Rows that KvCache wrote: their pages, and what it reads of them.
struct Rows {
  KvCacheLayout layout;
  Buffer pages;
  Doubles numbers;

  Rows(const Device& device, NumberFormat format, const Doubles& rows)
      : layout(complete({.format = format, .num_pages = std::ssize(rows) / kKvDims / 64})),
        pages(opened(device), kv_cache_bytes(layout)) {
    const std::int64_t count = std::ssize(rows) / kKvDims;
    const KvCache cache(device, layout);
    const device::Device& inner = opened(device);
    std::vector<std::int32_t> slots(static_cast<std::size_t>(count));
    std::iota(slots.begin(), slots.end(), 0);
    const Buffer kv = Buffer::from(inner, codes_of(rows)),
                 weight = Buffer::from(inner, codes_of(Doubles(kKvDims, 1))),
                 positions = Buffer::from(inner, slots), at = Buffer::from(inner, slots),
                 rope = Buffer::from(inner, rope_table({}, count)),
                 out(inner, static_cast<std::size_t>(2 * count * kKvDims));
    cache.write({.tokens = count,
                 .kv = pointer_to<void>(kv),
                 .kv_weight = pointer_to<void>(weight),
                 .positions = pointer_to<std::int32_t>(positions),
                 .rope = {.angles = pointer_to<float>(rope), .positions = count},
                 .slots = pointer_to<std::int32_t>(at),
                 .pages = pointer_to<void>(pages)});
    cache.read({.count = count,
                .rows = pointer_to<std::int32_t>(at),
                .pages = pointer_to<void>(pages),
                .out = pointer_to<void>(out)});
    device.synchronize();
    numbers = numbers_of(out.to_vector<std::uint16_t>());
  }
};

// What encode_kv_row() makes of numbers.
inline Doubles stored_rows(const KvCacheLayout& layout, const Doubles& rows) {
  std::vector<std::uint8_t> pages(kv_cache_bytes(layout));
  Doubles out(rows.size());
  for (std::int64_t i = 0; i < std::ssize(rows) / kKvDims; ++i) {
    const auto at = static_cast<std::size_t>(i * kKvDims);
    const std::vector<float> row(rows.begin() + i * kKvDims, rows.begin() + (i + 1) * kKvDims);
    encode_kv_row(kv_page_layout(layout), row, i, pages.data());
    decode_kv_row(kv_page_layout(layout), pages.data(), i,
                  std::span(out).subspan(at, static_cast<std::size_t>(kKvDims)));
  }
  return out;
}

// Every query looks at all rows.
struct AttentionInputs {
  std::int64_t queries = 4, heads = 8, keys;
  Doubles q;
  std::vector<std::int32_t> indices;

  explicit AttentionInputs(std::int64_t num_keys) : keys(num_keys) {
    q = draw_normal(5, queries * heads * kKvDims);
    for (std::int64_t i = 0; i < queries * keys; ++i)
      indices.push_back(static_cast<std::int32_t>(i % keys));
  }
  Doubles in_float64(const Doubles& rows) const {
    return reference::sparse_attention({.queries = queries, .heads = heads}, q,
                                       {.rows = rows, .indices = indices, .topk = keys})
        .out;
  }
};

inline DocumentFigure attention_figure(const Device& device, const Rows& plain, const Rows& fp8) {
  const AttentionInputs inputs(std::ssize(plain.numbers) / kKvDims);
  const device::Device& inner = opened(device);
  const SparseAttention attention(device, {.batch = inputs.queries,
                                           .heads = inputs.heads,
                                           .window = {.cache = fp8.layout, .topk = inputs.keys}});
  const Buffer q = Buffer::from(inner, codes_of(inputs.q)),
               indices = Buffer::from(inner, inputs.indices),
               workspace(inner, attention.plan().workspace_bytes), out(inner, inputs.q.size() * 2);
  attention.run({.q = pointer_to<void>(q),
                 .window = {.pages = pointer_to<void>(fp8.pages),
                            .indices = pointer_to<std::int32_t>(indices)},
                 .out = pointer_to<void>(out),
                 .workspace = pointer_to<void>(workspace)});
  device.synchronize();
  const Doubles original = inputs.in_float64(plain.numbers);
  return {.what = "attention over FP8 rows",
          .kernel = attention.plan().kernel,
          .document = 0.9997,
          .float64 = cosine(inputs.in_float64(fp8.numbers), original),
          .reached = cosine(numbers_of(out.to_vector<std::uint16_t>()), original),
          .is_within_format = false};
}

inline void add_cache_figures(const Device& device, std::vector<DocumentFigure>& figures) {
  const Doubles rows = draw_normal(1, 640 * kKvDims);
  const Rows plain(device, NumberFormat::kBf16, rows), fp8(device, NumberFormat::kFp8, rows),
      nvfp4(device, NumberFormat::kNvfp4, rows);
  const auto add = [&](const char* what, const Rows& quantised, double document, bool is_within) {
    figures.push_back(
        {.what = what,
         .kernel = "cache_write",
         .document = document,
         .float64 = cosine(stored_rows(quantised.layout, plain.numbers), plain.numbers),
         .reached = cosine(quantised.numbers, plain.numbers),
         .is_within_format = is_within});
  };
  add("FP8 rows", fp8, 0.9997, false);
  add("NVFP4 rows", nvfp4, 0.9943, true);
  figures.push_back(attention_figure(device, plain, fp8));
}

}  // namespace tilewright::ops
