#include "ops/quantize/plan.h"

#include "formats/scale_layout.h"
#include "kernels/quantize/activation_fp8.h"
#include "kernels/quantize/fp4.h"
#include "kernels/quantize/weight_fp8.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

using kernels::QuantizeParams;

constexpr std::int64_t kMaxChunks = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxGridY = 65535;

constexpr ArgumentChecks kChecks("quantize");

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool is_tile(const BlockFormat& format) {
  return format.block_rows > 1;
}

const char* type_name(DType dtype) {
  return dtype == DType::kBF16 ? "bf16" : dtype == DType::kF16 ? "f16" : "f32";
}

// Columns come in these units: whole blocks, whole chunks of a thread, rows aligned to 16 bytes.
std::int64_t column_unit(const QuantizeProblem& p, const BlockFormat& format) {
  std::int64_t unit = is_per_token(p) ? 64 : std::max(format.block_cols, 32);
  if (p.has_operand_order) unit = std::max<std::int64_t>(unit, 64);
  if (p.has_128x4_scales) unit = std::max<std::int64_t>(unit, kScaleTileCols * format.block_cols);
  return unit;
}

std::int64_t row_unit(const QuantizeProblem& p, const BlockFormat& format) {
  return p.has_128x4_scales ? std::max<std::int64_t>(kScaleTileRows, format.block_rows)
                            : format.block_rows;
}

void check_encode_scale(ProblemChecks& checks, const QuantizeProblem& p, bool is_nvfp4) {
  checks.expect(is_nvfp4 || !p.has_encode_scale_address, "has_encode_scale_address",
                p.has_encode_scale_address,
                "false with format = {}; only nvfp4 has a scale per matrix", p.format);
  if (!p.encode_scale) return;
  const float g = *p.encode_scale;
  checks.expect(is_nvfp4, "encode_scale", g,
                "none with format = {}; only nvfp4 has a scale per matrix", p.format);
  checks.expect(!p.has_encode_scale_address, "encode_scale", g,
                "none with has_encode_scale_address");
  checks
      .expect(std::isfinite(g) && g > 0 && std::isfinite(1 / g), "encode_scale", g,
              "a number above 0 that is finite, as is its reciprocal")
      .remedy("Checkpoints store the reciprocal.");
}

void check_options(ProblemChecks& checks, const QuantizeProblem& p, const BlockFormat& format) {
  const bool is_nvfp4 = format.has_tensor_scale, is_e4m3 = format.element == kE4m3;
  checks.expect(is_nvfp4 || p.scales == "nearest", "scales", p.scales,
                "nearest with format = {}; only nvfp4 has a choice of scales", p.format);
  check_encode_scale(checks, p, is_nvfp4);
  checks.expect(!p.has_operand_order || is_e4m3, "has_operand_order", p.has_operand_order,
                "false with format = {}; it is of e4m3", p.format);
  checks.expect(
      !p.has_128x4_scales || (format.scale.bits() <= 8 && !is_tile(format) && !is_per_token(p)),
      "has_128x4_scales", p.has_128x4_scales,
      "false with format = {}; it is for rows of one-byte scales", p.format);
  checks
      .expect(!p.has_128x4_scales || !p.has_block_major_scales, "has_block_major_scales",
              p.has_block_major_scales, "false with has_128x4_scales")
      .remedy("Leave one out.");
}

