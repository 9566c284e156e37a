// The references on operands of a trained model, and for each mistake that hides below the noise of
// the logits that the right stage shows it: the mistake is made here, and has to differ by far more
// than the tolerance.
#include "tests/reference/dsv4_operands.h"

#include "reference/model/hyper_connection.h"
#include "reference/moe/router.h"
#include "reference/rotation/rope.h"
#include "reference/sparse_attention/indexer.h"
#include "reference/sparse_attention/sparse_attention.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

// The file is fp32; sums of a few hundred fp32 terms of magnitude 1 come out to 1e-6.
constexpr double kTolerance = 1e-5;
// What a kernel with bf16 results may be off by; a mistake must exceed it to be seen there too.
constexpr double kVisible = 1e-2;

// What the token at `position` attends, and how one may get it wrong.
struct Lists {
  int64_t window = Dsv4Operands::kWindow;
  bool has_entries = true, is_indexed = true;
  int64_t entries_late = 0;  // entries become visible that many tokens late
};

class Dsv4 : public testing::Test {
 protected:
  static const Dsv4Operands& file() {
    static const Dsv4Operands operands;
    return operands;
  }

  static Ints entry_lists(int layer, const Lists& lists, const Ints& positions) {
    const int64_t ratio = layer == 1 ? 4 : 128;
    const auto selected = layer == 1 ? file().ints(1, "idx_selected") : Ints();
    const int64_t width = layer == 1 && lists.is_indexed ? 32 : 50;
    Ints indices;
    for (const int32_t p : positions) {
      const int64_t seen = visible_entries(p - lists.entries_late, ratio);
      for (int32_t j = 0; j < width; ++j) {
        const int32_t entry = layer == 1 && lists.is_indexed ? selected[p * 32 + j] : j;
        indices.push_back(entry < seen ? entry : -1);
      }
    }
    return indices;
  }

  static SparseAttentionResult attend(int layer, const Lists& lists = {}, bool has_sink = true) {
    const Ints positions = file().positions();
    const Doubles window = file().rows(layer, "kv");
    const Ints near = window_indices(positions, lists.window);
    const Doubles sink = has_sink ? file().doubles(layer, "attn.attn_sink") : Doubles();
    const SparseAttentionParams params{.queries = static_cast<int64_t>(positions.size()),
                                       .heads = Dsv4Operands::kHeads,
                                       .sink = sink};
    SparseKeys compressed;
    Doubles rows;
    Ints entries;
    if (layer > 0 && lists.has_entries) {
      rows = file().rows(layer, "comp");
      entries = entry_lists(layer, lists, positions);
      compressed = {.rows = rows,
                    .indices = entries,
                    .topk = static_cast<int64_t>(entries.size() / positions.size())};
    }
    return sparse_attention(params, file().doubles(layer, "q"),
                            {.rows = window, .indices = near, .topk = lists.window}, compressed);
  }

  // How far lse and output of a wrong attention are from the right ones.
  static double lse_error(int layer, const Lists& lists) {
    return largest_difference(attend(layer, lists).lse, file().doubles(layer, "lse"));
  }
};

TEST_F(Dsv4, AttentionOfEveryKindOfLayer) {
  for (const int layer : {0, 1, 2}) {
    SCOPED_TRACE(layer);
    const auto result = attend(layer);
    EXPECT_LT(largest_difference(result.lse, file().doubles(layer, "lse")), kTolerance);
    EXPECT_LT(largest_difference(result.out, file().doubles(layer, "attn_o")), kTolerance);
  }
}

TEST_F(Dsv4, LseShowsAWindowOf127) {
  // How much one key of 128 weighs depends on the layer; lse of the float64 model shows it in all.
  double most = 0;
  for (const int layer : {0, 1, 2}) {
    const double error = lse_error(layer, {.window = 127});
    EXPECT_GT(error, 10 * kTolerance) << layer;
    most = std::max(most, error);
  }
  EXPECT_GT(most, 1e-3) << "a kernel's lse is good to 8 / 65536 of its value";
}

TEST_F(Dsv4, LseShowsTheNewestEntryOneTokenLate) {
  // Positions 3, 127 and 199 complete a group of 4; 127 one of 128.
  EXPECT_GT(lse_error(1, {.entries_late = 1}), kVisible);
  EXPECT_GT(lse_error(2, {.entries_late = 1}), kVisible);
}

TEST_F(Dsv4, LseShowsMissingEntriesAndAnIgnoredIndexer) {
  EXPECT_GT(lse_error(1, {.has_entries = false}), kVisible);
  EXPECT_GT(lse_error(2, {.has_entries = false}), kVisible);
  EXPECT_GT(lse_error(1, {.is_indexed = false}), 1e-3);
}

