// The prepare operator on every device: bytes of codes and scales against the reference.
#include "tests/ops/attention_prepare_case.h"
#include "tests/ops/operator_test.h"

#include <limits>

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

class AttentionPrepareTest : public ChipTest<AttentionPrepareTest> {
 protected:
  static void check(const AttentionPrepareProblem& problem) {
    PrepareCase(*device_, problem).check();
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionPrepareTest);

// 150 keys have two blocks of keys, 70 queries two of queries.
const AttentionPrepareProblem kSmall = {
    .batch = 2, .heads = 4, .kv_heads = 2, .q_len = 70, .kv_len = 150, .head_dim = 64};

AttentionPrepareProblem with(AttentionPrepareProblem p, auto change) {
  change(p);
  return p;
}

TEST_P(AttentionPrepareTest, EveryHeadDimAndKindOfScale) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
      SCOPED_TRACE(fmt::format("head_dim {}, scales {}", head_dim, static_cast<int>(scales)));
      check(with(kSmall, [&](auto& p) { p.head_dim = head_dim, p.scales = scales; }));
    }
  }
}
TEST_P(AttentionPrepareTest, WithoutRotationAndValuesInRows) {
  check(with(kSmall, [](auto& p) { p.is_rotated = false; }));
  for (const auto scales : {ScaleSharing::kHead, ScaleSharing::kBlock})
    check(with(kSmall, [&](auto& p) { p.v_layout = Fp8ValueLayout::kRows, p.scales = scales; }));
}
TEST_P(AttentionPrepareTest, Float16) {
  check(with(kSmall, [](auto& p) { p.dtype = DType::kF16; }));
  check(with(kSmall, [](auto& p) { p.dtype = DType::kF16, p.scales = ScaleSharing::kTensor; }));
}
TEST_P(AttentionPrepareTest, OptionsCrossed) {
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
    for (const Fp8ValueLayout layout : {Fp8ValueLayout::kRows, Fp8ValueLayout::kColumns}) {
      for (const RotaryPairs rope :
           {RotaryPairs::kNone, RotaryPairs::kInterleaved, RotaryPairs::kHalves}) {
        for (const std::int64_t head_dim : {64, 128}) {
          const AttentionPrepareProblem p = with(kSmall, [&](auto& problem) {
            problem.dtype = DType::kF16, problem.q_len = 9, problem.kv_len = 20;
            problem.head_dim = head_dim, problem.scales = scales, problem.v_layout = layout;
            problem.rope = rope;
            if (rope == RotaryPairs::kNone) return;
            problem.rope_positions = 40, problem.has_positions = head_dim == 128;
          });
          SCOPED_TRACE(fmt::format("scales {}, layout {}, rope {}, head_dim {}", int(scales),
                                   int(layout), int(rope), head_dim));
          PrepareCase c(*device_, p);
          for (int i = 0; p.has_positions && i < 18; ++i)
            c.positions[0].push_back((i * 7 + 3) % 40);
          for (int i = 0; p.has_positions && i < 40; ++i) c.positions[1].push_back(i * 11 % 40);
          c.check();
        }
      }
    }
  }
}
TEST_P(AttentionPrepareTest, StridesOfPackedSequences) {
  const std::vector<std::int32_t> q_lens = {5, 0, 70, 1}, kv_lens = {30, 17, 0, 15};
  const AttentionProblem lengths = packed({}, q_lens, kv_lens).problem;
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kBlock}) {
    PrepareCase(*device_,
                with(kSmall,
                     [&](auto& p) {
                       p.batch = lengths.batch, p.q_len = lengths.q_len, p.kv_len = lengths.kv_len;
                       p.is_packed = true, p.total_q = lengths.total_q;
                       p.total_kv = lengths.total_kv, p.scales = scales;
                       p.q_strides = {0, 4 * 72, 72}, p.k_strides = {0, 200, 96};
                       p.v_layout = Fp8ValueLayout::kRows, p.v8_strides = {0, 2 * 80, 80};
                     }),
                q_lens, kv_lens)
        .check();
  }
}
TEST_P(AttentionPrepareTest, OtherSigns) {
  check(with(kSmall, [](auto& p) { p.sign_seed = 77; }));
}
TEST_P(AttentionPrepareTest, RopeOfNeighboursAndHalves) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const RotaryPairs pairs : {RotaryPairs::kInterleaved, RotaryPairs::kHalves}) {
      for (const std::int64_t rotary_dim : {head_dim, head_dim / 2}) {
        SCOPED_TRACE(fmt::format("head_dim {}, rotary_dim {}", head_dim, rotary_dim));
        check(with(kSmall, [&](auto& p) {
          p.batch = 1, p.heads = p.kv_heads = 1, p.head_dim = head_dim;
          p.rope = pairs, p.rotary_dim = rotary_dim, p.rope_positions = 150;
        }));
      }
    }
  }
}
TEST_P(AttentionPrepareTest, ListsOfPositionsAndRowsWithoutAngles) {
  PrepareCase c(*device_, with(kSmall, [](auto& p) {
    p.rope = RotaryPairs::kHalves, p.rope_positions = 40, p.has_positions = true;
  }));
  for (int i = 0; i < 140; ++i) c.positions[0].push_back((i * 7 + 3) % 40);
  for (int i = 0; i < 300; ++i) c.positions[1].push_back(i * 11 % 40);
  c.positions[0][5] = 40;    // behind the table
  c.positions[1][200] = -1;  // of the second sequence
  c.check();
  EXPECT_TRUE(std::isnan(c.tensor(0).expected.descale[0]));
}
TEST_P(AttentionPrepareTest, NanAndInfinitySpoilTheirBlockAlone) {
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
    for (const Fp8ValueLayout layout : {Fp8ValueLayout::kRows, Fp8ValueLayout::kColumns}) {
      PrepareCase c(*device_,
                    with(kSmall, [&](auto& p) { p.scales = scales, p.v_layout = layout; }));
      c.tensor(0).numbers[3] = std::numeric_limits<float>::infinity();
      c.tensor(2).numbers[40] = std::numeric_limits<float>::quiet_NaN();
      c.check();
      EXPECT_TRUE(std::isnan(c.tensor(0).expected.descale[0]));
      if (scales == ScaleSharing::kBlock) {
        EXPECT_FALSE(std::isnan(c.tensor(0).expected.descale[1]));
      }
    }
  }
}
TEST_P(AttentionPrepareTest, ZerosAndNumbersThatAreTooSmall) {
  PrepareCase c(*device_, kSmall);
  for (int i = 0; i < 3; ++i)
    for (float& x : c.tensor(i).numbers) x = i == 1 ? 0x1p-126f : 0.0f;
  c.check();
}
TEST_P(AttentionPrepareTest, OneTokenAndNone) {
  check(with(kSmall, [](auto& p) { p.q_len = p.kv_len = 1; }));
  check(with(kSmall, [](auto& p) { p.q_len = 0; }));
  check(with(kSmall, [](auto& p) { p.kv_len = 0; }));
  check(with(kSmall, [](auto& p) { p.q_len = p.kv_len = 0, p.scales = ScaleSharing::kTensor; }));
}
TEST_P(AttentionPrepareTest, WholeTilesAndOneMore) {
  for (const std::int64_t len : {128, 129, 256})
    check(with(kSmall, [&](auto& p) { p.batch = 1, p.q_len = len, p.kv_len = len; }));
}
TEST_P(AttentionPrepareTest, PackedSequencesOfEveryLength) {
  const std::vector<std::int32_t> q_lens = {5, 0, 70, 128, 1}, kv_lens = {130, 17, 0, 128, 15};
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
    for (const Fp8ValueLayout layout : {Fp8ValueLayout::kRows, Fp8ValueLayout::kColumns}) {
      SCOPED_TRACE(fmt::format("scales {}, layout {}", int(scales), int(layout)));
      const AttentionProblem lengths = packed({}, q_lens, kv_lens).problem;
      PrepareCase(
          *device_,
          with(kSmall,
               [&](auto& p) {
                 p.batch = lengths.batch, p.q_len = lengths.q_len, p.kv_len = lengths.kv_len;
                 p.is_packed = true, p.total_q = lengths.total_q, p.total_kv = lengths.total_kv;
                 p.scales = scales, p.v_layout = layout;
                 p.rope = RotaryPairs::kHalves, p.rope_positions = 130;
               }),
          q_lens, kv_lens)
          .check();
    }
  }
}
TEST_P(AttentionPrepareTest, StridesOfOperandsAndCodes) {
  check(with(kSmall, [](auto& p) {
    p.q_strides = {70 * 4 * 64 + 8, 64, 70 * 64};  // heads first, a gap between batches
    p.k_strides = {150 * 200, 200, 96};
    p.q8_strides = {70 * 4 * 64 + 16, 64, 70 * 64};
    p.k8_strides = {150 * 160, 160, 80};
    p.v_layout = Fp8ValueLayout::kRows;
    p.v8_strides = {150 * 2 * 80, 2 * 80, 80};
  }));
}
TEST_P(AttentionPrepareTest, MorePartsThanTheGridHasCtas) {
  const AttentionPrepareProblem many = {
      .batch = 1, .heads = 700, .kv_heads = 1, .q_len = 2, .kv_len = 3, .head_dim = 64};
  check(many);
  check(with(many, [](auto& p) { p.kv_heads = 70, p.scales = ScaleSharing::kHead; }));
}
TEST_P(AttentionPrepareTest, AnglesOfManyHeads) {
  check({.batch = 1,
         .heads = 1000,
         .kv_heads = 100,
         .q_len = 130,
         .kv_len = 3,
         .head_dim = 64,
         .rope = RotaryPairs::kHalves,
         .rope_positions = 200});
}

TEST_P(AttentionPrepareTest, SaysWhatIsWrong) {
  using reference::expect_invalid;
  const auto fails = [&](auto change, const std::vector<std::string>& parts) {
    expect_invalid([&] { plan_attention_prepare(*device_, with(kSmall, change)); }, parts);
  };
  fails([](auto& p) { p.head_dim = 96; }, {"head_dim = 96", "64, 128 or 256"});
  fails([](auto& p) { p.dtype = DType::kF32; }, {"dtype = F32"});
  fails([](auto& p) { p.rope = RotaryPairs::kHalves, p.rotary_dim = 16, p.rope_positions = 5; },
        {"rotary_dim = 16", "half of it"});
  fails([](auto& p) { p.rope = RotaryPairs::kHalves; }, {"rope_positions = 0"});
  fails([](auto& p) { p.q8_strides = {8, 8, 8}; }, {"q8_strides.row = 8", "multiple of 16"});
  const AttentionPrepare prepare(*device_, kSmall);
  expect_invalid([&] { prepare.run({}); }, {"the address of q is null"});
}

}  // namespace
}  // namespace tilewright::ops
