// The arithmetic of quantising: from a problem to sizes and a launch.
#pragma once

#include "tilewright/quantize.h"

#include "device/device.h"
#include "formats/block_scale.h"
#include "kernels/quantize/quantize.h"

#include <optional>
#include <string_view>

namespace tilewright::ops {

/// The format of a problem whose defaults are filled in. Per token, a block is as wide as the row.
BlockFormat quantize_format(const QuantizeProblem& problem);
/// The rule of a name; none for an unknown one.
std::optional<ScaleChoice> find_scale_choice(std::string_view name);
/// Likewise of a checked problem.
ScaleChoice scale_choice(const QuantizeProblem& problem);
bool is_per_token(const QuantizeProblem& problem);

/// Sizes alone. Errors   InvalidArgument naming field, value, rule and remedy
QuantizePlan make_quantize_sizes(const QuantizeProblem& problem);
/// With kernel and grid. Errors also Unsupported
QuantizePlan make_quantize_plan(const device::DeviceInfo& device, const QuantizeProblem& problem);

/// Everything but addresses.
kernels::QuantizeParams quantize_numbers(const QuantizePlan& plan);
/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_quantize_arguments(const QuantizePlan& plan, const QuantizeArguments& arguments,
                              std::size_t code_alignment = 16);

}  // namespace tilewright::ops