TEST_F(Dsv4, OutputShowsAMissingSink) {
  for (const int layer : {0, 1, 2}) {
    const auto result = attend(layer, {}, false);
    EXPECT_LT(largest_difference(result.lse, file().doubles(layer, "lse")), kTolerance)
        << "lse is without the sink";
    EXPECT_GT(largest_difference(result.out, file().doubles(layer, "attn_o")), kVisible) << layer;
  }
}

TEST_F(Dsv4, RotationOfTheOutput) {
  const Ints positions = file().positions();
  for (const int layer : {0, 1, 2}) {
    SCOPED_TRACE(layer);
    const Doubles o = file().doubles(layer, "attn_o");
    const auto turned = [&](const Doubles& frequencies, RopeDirection direction) {
      const Doubles all = rope({.tokens = static_cast<int64_t>(positions.size()),
                                .heads = 8,
                                .head_dim = 512,
                                .rotary_dim = 64,
                                .direction = direction},
                               o, positions, frequencies);
      Doubles last;
      for (size_t row = 0; row < all.size() / 512; ++row)
        last.insert(last.end(), all.begin() + row * 512 + 448, all.begin() + (row + 1) * 512);
      return largest_difference(last, file().doubles(layer, "attn_o_inv_rope"));
    };
    const Doubles plain = rope_frequencies(64, 1e4);
    const Doubles extended = yarn_frequencies(64, 1.6e5);
    const Doubles& right = layer == 0 ? plain : extended;
    EXPECT_LT(turned(right, RopeDirection::kInverse), kTolerance);
    EXPECT_GT(turned(right, RopeDirection::kForward), kVisible) << "not the inverse";
    EXPECT_GT(turned(layer == 0 ? extended : plain, RopeDirection::kInverse), kVisible)
        << "the other theta";
    EXPECT_GT(turned(Doubles(32, 0.0), RopeDirection::kInverse), kVisible) << "not rotated";
    if (layer > 0) {
      // Without YaRN the slow pairs turn by 0.05 rad more at position 199.
      EXPECT_GT(turned(rope_frequencies(64, 1.6e5), RopeDirection::kInverse), 1e-3) << "no YaRN";
    }
  }
}

// The first 32 of the 64 rotated dimensions paired with the last 32, as other models do.
TEST_F(Dsv4, HalvesAreNotPairs) {
  const Doubles o = file().doubles(0, "attn_o"), right = file().doubles(0, "attn_o_inv_rope");
  const Doubles frequencies = rope_frequencies(64, 1e4);
  double most = 0;
  for (size_t row = 0; row < o.size() / 512; ++row) {
    const double position = file().positions()[row / 8];
    for (size_t i = 0; i < 32; ++i) {
      const double angle = -position * frequencies[i];
      const double wrong =
          o[row * 512 + 448 + i] * std::cos(angle) - o[row * 512 + 480 + i] * std::sin(angle);
      most = std::max(most, std::abs(wrong - right[row * 64 + i]));
    }
  }
  EXPECT_GT(most, kVisible);
}

// Queries are normalised head by head, without a weight; rotation keeps their length.
TEST_F(Dsv4, QueryHeadsHaveUnitRms) {
  for (const int layer : {0, 1, 2}) {
    const Doubles q = file().doubles(layer, "q");
    for (size_t row = 0; row < q.size() / 512; ++row) {
      double sum = 0;
      for (size_t c = 0; c < 512; ++c) sum += q[row * 512 + c] * q[row * 512 + c];
      EXPECT_NEAR(std::sqrt(sum / 512), 1, 1e-2) << "rounded to bf16; layer " << layer;
    }
  }
}

TEST_F(Dsv4, IndexerScoresAndSelection) {
  const Ints positions = file().positions();
  const IndexerParams params{.tokens = 4, .heads = 8, .dim = 128};
  const Doubles q = file().doubles(1, "idx_q"), k = file().doubles(1, "idx_k");
  const Doubles expected = file().doubles(1, "idx_scores");
  Doubles w = file().doubles(1, "idx_w");
  Ints visible;
  for (const int32_t p : positions) visible.push_back(static_cast<int32_t>(visible_entries(p, 4)));
  const Doubles scores = indexer_scores(params, q, k, w, visible);
  EXPECT_LT(largest_difference(scores, expected), kTolerance);
  const Ints selected = indexer_select(4, scores, 32), all = file().ints(1, "idx_selected");
  for (size_t t = 0; t < positions.size(); ++t) {
    for (int64_t i = 0; i < 32; ++i)
      EXPECT_EQ(selected[t * 32 + i], all[positions[t] * 32 + i]) << positions[t];
  }
  for (double& value : w) value = std::abs(value);
  EXPECT_GT(largest_difference(indexer_scores(params, q, k, w, visible), expected), kVisible)
      << "weights without their sign";
  EXPECT_NE(indexer_select(4, indexer_scores(params, q, k, w, visible), 32), selected);
}

