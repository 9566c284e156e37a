// K6, the attention kernel of 16-bit operands that the library chooses: its forms.
#pragma once

#include "kernels/attention/forward/k6_variant.h"

namespace tilewright::kernels {

inline constexpr K6Variant kK6Variants[] = {
    {.name = "d64", .head_dim = 64, .consumers = 3, .keys = 128, .stages_out = true},
    {.name = "d64_short",
     .head_dim = 64,
     .keys = 128,
     .q_stages = 2,
     .keys_first = false,
     .first_polls = true},
    {.name = "d96",
     .head_dim = 96,
     .consumers = 3,
     .keys = 96,
     .pass = K6Pass::kAfterScores,
     .stages_out = true,
     .clips = true},
    {.name = "d96_short", .head_dim = 96, .keys = 128, .stages_out = true, .clips = true},
    {.name = "d128", .head_dim = 128, .keys = 128, .stages_out = true, .cuts_diagonal = true},
    {.name = "d128_short", .head_dim = 128, .keys = 128, .stages_out = true},
    {.name = "d128_long", .head_dim = 128, .consumers = 2, .keys = 176, .first_polls = true},
    {.name = "d192",
     .head_dim = 192,
     .keys = 80,
     .pass = K6Pass::kAfterScores,
     .stages_out = true,
     .clips = true},
    {.name = "d256",
     .head_dim = 256,
     .keys = 80,
     .pass = K6Pass::kAfterScores,
     .first_polls = true},
    {.name = "d192_v128",
     .head_dim = 192,
     .value_dim = 128,
     .keys = 128,
     .pass = K6Pass::kAfterScores,
     .clips = true},
};

}  // namespace tilewright::kernels
