// The shares of all ranks together are the model, each element once; reading a share reads no more.
#include "model/share.h"

#include "model/weights.h"
#include "tests/model/random_checkpoint.h"
#include "tests/model/tiny.h"

#include <memory>

namespace tilewright::model {
namespace {

using testing::HasSubstr;

std::vector<std::unique_ptr<Weights>> shares_of(const std::string& folder, Scheme scheme,
                                                std::int64_t world) {
  std::vector<std::unique_ptr<Weights>> ranks;
  for (std::int64_t r = 0; r < world; ++r)
    ranks.push_back(std::make_unique<Weights>(
        folder, WeightsOptions{.share = {.scheme = scheme, .rank = r, .world = world}}));
  return ranks;
}

// Matrices above or beside each other.
std::vector<float> stacked(const std::vector<const Matrix*>& parts) {
  std::vector<float> all;
  for (const Matrix* part : parts) {
    const auto values = read_matrix(*part);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}
std::vector<float> side_by_side(const std::vector<const Matrix*>& parts) {
  std::vector<std::vector<float>> values;
  for (const Matrix* part : parts) values.push_back(read_matrix(*part));
  std::vector<float> all;
  for (std::int64_t row = 0; row < parts[0]->rows; ++row)
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto from = values[i].begin() + row * parts[i]->cols;
      all.insert(all.end(), from, from + parts[i]->cols);
    }
  return all;
}

template <class Get>
std::vector<const Matrix*> of_ranks(const std::vector<std::unique_ptr<Weights>>& ranks, Get get) {
  std::vector<const Matrix*> parts;
  for (const auto& rank : ranks) parts.push_back(&get(*rank));
  return parts;
}

// The bundled model has NVFP4 experts, FP8 blocks of which a rank has half, and plain weights.
TEST(Share, TensorParallelPartsMakeUpTheWhole) {
  const Weights whole(kTinyModel);
  const auto ranks = shares_of(kTinyModel, Scheme::kTensorParallel, 2);
  for (std::size_t i : {0u, 1u, 2u}) {
    const auto layer = [i](const Weights& w) -> const LayerWeights& { return w.layers[i]; };
    const LayerWeights& all = whole.layers[i];
    const auto rows = [&](auto get) { return stacked(of_ranks(ranks, get)); };
    const auto columns = [&](auto get) { return side_by_side(of_ranks(ranks, get)); };
    EXPECT_EQ(rows([&](const Weights& w) -> const Matrix& { return layer(w).attn.wq_b; }),
              read_matrix(all.attn.wq_b));
    EXPECT_EQ(rows([&](const Weights& w) -> const Matrix& { return layer(w).attn.wo_a; }),
              read_matrix(all.attn.wo_a));
    EXPECT_EQ(columns([&](const Weights& w) -> const Matrix& { return layer(w).attn.wo_b; }),
              read_matrix(all.attn.wo_b));
    EXPECT_EQ(rows([&](const Weights& w) -> const Matrix& { return layer(w).ffn.shared->up; }),
              read_matrix(all.ffn.shared->up));
    EXPECT_EQ(columns([&](const Weights& w) -> const Matrix& { return layer(w).ffn.shared->down; }),
              read_matrix(all.ffn.shared->down));
    for (std::size_t e : {0u, 7u}) {
      EXPECT_EQ(
          rows([&](const Weights& w) -> const Matrix& { return layer(w).ffn.experts[e].gate; }),
          read_matrix(all.ffn.experts[e].gate));
      EXPECT_EQ(
          columns([&](const Weights& w) -> const Matrix& { return layer(w).ffn.experts[e].down; }),
          read_matrix(all.ffn.experts[e].down));
    }
    Vector sinks;
    for (const auto& rank : ranks) {
      sinks.insert(sinks.end(), layer(*rank).attn.sink.begin(), layer(*rank).attn.sink.end());
      EXPECT_EQ(read_matrix(layer(*rank).attn.wkv), read_matrix(all.attn.wkv));
      EXPECT_EQ(layer(*rank).ffn.tid2eid, all.ffn.tid2eid);
      EXPECT_EQ(layer(*rank).hc_attn.fn, all.hc_attn.fn);
    }
    EXPECT_EQ(sinks, all.attn.sink);
  }
  const auto head = [](const Weights& w) -> const Matrix& { return w.head; };
  EXPECT_EQ(stacked(of_ranks(ranks, head)), read_matrix(whole.head));
  EXPECT_EQ(read_matrix(ranks[1]->embed), read_matrix(whole.embed));
}

TEST(Share, ExpertParallelRanksHaveRunsOfExperts) {
  const Weights whole(kTinyModel);
  const auto ranks = shares_of(kTinyModel, Scheme::kExpertParallel, 3);
  std::size_t next = 0;
  for (const auto& rank : ranks) {
    const Range experts = local_sizes(rank->share(), rank->config()).experts;
    ASSERT_EQ(std::ssize(rank->layers[2].ffn.experts), experts.count);
    EXPECT_EQ(static_cast<std::size_t>(experts.first), next);
    for (const ExpertWeights& expert : rank->layers[2].ffn.experts) {
      const ExpertWeights& expected = whole.layers[2].ffn.experts[next++];
      EXPECT_EQ(expert.gate.codes.data == nullptr, false);
      EXPECT_EQ(expert.down.name, expected.down.name);
    }
    EXPECT_EQ(read_matrix(rank->layers[2].attn.wo_b), read_matrix(whole.layers[2].attn.wo_b));
  }
  EXPECT_EQ(next, 8u);
}

// Views show the share, and nothing else is touched.
TEST(Share, BytesOfRanksAddUp) {
  const Weights whole(kTinyModel);
  std::int64_t experts = 0;
  for (const LayerWeights& layer : whole.layers)
    for (const ExpertWeights& e : layer.ffn.experts)
      for (const Matrix* m : {&e.gate, &e.up, &e.down})
        experts += m->rows * m->cols / 2 + m->rows * m->cols / 16 + 4;
  for (std::int64_t world : {2, 4, 8}) {
    std::int64_t sum = 0;
    for (const auto& rank : shares_of(kTinyModel, Scheme::kExpertParallel, world))
      sum += rank->num_bytes();
    EXPECT_EQ(sum, experts + world * (whole.num_bytes() - experts)) << world;
  }
}

TEST(Share, DefaultIsTheWhole) {
  const Weights whole(kTinyModel);
  const LocalSizes sizes = local_sizes(whole.share(), whole.config());
  EXPECT_EQ(sizes.heads, 8);
  EXPECT_EQ(sizes.o_groups, 2);
  EXPECT_EQ(sizes.experts, (Range{0, 8}));
  EXPECT_EQ(sizes.vocab, (Range{0, 256}));
}

std::string refusal(const Share& share) {
  try {
    const Weights weights(kTinyModel, WeightsOptions{.share = share});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Share, WorldsThatDoNotFitAreRefusedWithThoseThatDo) {
  EXPECT_THAT(refusal({Scheme::kTensorParallel, 0, 3}),
              HasSubstr("3 ranks cannot split the tensors of this model (o_groups 2, "));
  EXPECT_THAT(refusal({Scheme::kTensorParallel, 0, 3}), HasSubstr("expected 1, 2 ranks"));
  EXPECT_THAT(refusal({Scheme::kExpertParallel, 2, 2}), HasSubstr("rank 2 of 2; expected 0 to"));
  EXPECT_THAT(refusal({Scheme::kExpertParallel, 0, 9}), HasSubstr("9 ranks share 8 experts"));
}

// Three ranks of a group of 128 rows would need a scale of their own.
TEST(Share, PartsThatCutBlocksOfScalesAreRefused) {
  const Weights whole(kTinyModel);
  const Matrix& wq_b = whole.layers[0].attn.wq_b;
  EXPECT_NO_THROW(part_of(wq_b, {{64, 64}, {0, wq_b.cols}})) << "lies in one block";
  EXPECT_NO_THROW(part_of(wq_b, {{128, wq_b.rows - 128}, {0, wq_b.cols}}));
  try {
    part_of(wq_b, {{64, 128}, {0, wq_b.cols}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows 64 to 191 of 4096 cut blocks of 128"));
  }
}

}  // namespace
}  // namespace tilewright::model
