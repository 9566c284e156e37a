// K7 over keys in pages, and with lengths that only the device knows: its forms.
#pragma once

#include "kernels/attention/k7/k7_variant.h"
#include "kernels/attention/k7/paged_operands.h"

#include <string_view>

namespace tilewright::kernels {

inline constexpr int kMostPageParts = 32;  ///< of a tile of keys, a lane each: tile_parts

constexpr K7Variant k7_paged_form(const char* name, int head_dim, Fp8Sums sums, int consumers,
                                  int keys, int kv_stages) {
  K7Variant v = {.name = {},
                 .head_dim = head_dim,
                 .values = Fp8Values::kRows,
                 .has_block_scales = false,
                 .sums = sums,
                 .is_short = false,
                 .consumers = consumers,
                 .keys = keys,
                 .kv_stages = kv_stages,
                 .stages_out = false};
  for (int i = 0; name[i] != 0; ++i) v.name[i] = name[i];
  return v;
}

/// Entries attention_k7_pages_NAME. Every feature of AttentionParams, any grid; one CTA per SM is
/// meant. A third stage where there is room: a page is looked up before it is copied. Two levels of
/// sums at 128 have narrower tiles than K7's: what looks up pages needs registers, too.
inline constexpr K7Variant kK7PagedVariants[] = {
    k7_paged_form("d64", 64, Fp8Sums::kOneLevel, 3, 128, 3),
    k7_paged_form("d128", 128, Fp8Sums::kOneLevel, 2, 128, 3),
    k7_paged_form("d256", 256, Fp8Sums::kOneLevel, 2, 96, 2),
    k7_paged_form("d64_two_level", 64, Fp8Sums::kTwoLevel, 3, 128, 3),
    k7_paged_form("d128_two_level", 128, Fp8Sums::kTwoLevel, 2, 96, 3),
    k7_paged_form("d256_two_level", 256, Fp8Sums::kTwoLevel, 2, 96, 2),
};

/// Number of the form of that name; not a constant if there is none.
constexpr int find_k7_paged_index(std::string_view name) {
  int i = 0;
  while (name != kK7PagedVariants[i].name) ++i;
  return i;
}

}  // namespace tilewright::kernels