TEST_F(Dsv4, IndexerNeedsTheHadamardTransformOnBothSides) {
  const IndexerParams params{.tokens = 4, .heads = 8, .dim = 128};
  const Doubles q = file().doubles(1, "idx_q"), k = file().doubles(1, "idx_k");
  const Doubles w = file().doubles(1, "idx_w"), expected = file().doubles(1, "idx_scores");
  const Ints visible = {0, 1, 32, 50};  // position 3 completes the first
  const auto error = [&](const Doubles& queries, const Doubles& keys) {
    return largest_difference(indexer_scores(params, queries, keys, w, visible), expected);
  };
  // The transform is its own inverse: taking it off both sides changes nothing but rounding.
  EXPECT_LT(error(indexer_transform(128, q), indexer_transform(128, k)), kTolerance);
  EXPECT_GT(error(q, indexer_transform(128, k)), kVisible);
}

TEST_F(Dsv4, RoutingByScoreAndByTable) {
  const Ints positions = file().positions(), ids = file().input_ids();
  for (const int layer : {0, 1, 2}) {
    SCOPED_TRACE(layer);
    const Doubles scores = file().doubles(layer, "router_scores");
    const Ints chosen = file().ints(layer, "router_ids");
    const Doubles weights = file().doubles(layer, "router_weights");
    // The scores stand for the logits that give them.
    Doubles logits;
    for (const double s : scores) logits.push_back(std::log(std::expm1(s * s)));
    RouterParams params{
        .tokens = 4, .experts = 8, .topk = 2, .score = RouterScore::kSqrtSoftplus, .scale = 1.5};
    Ints tokens;
    for (const int32_t p : positions) tokens.push_back(ids[p]);
    const auto routing =
        layer == 0 ? route_by_hash(params, logits, tokens, file().ints(0, "ffn.gate.tid2eid"))
                   : route_by_score(params, logits, file().doubles(layer, "ffn.gate.bias"));
    for (size_t t = 0; t < positions.size(); ++t) {
      for (int64_t i = 0; i < 2; ++i) {
        const int32_t* first = &chosen[positions[t] * 2];
        const auto at = std::find(first, first + 2, routing.ids[t * 2 + i]) - first;
        ASSERT_LT(at, 2) << "position " << positions[t];
        EXPECT_NEAR(routing.weights[t * 2 + i], weights[positions[t] * 2 + at], kTolerance);
      }
      EXPECT_NEAR(weights[positions[t] * 2] + weights[positions[t] * 2 + 1], 1.5, 1e-6)
          << "the scaling factor is in the weights";
    }
  }
}

TEST_F(Dsv4, StreamsBeforeAndAfterTheSubLayers) {
  const HyperParams params{.tokens = 4, .streams = 4, .hidden = 256};
  for (const int layer : {1, 2}) {
    SCOPED_TRACE(layer);
    const auto mix_of = [&](const char* name) {
      const Doubles all = file().doubles(layer, name);
      HyperMix mix;
      for (size_t t = 0; t < 4; ++t) {
        const auto row = all.begin() + static_cast<std::ptrdiff_t>(t * 24);
        mix.pre.insert(mix.pre.end(), row, row + 4);
        mix.post.insert(mix.post.end(), row + 4, row + 8);
        mix.comb.insert(mix.comb.end(), row + 8, row + 24);
      }
      return mix;
    };
    const HyperMix attn = mix_of("attn_mix");
    const Doubles before = file().doubles(layer - 1, "streams");
    const Doubles f = file().doubles(layer, "attn_out"),
                  after = file().doubles(layer, "streams_mid");
    EXPECT_LT(largest_difference(hyper_post(params, before, f, attn), after), kTolerance);
    EXPECT_LT(largest_difference(
                  hyper_post(params, after, file().doubles(layer, "moe_out"), mix_of("ffn_mix")),
                  file().doubles(layer, "streams")),
              kTolerance);
    HyperMix halved = attn, transposed = attn;
    for (double& post : halved.post) post /= 2;
    for (size_t i = 0; i < transposed.comb.size(); ++i)
      transposed.comb[i] = attn.comb[i / 16 * 16 + i % 4 * 4 + i % 16 / 4];
    EXPECT_GT(largest_difference(hyper_post(params, before, f, halved), after), kVisible);
    EXPECT_GT(largest_difference(hyper_post(params, before, f, transposed), after), kVisible);
    // The last of the 20 passes divides columns, sums over the first index, by their sum + 1e-6;
    // rows come out to 2 % only.
    for (size_t i = 0; i < 16; ++i) {
      const auto first = attn.comb.begin() + static_cast<std::ptrdiff_t>(i / 4 * 16 + i % 4);
      EXPECT_NEAR(first[0] + first[4] + first[8] + first[12], 1, 2e-6);
    }
  }
}

}  // namespace
}  // namespace tilewright::reference
