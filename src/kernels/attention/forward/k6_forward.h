// K6, the attention kernel of 16-bit operands that the library chooses: its forms.
#pragma once

#include "kernels/attention/forward/k6_variant.h"

namespace tilewright::kernels {

inline constexpr K6Variant kK6Variants[] = {
    {.name = "d64",
     .head_dim = 64,
     .consumers = 3,
     .keys = 128,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false},
    {.name = "d64_short", .head_dim = 64, .keys = 128, .q_stages = 2},
    {.name = "d128",
     .head_dim = 128,
     .keys = 128,
     .pass = K6Pass::kAfterScores,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false},
    {.name = "d128_short",
     .head_dim = 128,
     .keys = 128,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false},
    {.name = "d128_long", .head_dim = 128, .consumers = 2, .keys = 176, .keys_first = true},
    {.name = "d192",
     .head_dim = 192,
     .keys = 80,
     .pass = K6Pass::kAfterScores,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false,
     .clips = true},
    {.name = "d256", .head_dim = 256, .keys = 80, .pass = K6Pass::kAfterScores, .keys_first = true},
    {.name = "d192_v128",
     .head_dim = 192,
     .value_dim = 128,
     .keys = 128,
     .pass = K6Pass::kAfterScores,
     .keys_first = true,
     .first_polls = false,
     .clips = true},
};

}  // namespace tilewright::kernels
