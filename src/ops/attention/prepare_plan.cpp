// What preparing e4m3 operands takes: checks, sizes, launches, and how the plan reads.
#include "ops/attention/prepare.h"
#include "ops/attention/problem.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr ArgumentChecks kChecks("attention prepare");
constexpr std::int64_t kAmaxAlignment = 64;  // words: each operand's has lines of its own

// The members that both problems have: sizes, type and strides of q, k and v.
template <class To, class From>
To operands_of(const From& p) {
  return {.dtype = p.dtype,
          .batch = p.batch,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .q_len = p.q_len,
          .kv_len = p.kv_len,
          .head_dim = p.head_dim,
          .is_packed = p.is_packed,
          .total_q = p.total_q,
          .total_kv = p.total_kv,
          .q_strides = p.q_strides,
          .k_strides = p.k_strides,
          .v_strides = p.v_strides};
}

// The operands as attention of 16 bits would have them: its rules are these.
AttentionProblem source_problem(const AttentionPrepareProblem& p) {
  return operands_of<AttentionProblem>(p);
}

void complete_rope(ProblemChecks& checks, AttentionPrepareProblem& p) {
  if (p.rope == RotaryPairs::kNone) return;
  if (p.rotary_dim == 0) p.rotary_dim = p.head_dim;
  checks
      .expect(p.rotary_dim == p.head_dim || 2 * p.rotary_dim == p.head_dim, "rotary_dim",
              p.rotary_dim, "head_dim = {} or half of it", p.head_dim)
      .remedy("Rotate before, or give angles of 0 to the other pairs.");
  checks.range("rope_positions", p.rope_positions, 1);
}

void complete_operands(ProblemChecks& checks, AttentionPrepareProblem& p) {
  const bool has_dtype = bool(checks
                                  .expect(p.dtype == DType::kBF16 || p.dtype == DType::kF16,
                                          "dtype", p.dtype, "BF16 or F16")
                                  .remedy("Convert first."));
  const bool has_head_dim =
      bool(checks
               .expect(p.head_dim == 64 || p.head_dim == 128 || p.head_dim == 256, "head_dim",
                       p.head_dim, "64, 128 or 256")
               .remedy("Pad with zeros."));
  AttentionProblem source = source_problem(p);
  // What was noted is not noted again.
  if (!has_dtype) source.dtype = DType::kBF16;
  if (!has_head_dim) source.head_dim = 64;
  source = complete_attention_problem(checks, source);
  if (!checks.is_fine()) return;
  p.total_q = source.total_q;
  p.total_kv = source.total_kv;
  p.q_strides = source.q_strides;
  p.k_strides = source.k_strides;
  p.v_strides = source.v_strides;
  AttentionProblem target = prepared_problem(p);
  target.q_strides = p.q8_strides;
  target.k_strides = p.k8_strides;
  target.v_strides = p.v8_strides;
  target = complete_attention_problem(checks, target, {"q8", "k8", "v8"});
  p.q8_strides = target.q_strides;
  p.k8_strides = target.k_strides;
  p.v8_strides = target.v_strides;
}

AttentionPrepareProblem complete(const AttentionPrepareProblem& problem) {
  ProblemChecks checks("attention prepare");
  AttentionPrepareProblem p = problem;
  checks.expect(p.scales == ScaleSharing::kTensor || p.scales == ScaleSharing::kHead ||
                    p.scales == ScaleSharing::kBlock,
                "scales", p.scales, "tensor, head or block");
  complete_rope(checks, p);
  complete_operands(checks, p);
  checks.finish();
  return p;
}

kernels::K8Scales to_kernel(ScaleSharing sharing) {
  if (sharing == ScaleSharing::kTensor) return kernels::K8Scales::kTensor;
  return sharing == ScaleSharing::kHead ? kernels::K8Scales::kHead : kernels::K8Scales::kBlock;
}

