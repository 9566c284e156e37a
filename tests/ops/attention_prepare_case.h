// One call of the prepare operator on random tensors, byte for byte against its reference.
#pragma once

#include "tilewright/attention_prepare.h"

#include "device/internal.h"
#include "reference/attention/prepare.h"
#include "tests/ops/attention_case.h"

#include <array>

namespace tilewright::ops {

/// One of q, k, v: numbers on the host, what they should become, and both on the device.
struct PreparedTensor {
  StridedTensor shape;
  std::vector<float> numbers;  ///< contiguous
  reference::AttentionPrepareParams params;
  reference::Fp8Operand expected;
};

class PrepareCase {
 public:
  PrepareCase(const Device& device, AttentionPrepareProblem problem,
              std::vector<std::int32_t> q_lens = {}, std::vector<std::int32_t> kv_lens = {})
      : device_(device),
        prepare_(device, problem),
        cu_q_(running_sums(q_lens)),
        cu_kv_(running_sums(kv_lens)),
        signs_(attention_signs(problem.sign_seed, problem.head_dim)) {
    const AttentionPrepareProblem& p = this->problem();
    if (p.rope != RotaryPairs::kNone) draw_angles();
    make(0, p.heads, p.is_packed ? p.total_q : p.q_len, p.q_strides);
    make(1, p.kv_heads, p.is_packed ? p.total_kv : p.kv_len, p.k_strides);
    make(2, p.kv_heads, p.is_packed ? p.total_kv : p.kv_len, p.v_strides);
  }

  const AttentionPrepareProblem& problem() const { return prepare_.plan().problem; }
  PreparedTensor& tensor(int i) { return tensors_[static_cast<std::size_t>(i)]; }
  std::span<const std::int32_t> cu_q() const { return cu_q_; }
  std::span<const std::int32_t> cu_kv() const { return cu_kv_; }

  /// Lists of positions, of rows of q and of k.
  std::vector<std::int32_t> positions[2];

  /// Runs it, and compares codes and scales.
  void check() {
    const AttentionPreparePlan& plan = prepare_.plan();
    const device::Device& inner = opened(device_);
    expect();
    const Buffer in[3] = {upload(0), upload(1), upload(2)};
    const std::size_t code_bytes[3] = {plan.q8_bytes, plan.k8_bytes, plan.v8_bytes};
    const std::size_t scales[3] = {plan.num_q_descales, plan.num_k_descales, plan.num_v_descales};
    std::vector<kernels::Output<std::uint8_t>> codes;
    std::vector<kernels::Output<float>> descales;
    for (int i = 0; i < 3; ++i) {
      codes.emplace_back(inner, code_bytes[i]);
      descales.emplace_back(inner, scales[i]);
    }
    const kernels::Output<float> largest(inner, plan.num_v_descale_max);
    const Buffer cu_q = Buffer::from(inner, cu_q_), cu_kv = Buffer::from(inner, cu_kv_);
    const Buffer rope = Buffer::from(inner, angles_), workspace(inner, plan.workspace_bytes);
    const Buffer q_at = Buffer::from(inner, positions[0]), k_at = Buffer::from(inner, positions[1]);
    const device::Stream stream(inner);
    prepare_.run({.q = kernels::pointer_to<const void>(in[0]),
                  .k = kernels::pointer_to<const void>(in[1]),
                  .v = kernels::pointer_to<const void>(in[2]),
                  .q8 = codes[0].pointer(),
                  .k8 = codes[1].pointer(),
                  .v8 = codes[2].pointer(),
                  .q_descale = descales[0].pointer(),
                  .k_descale = descales[1].pointer(),
                  .v_descale = descales[2].pointer(),
                  .v_descale_max = largest.pointer(),
                  .cu_q = kernels::pointer_to<const std::int32_t>(cu_q),
                  .cu_kv = kernels::pointer_to<const std::int32_t>(cu_kv),
                  .rope = {.angles = kernels::pointer_to<const float>(rope),
                           .positions = plan.problem.rope_positions},
                  .q_positions = kernels::pointer_to<const std::int32_t>(q_at),
                  .k_positions = kernels::pointer_to<const std::int32_t>(k_at),
                  .workspace = kernels::pointer_to<void>(workspace),
                  .stream = stream.handle()});
    stream.synchronize();
    for (int i = 0; i < 3; ++i) {
      SCOPED_TRACE("qkv"[i]);
      compare_codes(i, codes[static_cast<std::size_t>(i)].read());
      compare_floats(descales[static_cast<std::size_t>(i)].read(), tensor(i).expected.descale);
    }
    if (plan.num_v_descale_max > 0) compare_floats(largest.read(), tensor(2).expected.descale_max);
  }

 private:
  const FormatSpec& format() const { return problem().dtype == DType::kF16 ? kFp16 : kBf16; }

