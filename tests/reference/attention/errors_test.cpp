// Bad arguments of attention are refused with a message that names them.
#include "reference/attention/attention.h"
#include "tests/reference/attention/attention_inputs.h"

#include <limits>

namespace tilewright::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

class AttentionErrors : public testing::Test {
 protected:
  void expect(const std::vector<std::string>& parts) {
    expect_invalid([&] { inputs_.run(params_); }, parts);
  }
  AttentionParams params_ = causal_batch(2, 2, 3);
  AttentionInputs inputs_ = random_attention_inputs(params_);
};

TEST_F(AttentionErrors, SizesThatMakeNoSense) {
  params_.kv_heads = 3;
  expect({"heads = 4 and kv_heads = 3", "expected kv_heads to divide heads"});
  params_ = causal_batch(2, 2, 3);
  for (int64_t AttentionParams::*size :
       {&AttentionParams::heads, &AttentionParams::kv_heads, &AttentionParams::head_dim,
        &AttentionParams::v_head_dim}) {
    params_.*size = 0;
    expect({"= 0; expected at least 1"});
    params_ = causal_batch(2, 2, 3);
  }
  params_.batch = -1;
  expect({"batch = -1; expected at least 0"});
  params_ = causal_batch(2, 2, 3);
  params_.window_left = -2;
  expect({"window_left = -2; expected at least -1"});
  params_ = causal_batch(2, 2, 3);
  params_.window_right = -5;
  expect({"window_right = -5; expected at least -1"});
}

TEST_F(AttentionErrors, NumbersThatMakeNoSense) {
  for (const double softcap : {-1.0, kNan, std::numeric_limits<double>::infinity()}) {
    params_.softcap = softcap;
    expect({"softcap = ", "expected a finite value >= 0"});
  }
  params_.softcap = 0;
  params_.scale = kNan;
  expect({"scale = nan", "head_dim^-0.5"});
  params_.scale = {};
  Doubles sink = {1, 2, 3};
  params_.sink = sink;
  expect({"sink has 3 elements; expected 4 for [heads] = [4]"});
  sink = {1, 2, kNan, 4};
  params_.sink = sink;
  expect({"sink[2] is NaN"});
}

TEST_F(AttentionErrors, ArraysThatDoNotHaveTheirShape) {
  inputs_.q.pop_back();
  expect({"q has 47 elements; expected 48 for [batch, q_len, heads, head_dim] = [2, 2, 4, 3]"});
  inputs_ = random_attention_inputs(params_);
  inputs_.k.push_back(0);
  expect({"k has 37 elements; expected 36 for [batch, kv_len, kv_heads, head_dim] = [2, 3, 2, 3]"});
  inputs_ = random_attention_inputs(params_);
  inputs_.v.clear();
  expect({"v has 0 elements; expected 60"});
  params_.q_len = -1;
  expect({"q cannot have the shape", "[2, -1, 4, 3]"});
}

TEST_F(AttentionErrors, CuSeqlens) {
  Ints cu = {0, 2};
  params_.cu_seqlens_q = cu;
  expect({"cu_seqlens_q has 2 elements; expected 3 for [batch + 1] = [3]"});
  cu = {1, 2, 4};
  params_.cu_seqlens_q = cu;
  expect({"cu_seqlens_q runs from 1 to 4; expected 0 to 4"});
  cu = {0, 2, 3};
  expect({"cu_seqlens_q runs from 0 to 3; expected 0 to 4"});
  cu = {0, 5, 4};
  expect({"cu_seqlens_q[1] = 5 is followed by 4; expected values that never fall"});
  inputs_.q.pop_back();
  expect({"q has 47 elements", "[total_q, heads, head_dim]"});
}

TEST_F(AttentionErrors, PackedKeys) {
  Ints cu = {0, 7, 6};
  params_.cu_seqlens_kv = cu;
  expect({"cu_seqlens_kv[1] = 7 is followed by 6"});
  cu = {0, 3, 5};
  expect({"cu_seqlens_kv runs from 0 to 5; expected 0 to 6"});
  inputs_.v.pop_back();
  expect({"v has 59 elements", "[total_kv, kv_heads, v_head_dim]"});
}

TEST_F(AttentionErrors, Lengths) {
  Ints kv_lens = {1, 4};
  params_.kv_lens = kv_lens;
  expect({"sequence 1 uses 4 keys; expected 0 to 3", "Correct kv_lens"});
  kv_lens = {-1, 3};
  expect({"sequence 0 uses -1 keys"});
  kv_lens = {1, 2, 3};
  params_.kv_lens = kv_lens;
  expect({"kv_lens has 3 elements; expected 2 for [batch]"});
}

TEST_F(AttentionErrors, Pages) {
  Ints table = {0, 1, 2, 0};
  params_.page_table = table;
  expect({"page_size = 0 and page_table has 4 entries; expected both or neither"});
  params_.page_size = 2;  // 6 rows of k and v are 3 pages
  EXPECT_NO_THROW(inputs_.run(params_));
  table[2] = 3;
  expect({"page_table[1, 0] = 3; expected 0 to 2", "sequence 1 uses 3 keys"});
  table[2] = -1;
  expect({"page_table[1, 0] = -1"});
  params_.kv_len = 5;
  expect({"sequence 0 uses 5 keys; expected 0 to 4", "Correct kv_len,"});
  params_.page_table = std::span(table).first(3);
  expect({"page_table has 3 entries for batch = 2"});
  params_.batch = 0;
  expect({"page_table has 3 entries for batch = 0"});
  params_.page_table = {};
  expect({"page_size = 2 and page_table has 0 entries"});
}

TEST_F(AttentionErrors, PagedKeysThatAreNotWholePages) {
  const Ints table = {0, 0};
  params_.page_table = table;
  params_.page_size = 4;  // 6 rows are one page and a half
  expect({"k has 36 elements; expected 24 for [num_pages, page_size, kv_heads, head_dim]"});
  const Ints cu = {0, 3, 6};
  params_.cu_seqlens_kv = cu;
  expect({"page_table and cu_seqlens_kv are both given"});
}

}  // namespace
}  // namespace tilewright::reference