bool has_blocks(const AttentionPrepareProblem& p) {
  return p.scales == ScaleSharing::kBlock;
}
bool has_columns(const AttentionPrepareProblem& p) {
  return p.v_layout == Fp8ValueLayout::kColumns;
}

std::int64_t num_tiles(const AttentionPrepareProblem& p, std::int64_t rows, bool is_transposed) {
  // Columns up to the next packed sequence are zeros that the kernel has to write.
  constexpr std::int64_t kMostZeros = 3 * 16;
  if (is_transposed && p.is_packed) rows += kMostZeros;
  return std::max<std::int64_t>(ceil_div(rows, kernels::kK8TileRows), 1);
}

kernels::K8Operand operand_numbers(const AttentionPrepareProblem& p, bool is_query, bool is_value) {
  const auto strides = [](const Strides& s) {
    return kernels::AttentionStrides{s.batch, s.row, s.head};
  };
  const std::int64_t rows = is_query ? p.q_len : p.kv_len;
  const bool is_rotated = p.is_rotated && !is_value;
  const double norm = is_rotated ? 1 / std::sqrt(static_cast<double>(p.head_dim)) : 1;
  kernels::K8Operand o = {};
  o.in_strides = strides(is_query ? p.q_strides : is_value ? p.v_strides : p.k_strides);
  o.out_strides = strides(is_query ? p.q8_strides : is_value ? p.v8_strides : p.k8_strides);
  o.heads = narrow(is_query ? p.heads : p.kv_heads);
  o.rows = narrow(rows);
  o.block_rows = is_query ? kernels::kQueryScaleBlock : kernels::kKeyScaleBlock;
  o.blocks = narrow(std::max<std::int64_t>(ceil_div(rows, o.block_rows), 1));
  o.descale_factor = static_cast<float>(norm / kernels::kK8MaxCode);
  o.is_pow2 = is_value && has_blocks(p) ? 1 : 0;
  o.is_rotated = is_rotated ? 1 : 0;
  o.is_turned = p.rope != RotaryPairs::kNone && !is_value ? 1 : 0;
  o.is_transposed = is_value && has_columns(p) ? 1 : 0;
  if (o.is_transposed != 0) o.columns = attention_value_columns(prepared_problem(p));
  o.tiles = narrow(num_tiles(p, rows, o.is_transposed != 0));
  o.other_rows = narrow(p.kv_len);
  return o;
}

std::size_t num_descales(const AttentionPrepareProblem& p, const kernels::K8Operand& o) {
  if (p.scales == ScaleSharing::kTensor) return 1;
  const std::int64_t of_heads = p.batch * p.kv_heads;
  return static_cast<std::size_t>(has_blocks(p) ? p.batch * o.heads * o.blocks : of_heads);
}

// Bytes from the first code to behind the last.
std::size_t span_bytes(std::int64_t batch, std::int64_t rows, std::int64_t heads,
                       std::int64_t row_elems, const Strides& s) {
  if (batch * rows * heads * row_elems == 0) return 0;
  return static_cast<std::size_t>((batch - 1) * s.batch + (rows - 1) * s.row +
                                  (heads - 1) * s.head + row_elems);
}

