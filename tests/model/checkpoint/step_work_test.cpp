// What a step has to read and compute, against figures for V4-Flash that were added up by hand.
#include "model/checkpoint/step_work.h"

#include "model/checkpoint/synthetic.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tilewright::model {
namespace {

StepShape flash(Scheme scheme, std::int64_t world) {
  return {.config = synthetic_config("flash"),
          .share = {scheme, 0, world},
          .options = {.kv = KvFormat::kFp8, .index = IndexFormat::kFp8}};
}

// Of an H200: 4.3 TB/s, 790 TFLOP/s bf16, 1600 TFLOP/s e4m3.
double floor_ms(const StepWork& work) {
  return 1e3 * std::max(work.bytes() / 4.3e12, work.fp8_flops / 1600e12 + work.bf16_flops / 790e12);
}

double decode_ms(Scheme scheme, std::int64_t world, std::int64_t batch, std::int64_t context) {
  return floor_ms(
      step_work(flash(scheme, world), {.sequences = batch, .tokens = 1, .start = context - 1}));
}

// Bytes of all weights that a token needs, of its experts and of the caches, over the rate.
TEST(StepWork, DecodeOfFlash) {
  const auto expert = Scheme::kExpertParallel, tensor = Scheme::kTensorParallel;
  EXPECT_NEAR(decode_ms(expert, 1, 1, 8192), 2.61, 0.01);
  EXPECT_NEAR(decode_ms(expert, 2, 1, 8192), 2.60, 0.01);
  EXPECT_NEAR(decode_ms(expert, 2, 8, 8192), 7.24, 0.03);
  EXPECT_NEAR(decode_ms(expert, 2, 64, 8192), 18.3, 0.1);
  EXPECT_NEAR(decode_ms(expert, 4, 64, 131072), 12.0, 0.1);
  EXPECT_NEAR(decode_ms(expert, 8, 64, 8192), 6.32, 0.05);
  EXPECT_NEAR(decode_ms(tensor, 2, 1, 1024), 1.45, 0.01);
  EXPECT_NEAR(decode_ms(tensor, 4, 1, 1024), 0.88, 0.01);
}

TEST(StepWork, CachesOfFlash) {
  const StepShape shape = flash(Scheme::kExpertParallel, 1);
  const auto megabytes = [&](std::int64_t context) {
    return step_work(shape, {.start = context - 1}).cache_bytes / 1e6;
  };
  EXPECT_NEAR(megabytes(4096), 12.7, 0.1);
  EXPECT_NEAR(megabytes(8192), 15.9, 0.1);
  EXPECT_NEAR(megabytes(131072), 112.3, 0.5);
}

TEST(StepWork, PromptOfFlash) {
  const StepShape shape = flash(Scheme::kExpertParallel, 1);
  double fp8 = 0, bf16 = 0;
  for (std::int64_t done = 0; done < 8192; done += 2048) {
    const StepWork work = step_work(shape, {.tokens = 2048, .start = done, .logit_rows = 0});
    fp8 += work.fp8_flops;
    bf16 += work.bf16_flops;
  }
  // GFLOP a token: linear layers in FP8; experts, and the plain products of compressors, indexers,
  // routers and hyper-connections, then attention and indexer.
  EXPECT_NEAR(fp8 / 8192e9, 11.71, 0.02);
  EXPECT_NEAR(bf16 / 8192e9, 12.99 + 0.53 + 0.10 + 0.09 + 0.07 + 2.04 + 0.35, 0.03);
}

// What goes to others: as docs/notes/2026-11-26-several-gpus.md has it.
TEST(StepWork, Exchanges) {
  EXPECT_EQ(step_work(flash(Scheme::kExpertParallel, 1), {.sequences = 64}).exchanged_bytes, 0);
  EXPECT_EQ(step_work(flash(Scheme::kExpertParallel, 2), {.sequences = 64}).exchanged_bytes,
            43.0 * 64 * 6 * 4096);
  EXPECT_EQ(step_work(flash(Scheme::kTensorParallel, 2), {}).exchanged_bytes, 43.0 * 12 * 4096);
}

}  // namespace
}  // namespace tilewright::model