  // cos and sin of angles that rise with position and pair.
  void draw_angles() {
    const AttentionPrepareProblem& p = problem();
    for (std::int64_t at = 0; at < p.rope_positions; ++at) {
      for (const bool is_sine : {false, true}) {
        for (std::int64_t i = 0; i < p.rotary_dim / 2; ++i) {
          const double angle = static_cast<double>(at) * std::pow(100.0, -0.1 * double(i));
          angles_.push_back(static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle)));
        }
      }
    }
  }

  void make(int i, std::int64_t heads, std::int64_t rows, const Strides& strides) {
    const AttentionPrepareProblem& p = problem();
    PreparedTensor& t = tensor(i);
    t.shape = {p.is_packed ? 1 : p.batch, rows, heads, p.head_dim, strides};
    // Magnitudes that drift from row to row, so that scales differ, and outliers.
    reference::Random random(static_cast<std::uint64_t>(i) + 11);
    for (std::int64_t e = 0; e < t.shape.num_elems(); ++e) {
      const std::int64_t row = e / p.head_dim / heads;
      double x = random.uniform(-1, 1) * (1 + 0.01 * static_cast<double>(row));
      if (random.bits() % 500 == 0) x *= 20;
      t.numbers.push_back(static_cast<float>(round_to(format(), x)));
    }
    t.params.batch = p.batch;
    t.params.heads = heads;
    t.params.kv_heads = p.kv_heads;
    t.params.rows = i == 0 ? p.q_len : p.kv_len;
    t.params.head_dim = p.head_dim;
    if (p.is_packed) t.params.cu_seqlens = i == 0 ? cu_q_ : cu_kv_;
    t.params.scales = p.scales;
    t.params.block_rows = i == 0 ? 64 : 128;
    t.params.has_pow2_scales = i == 2 && p.scales == ScaleSharing::kBlock;
    t.params.is_rotated = p.is_rotated && i < 2;
    t.params.signs = signs_;
    if (i == 2) return;
    t.params.rope = static_cast<reference::RopePairing>(p.rope);
    t.params.rotary_dim = p.rotary_dim;
  }

  void expect() {
    const AttentionPrepareProblem& p = problem();
    for (int i = 0; i < 3; ++i) {
      PreparedTensor& t = tensor(i);
      std::vector<std::int32_t> rows;
      if (i < 2 && p.rope != RotaryPairs::kNone)
        rows = p.has_positions ? positions[i] : default_positions(i);
      t.params.positions = rows;
      t.params.angles = angles_;
      t.expected = reference::prepare_attention_operand(t.params, t.numbers);
    }
  }
  std::vector<std::int32_t> default_positions(int i) const {
    const AttentionPrepareProblem& p = problem();
    std::vector<std::int32_t> rows;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto at = static_cast<std::size_t>(b);
      const std::int64_t q_len = p.is_packed ? cu_q_[at + 1] - cu_q_[at] : p.q_len;
      const std::int64_t kv_len = p.is_packed ? cu_kv_[at + 1] - cu_kv_[at] : p.kv_len;
      const std::int64_t len = i == 0 ? q_len : kv_len;
      for (std::int64_t row = 0; row < len; ++row)
        rows.push_back(static_cast<std::int32_t>(kv_len - len + row));
    }
    return rows;
  }

  Buffer upload(int i) {
    const PreparedTensor& t = tensor(i);
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(t.shape.span_elems()), 0xffff);
    for (std::size_t e = 0; e < t.numbers.size(); ++e) {
      codes[static_cast<std::size_t>(t.shape.offset(static_cast<std::int64_t>(e)))] =
          static_cast<std::uint16_t>(encode(format(), t.numbers[e]));
    }
    return Buffer::from(opened(device_), codes);
  }

  void compare_codes(int i, std::vector<std::uint8_t> got) {
    const AttentionPrepareProblem& p = problem();
    PreparedTensor& t = tensor(i);
    if (i == 2 && p.v_layout == Fp8ValueLayout::kColumns) {
      const auto columns = reference::transpose_values(t.params, t.expected.codes);
      ASSERT_EQ(got.size(), columns.size());
      for (std::size_t e = 0; e < got.size(); ++e) ASSERT_EQ(got[e], columns[e]) << "code " << e;
      return;
    }
    StridedTensor out = t.shape;
    out.strides = i == 0 ? p.q8_strides : i == 1 ? p.k8_strides : p.v8_strides;
    for (std::int64_t e = 0; e < out.num_elems(); ++e) {
      std::uint8_t& code = got[static_cast<std::size_t>(out.offset(e))];
      ASSERT_EQ(code, t.expected.codes[static_cast<std::size_t>(e)]) << "code " << e;
      code = static_cast<std::uint8_t>(Buffer::kPoison);
    }
    for (const std::uint8_t code : got)
      ASSERT_EQ(code, static_cast<std::uint8_t>(Buffer::kPoison)) << "between the rows";
  }
  static void compare_floats(const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << "scale " << i;
      } else {
        ASSERT_EQ(got[i], expected[i]) << "scale " << i;
      }
    }
  }

  const Device& device_;
  AttentionPrepare prepare_;
  std::vector<std::int32_t> cu_q_, cu_kv_;
  std::vector<float> signs_, angles_;
  std::array<PreparedTensor, 3> tensors_;
};

}  // namespace tilewright::ops
