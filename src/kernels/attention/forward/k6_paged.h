// K6 over keys in pages, and with lengths that only the device knows: its forms.
#pragma once

#include "kernels/attention/forward/k6_variant.h"
#include "kernels/attention/forward/pages.h"

namespace tilewright::kernels {

/// Entries attention_k6_pages_{bf16,f16}_NAME, with "_rows" behind it where rows are gathered
/// (PageCopies::kRows). Every feature of AttentionParams. A third stage where there is room, as a
/// page is looked up before it is copied: three consumers would leave the producer 32 registers,
/// too few for looking up. "d128_tall", for many queries, has three all the same.
inline constexpr K6Variant kK6PagedVariants[] = {
    {.name = "d64", .head_dim = 64, .consumers = 3, .keys = 96, .kv_stages = 3},
    {.name = "d96", .head_dim = 96, .keys = 128, .kv_stages = 3},
    {.name = "d128_tall",
     .head_dim = 128,
     .consumers = 3,
     .keys = 80,
     .pass = K6Pass::kAfterScores,
     .kv_stages = 3,
     .first_polls = true,
     .is_tall = true},
    {.name = "d128", .head_dim = 128, .keys = 128, .pass = K6Pass::kAfterScores, .kv_stages = 3},
    {.name = "d192", .head_dim = 192, .keys = 96, .pass = K6Pass::kAfterScores},
    {.name = "d256",
     .head_dim = 256,
     .keys = 80,
     .pass = K6Pass::kAfterScores,
     .first_polls = true},
    {.name = "d192_v128",
     .head_dim = 192,
     .value_dim = 128,
     .keys = 128,
     .pass = K6Pass::kAfterScores},
};

}  // namespace tilewright::kernels
