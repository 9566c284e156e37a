#include "model/checkpoint/synthetic.h"

#include "base/error.h"
#include "tests/model/checkpoint/narrow.h"
#include "tests/ops/operator_test.h"

#include <gtest/gtest.h>

namespace tilewright::model {
namespace {

class SyntheticWeightsTest : public ChipTest<SyntheticWeightsTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, SyntheticWeightsTest, ::testing::Values("sim:h200"),
                         [](const auto&) { return "h200"; });

TEST_P(SyntheticWeightsTest, KernelsAndFloat64AgreeOnThem) {
  const auto weights = synthetic_weights({.config = narrow_config()});
  EXPECT_LT(kl_of(*device_, weights), kLargestKl);
}

TEST(SyntheticWeights, AreTheSharesOfAReleaseInSize) {
  const Config config = small_config("flash");
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    const Share share = {scheme, 1, 2};
    const auto weights = synthetic_weights({.config = config, .share = share, .has_drafts = true});
    EXPECT_EQ(weights->expert_format(), "mxfp4");
    const LocalSizes local = local_sizes(share, config);
    EXPECT_EQ(std::ssize(weights->layers[0].ffn.experts), local.experts.count);
    EXPECT_EQ(weights->layers[0].ffn.experts[0].down.cols, local.inter);
    EXPECT_EQ(weights->layers[0].attn.wq_b.rows, local.heads * config.head_dim);
    // One of each on the host.
    EXPECT_EQ(weights->layers[0].ffn.experts[0].up.codes.data,
              weights->layers[3].ffn.experts[1].up.codes.data);
    EXPECT_NE(weights->layers[0].ffn.experts[0].up.codes.data,
              weights->layers[0].ffn.experts[0].gate.codes.data);
  }
  EXPECT_EQ(synthetic_config("pro", 7).num_layers(), 7);
  EXPECT_THROW(synthetic_config("flash", 44), Error);
  EXPECT_THROW(synthetic_config("nano"), Error);
}

}  // namespace
}  // namespace tilewright::model