std::string block_format_names() {
  std::string names;
  for (const BlockFormat& format : kBlockFormats)
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

// Whether they are such that others can be made of them.
bool check_extents(ProblemChecks& checks, const QuantizeProblem& p) {
  const auto check = [&](const char* field, std::int64_t value) {
    return checks.expect(value >= 0 && value <= std::numeric_limits<std::int32_t>::max() - 256,
                         field, value, "0 to 2^31 - 257");
  };
  return all_held({check("rows", p.rows), check("cols", p.cols), check("out_rows", p.out_rows),
                   check("out_cols", p.out_cols)});
}

// Fills in what is 0.
void complete_extents(ProblemChecks& checks, QuantizeProblem& p, const BlockFormat& format) {
  if (!check_extents(checks, p)) return;
  if (p.row_stride == 0) p.row_stride = p.cols;
  checks.expect(p.row_stride >= p.cols, "row_stride", p.row_stride, "at least cols = {}", p.cols);
  const std::int64_t rows = row_unit(p, format), cols = column_unit(p, format);
  if (p.out_rows == 0) p.out_rows = round_up(p.rows, rows);
  if (p.out_cols == 0) p.out_cols = round_up(p.cols, cols);
  checks.expect(p.out_rows >= p.rows && p.out_rows % rows == 0, "out_rows", p.out_rows,
                "a multiple of {} of at least rows = {}", rows, p.rows);
  checks.expect(p.out_cols >= p.cols && p.out_cols % cols == 0, "out_cols", p.out_cols,
                "a multiple of {} of at least cols = {}", cols, p.cols);
  const std::int64_t chunks = p.out_cols / kernels::kQuantizeChunk;
  checks
      .expect(chunks == 0 || p.out_rows <= kMaxChunks / chunks, "out_rows", p.out_rows,
              "at most 2^31 - 1 groups of 16 in one call, with out_cols = {}", p.out_cols)
      .remedy("Split the rows.");
  checks
      .expect(!is_tile(format) || p.out_rows / format.block_rows <= kMaxGridY, "out_rows",
              p.out_rows, "at most {} for {}", kMaxGridY * format.block_rows, p.format)
      .remedy("Split the rows.");
}

QuantizeProblem complete(const QuantizeProblem& problem) {
  ProblemChecks checks("quantize");
  QuantizeProblem p = problem;
  checks.expect(p.dtype == DType::kBF16 || p.dtype == DType::kF16 || p.dtype == DType::kF32,
                "dtype", p.dtype, "BF16, F16 or F32");
  checks.expect(find_scale_choice(p.scales).has_value(), "scales", p.scales,
                "nearest, four_over_six, exact_nearest or exact_best");
  if (checks.expect(is_per_token(p) || find_block_format(p.format) != nullptr, "format", p.format,
                    "fp8_token, fp8_token_ue8m0, {}", block_format_names())) {
    const BlockFormat format = quantize_format(p);
    check_options(checks, p, format);
    complete_extents(checks, p, format);
  } else {
    check_extents(checks, p);
  }
  checks.finish();
  return p;
}

void add_launch(QuantizePlan& plan, const device::DeviceInfo& device) {
  const QuantizeProblem& p = plan.problem;
  const BlockFormat format = quantize_format(p);
  const char* const type = type_name(p.dtype);
  const auto narrow = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  Launch launch = {.step = "quantize", .entry = {}, .block = {kernels::kQuantizeThreads, 1, 1}};
  if (is_tile(format)) {
    launch.entry = fmt::format("quantize_fp8_tile_{}", type);
    launch.grid = {narrow(kernels::fp8_tiles(p.out_cols)), narrow(kernels::fp8_tiles(p.out_rows)),
                   1};
  } else if (is_per_token(p)) {
    launch.entry = fmt::format("quantize_fp8_token_{}", type);
    launch.grid = {narrow(p.out_rows), 1, 1};
    launch.block[0] = kernels::fp8_token_threads(p.out_cols);
  } else if (format.element == kE4m3) {
    launch.entry = fmt::format("quantize_fp8_block_{}", type);
    launch.grid = {kernels::fp8_block_ctas(p.out_rows, p.out_cols), 1, 1};
  } else if (!format.has_tensor_scale) {
    launch.entry = fmt::format("quantize_mxfp4_{}", type);
    launch.grid = {narrow(kernels::fp4_ctas(p.out_rows, p.out_cols)), 1, 1};
  } else {
    const ScaleChoice choice = scale_choice(p);
    const bool best = choice == ScaleChoice::kFourOverSix || choice == ScaleChoice::kExactBest;
    plan.is_cooperative = !p.encode_scale && !p.has_encode_scale_address;
    launch.entry = fmt::format("quantize_nvfp4_{}{}{}", plan.is_cooperative ? "amax_" : "",
                               best ? "best_" : "", type);
    launch.grid = {plan.is_cooperative
                       ? kernels::nvfp4_amax_ctas(p.out_rows, p.out_cols, device.num_sms, best)
                       : narrow(kernels::fp4_ctas(p.out_rows, p.out_cols)),
                   1, 1};
    if (plan.is_cooperative) plan.workspace_bytes = launch.grid[0] * sizeof(float);
  }
  plan.launches.push_back(std::move(launch));
}

std::vector<PlanNote> notes_of(const QuantizePlan& plan) {
  const QuantizeProblem& p = plan.problem;
  std::string problem =
      fmt::format("{} of {} [{}, {}]", p.format, ops::type_word(p.dtype), p.rows, p.cols);
  if (p.scales != "nearest") problem += ", scales " + p.scales;
  if (p.has_row_index) problem += ", gathered rows";
  const char* const order = p.has_128x4_scales         ? " in 128x4 order"
                            : p.has_block_major_scales ? ", block-major"
                                                       : "";
  return {{"problem", problem},
          {"result", fmt::format("codes [{}, {}]{}, scales [{}, {}] of {} bytes{}", p.out_rows,
                                 p.out_cols, p.has_operand_order ? " in operand order" : "",
                                 plan.scale_rows, plan.scale_cols, plan.bytes_per_scale, order)}};
}

}  // namespace

bool is_per_token(const QuantizeProblem& problem) {
  return problem.format == "fp8_token" || problem.format == "fp8_token_ue8m0";
}