void set_sizes(AttentionPreparePlan& plan, const kernels::K8PrepareParams& params) {
  const AttentionPrepareProblem& p = plan.problem;
  const std::int64_t batch = p.is_packed ? 1 : p.batch;
  const std::int64_t q_rows = p.is_packed ? p.total_q : p.q_len;
  const std::int64_t kv_rows = p.is_packed ? p.total_kv : p.kv_len;
  const kernels::K8Operand(&o)[3] = params.operands;
  plan.q8_bytes = span_bytes(batch, q_rows, p.heads, p.head_dim, p.q8_strides);
  plan.k8_bytes = span_bytes(batch, kv_rows, p.kv_heads, p.head_dim, p.k8_strides);
  plan.v8_bytes = has_columns(p)
                      ? span_bytes(batch, p.head_dim, p.kv_heads, o[2].columns, p.v8_strides)
                      : span_bytes(batch, kv_rows, p.kv_heads, p.head_dim, p.v8_strides);
  plan.num_q_descales = num_descales(p, o[0]);
  plan.num_k_descales = num_descales(p, o[1]);
  plan.num_v_descales = num_descales(p, o[2]);
  if (has_blocks(p)) plan.num_v_descale_max = static_cast<std::size_t>(p.batch * p.kv_heads);
  const double elems = static_cast<double>(p.head_dim) *
                       (static_cast<double>(p.total_q) * static_cast<double>(p.heads) +
                        2 * static_cast<double>(p.total_kv) * static_cast<double>(p.kv_heads));
  plan.bytes = elems * (has_blocks(p) ? 3 : 5);
}

// Runs that are long spare loading angles, many of them deal the work evenly.
std::uint32_t find_run(const AttentionPreparePlan& plan, std::int64_t parts) {
  const bool has_rope = plan.problem.rope != RotaryPairs::kNone;
  if (plan.launches.empty() ||
      !kernels::k8_holds_angles(static_cast<int>(plan.problem.head_dim), has_rope))
    return 1;
  constexpr std::int64_t kLeastRuns = 4;
  const std::int64_t ctas = plan.launches[0].grid[0];
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(parts / (kLeastRuns * ctas), 1, kernels::kK8MostRun));
}

std::string entry_name(const AttentionPrepareProblem& p, const char* pass) {
  return fmt::format("attention_k8_{}_{}_d{}{}", pass, attention_type_name(p.dtype), p.head_dim,
                     p.rope != RotaryPairs::kNone ? "_rope" : "");
}

std::vector<PlanNote> notes_of(const AttentionPrepareProblem& p) {
  const char* const scales = has_blocks(p) ? "block of tokens" : tilewright::to_string(p.scales);
  constexpr const char* kRope[] = {"", ", RoPE of neighbours", ", RoPE of halves"};
  return {
      {"prepare",
       fmt::format("{} to e4m3, batch {}, heads {}/{}, queries {}, keys {}, head_dim {}{}",
                   attention_type_name(p.dtype), p.batch, p.heads, p.kv_heads, p.q_len, p.kv_len,
                   p.head_dim, p.is_packed ? ", packed" : "")},
      {"e4m3",
       fmt::format("{}a scale per {}, values in {}{}", p.is_rotated ? "q and k rotated, " : "",
                   scales, has_columns(p) ? "columns" : "rows", kRope[static_cast<int>(p.rope)])}};
}

}  // namespace

AttentionProblem prepared_problem(const AttentionPrepareProblem& p) {
  AttentionProblem out = source_problem(p);
  out.dtype = DType::kF8_E4M3;
  out.q_strides = out.k_strides = out.v_strides = {};
  out.fp8.scales = p.scales;
  out.fp8.v_layout = p.v_layout;
  return out;
}

kernels::K8PrepareParams attention_prepare_numbers(const AttentionPreparePlan& plan) {
  const AttentionPrepareProblem& p = plan.problem;
  kernels::K8PrepareParams params = {};
  std::int64_t parts = 0;
  for (int i = 0; i < 3; ++i) {
    kernels::K8Operand& o = params.operands[i];
    o = operand_numbers(p, i == 0, i == 2);
    o.first_part = static_cast<std::uint32_t>(parts);
    parts += p.batch * o.tiles * o.heads;
    kChecks.check(
        parts <= std::numeric_limits<std::int32_t>::max(),
        "batch = {}, heads = {} and {} and lengths {} and {} have more than 2^31 tiles of "
        "{} tokens; split the batch",
        p.batch, p.heads, p.kv_heads, p.q_len, p.kv_len, kernels::kK8TileRows);
  }
  const std::vector<float> signs = attention_signs(p.sign_seed, p.head_dim);
  for (std::size_t i = 0; i < signs.size(); ++i)
    params.signs[i / 32] |= (signs[i] < 0 ? 1u : 0u) << (i % 32);
  params.scales = to_kernel(p.scales);
  params.rope_pairs = static_cast<kernels::K8Rope>(p.rope);
  params.rotary_dim = static_cast<std::int32_t>(p.rotary_dim);
  params.num_positions = static_cast<std::int32_t>(p.rope_positions);
  params.batch = static_cast<std::int32_t>(p.batch);
  params.kv_heads = static_cast<std::int32_t>(p.kv_heads);
  params.num_parts = static_cast<std::uint32_t>(parts);
  params.run = find_run(plan, parts);
  return params;
}

