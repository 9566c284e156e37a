// K7: queries, keys, values and weights in e4m3, twice the products per cycle: its forms.
#pragma once

#include "kernels/attention/k7/k7_variant.h"

#include <string_view>

namespace tilewright::kernels {

/// Two levels of sums leave no registers to tell the kinds of scales apart; short forms exist where
/// the long one's tiles are larger.
constexpr bool has_k7_variant(const K7Variant& v) {
  if (v.sums == Fp8Sums::kTwoLevel) return v.has_block_scales && !v.is_short;
  if (!v.is_short) return true;
  return v.head_dim < 256 &&
         (!v.has_block_scales || (v.head_dim == 128 && v.values == Fp8Values::kRows));
}

/// "d", head_dim, and "_rows", "_block", "_two_level", "_short" for what is not usual.
constexpr void name_k7_variant(K7Variant& v) {
  char* at = v.name;
  const auto append = [&](const char* text) {
    while (*text != 0) *at++ = *text++;
  };
  append(v.head_dim == 64 ? "d64" : v.head_dim == 128 ? "d128" : "d256");
  if (v.values == Fp8Values::kRows) append("_rows");
  if (v.sums == Fp8Sums::kTwoLevel) {
    append("_two_level");
  } else if (v.has_block_scales) {
    append("_block");
  }
  if (v.is_short) append("_short");
}

/// How a form cuts the problem: registers decide, and measurements (docs/notes).
constexpr void cut_k7_variant(K7Variant& v) {
  const bool is_rows = v.values == Fp8Values::kRows, is_one_level = v.sums == Fp8Sums::kOneLevel;
  if (v.head_dim == 64 && is_one_level) {
    v.consumers = 3;
    v.keys = v.has_block_scales || v.is_short ? 128 : 160;
  } else if (v.head_dim == 128 && is_one_level && !v.is_short && (is_rows || !v.has_block_scales)) {
    v.consumers = 3;
    v.keys = 96;
    v.kv_stages = 3;
    v.pass = K7Pass::kAfterScores;
  } else if (v.head_dim == 256) {
    if (is_rows || (v.has_block_scales && is_one_level)) v.keys = 96;
    v.stages_out = !is_rows;  // rows take the place
  }
}

/// Those there are.
struct K7Variants {
  K7Variant all[23];
  int count = 0;

  constexpr K7Variants() : all() {
    for (const int head_dim : {64, 128, 256})
      for (const Fp8Values values : {Fp8Values::kColumns, Fp8Values::kRows})
        for (const Fp8Sums sums : {Fp8Sums::kOneLevel, Fp8Sums::kTwoLevel})
          for (const bool has_block_scales : {false, true})
            for (const bool is_short : {false, true})
              add({{}, head_dim, values, has_block_scales, sums, is_short});
  }
  constexpr void add(K7Variant v) {
    if (!has_k7_variant(v)) return;
    name_k7_variant(v);
    cut_k7_variant(v);
    all[count++] = v;
  }
  constexpr const K7Variant* begin() const { return all; }
  constexpr const K7Variant* end() const { return all + count; }
};
inline constexpr K7Variants kK7Variants;
static_assert(kK7Variants.count == 23);

/// Number of the variant of that name; not a constant if there is none.
constexpr int find_k7_index(std::string_view name) {
  int i = 0;
  while (name != kK7Variants.all[i].name) ++i;
  return i;
}

}  // namespace tilewright::kernels