BlockFormat quantize_format(const QuantizeProblem& p) {
  if (!is_per_token(p)) return block_format_by_name(p.format);
  BlockFormat format = p.format == "fp8_token" ? kFp8Block1x128 : kFp8Block1x128Ue8m0;
  format.block_cols = static_cast<int>(std::max<std::int64_t>(p.out_cols, 64));
  return format;
}

std::optional<ScaleChoice> find_scale_choice(std::string_view name) {
  if (name == "nearest") return ScaleChoice::kNearest;
  if (name == "four_over_six") return ScaleChoice::kFourOverSix;
  if (name == "exact_nearest") return ScaleChoice::kExactNearest;
  if (name == "exact_best") return ScaleChoice::kExactBest;
  return std::nullopt;
}

ScaleChoice scale_choice(const QuantizeProblem& problem) {
  return find_scale_choice(problem.scales).value();
}

QuantizePlan make_quantize_sizes(const QuantizeProblem& problem) {
  QuantizePlan plan;
  plan.problem = complete(problem);
  const QuantizeProblem& p = plan.problem;
  const BlockFormat format = quantize_format(p);
  plan.code_row_bytes = p.out_cols * format.element.bits() / 8;
  plan.code_bytes = static_cast<std::size_t>(p.out_rows * plan.code_row_bytes);
  plan.scale_rows = p.out_rows / format.block_rows;
  plan.scale_cols = p.out_cols / format.block_cols;
  plan.bytes_per_scale = scale_bytes(format);
  const std::int64_t scales = p.has_128x4_scales
                                  ? swizzled_scale_bytes(plan.scale_rows, plan.scale_cols)
                                  : plan.scale_rows * plan.scale_cols * plan.bytes_per_scale;
  plan.scale_bytes = static_cast<std::size_t>(scales);
  plan.bytes =
      static_cast<double>(p.rows) * static_cast<double>(p.cols) * bits_per_elem(p.dtype) / 8 +
      static_cast<double>(plan.code_bytes) + static_cast<double>(plan.scale_bytes);
  plan.notes = notes_of(plan);
  return plan;
}

QuantizePlan make_quantize_plan(const device::DeviceInfo& device, const QuantizeProblem& problem) {
  QuantizePlan plan = make_quantize_sizes(problem);
  if (plan.code_bytes > 0) add_launch(plan, device);
  require_built("quantize", device, plan.launches);
  if (plan.is_cooperative)
    plan.notes.push_back({"launch", "cooperative: its CTAs wait for each other"});
  return plan;
}

QuantizeParams quantize_numbers(const QuantizePlan& plan) {
  const QuantizeProblem& p = plan.problem;
  const BlockFormat format = quantize_format(p);
  QuantizeParams params = {};
  params.in_stride = p.row_stride;
  params.code_stride_bytes = plan.code_row_bytes;
  params.scale_row_stride = p.has_block_major_scales ? 1 : plan.scale_cols;
  params.scale_block_stride = p.has_block_major_scales ? plan.scale_rows : 1;
  params.rows = narrow(p.rows);
  params.cols = narrow(p.cols);
  params.out_rows = narrow(p.out_rows);
  params.out_cols = narrow(p.out_cols);
  params.block_cols = format.block_cols;
  params.is_pow2 = plan.bytes_per_scale == 1;
  params.is_floor = format.rule == ScaleRule::kFloorPow2;
  params.encode_scale_value = p.encode_scale.value_or(0);
  params.min_amax = format.min_amax;
  params.scale_order =
      p.has_128x4_scales ? kernels::ScaleOrder::k128x4 : kernels::ScaleOrder::kStrided;
  params.code_order =
      p.has_operand_order ? kernels::CodeOrder::kOperand : kernels::CodeOrder::kPlain;
  params.scale_choice = scale_choice(p);
  return params;
}

void check_quantize_arguments(const QuantizePlan& plan, const QuantizeArguments& a,
                              std::size_t code_alignment) {
  const QuantizeProblem& p = plan.problem;
  const bool has_work = plan.code_bytes > 0, has_numbers = p.rows > 0 && p.cols > 0;
  kChecks.address_if(has_numbers, "in", a.in, static_cast<std::size_t>(bits_per_elem(p.dtype) / 8));
  kChecks.address_if(has_numbers && p.has_row_index, "row_index", a.row_index, kWordAlignment);
  kChecks.address_if(has_work, "codes", a.codes, code_alignment);
  kChecks.address_if(has_work, "scales", a.scales, static_cast<std::size_t>(plan.bytes_per_scale));
  kChecks.address_if(p.has_encode_scale_address, "encode_scale", a.encode_scale, kWordAlignment);
  kChecks.address_if(a.tensor_scale != nullptr, "tensor_scale", a.tensor_scale, kWordAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

}  // namespace tilewright::ops