AttentionPreparePlan make_attention_prepare_plan(const device::DeviceInfo& device,
                                                 const AttentionPrepareProblem& problem) {
  AttentionPreparePlan plan;
  plan.problem = complete(problem);
  const AttentionPrepareProblem& p = plan.problem;
  plan.notes = notes_of(p);
  const kernels::K8PrepareParams params = attention_prepare_numbers(plan);
  set_sizes(plan, params);
  if (p.batch == 0) return plan;
  const auto head_dim = static_cast<int>(p.head_dim);
  const bool has_rope = p.rope != RotaryPairs::kNone;
  const std::int64_t ctas =
      std::int64_t{device.num_sms} * kernels::k8_form(head_dim, has_rope).ctas_per_sm;
  const auto grid = static_cast<std::uint32_t>(std::min<std::int64_t>(params.num_parts, ctas));
  const auto threads = static_cast<std::uint32_t>(kernels::k8_threads(head_dim, has_rope));
  Launch launch = {
      .step = "prepare",
      .entry = entry_name(p, "prepare"),
      .grid = {grid, 1, 1},
      .block = {threads, 1, 1},
      .shared_bytes = static_cast<std::uint32_t>(kernels::k8_shared_bytes(head_dim, has_rope))};
  if (!has_blocks(p)) {
    Launch amax = launch;
    amax.step = "amax";
    amax.entry = entry_name(p, "amax");
    plan.launches.push_back(amax);
    const auto words = static_cast<std::int64_t>(plan.num_v_descales);
    plan.workspace_bytes =
        static_cast<std::size_t>(3 * 4 * kAmaxAlignment * ceil_div(words, kAmaxAlignment));
  }
  plan.launches.push_back(launch);
  require_built("attention prepare", device, plan.launches);
  return plan;
}

}  // namespace tilewright::ops

namespace tilewright {

AttentionPrepareProblem prepare_problem(const AttentionProblem& p, const Fp8Options& options,
                                        bool is_rotated) {
  auto out = ops::operands_of<AttentionPrepareProblem>(p);
  out.scales = options.scales;
  out.v_layout = options.v_layout;
  out.is_rotated = is_rotated;
  return out;
}

AttentionProblem prepared_problem(const AttentionProblem& problem, const Fp8Options& options) {
  AttentionProblem p = problem;
  p.out_dtype = ops::attention_out_dtype(problem);
  p.dtype = DType::kF8_E4M3;
  p.fp8 = options;
  p.q_strides = p.k_strides = p.v_strides = {};
  return p;
}

std::vector<float> attention_signs(std::uint64_t seed, std::int64_t head_dim) {
  std::vector<float> signs;
  std::uint64_t state = seed, bits = 0;
  for (std::int64_t i = 0; i < head_dim; ++i) {
    if (i % 64 == 0) {  // splitmix64
      bits = state += 0x9e3779b97f4a7c15;
      bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
      bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
      bits ^= bits >> 31;
    }
    signs.push_back((bits >> (i % 64) & 1) != 0 ? -1.0f : 1.0f);
  }
  return signs;
}

}  // namespace tilewright
