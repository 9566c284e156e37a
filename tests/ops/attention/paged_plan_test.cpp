// What plans of attention over keys in pages, and with lengths on the device, refuse: each thing
// that is wrong is one reason, with field, value, rule and remedy. No device is opened.
#include "tilewright/reason.h"

#include "device/kernel_registry.h"
#include "ops/attention/bind.h"
#include "ops/attention/plan.h"
#include "tests/ops/gpu_infos.h"

#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

// Prompts in parts and sequences that decode: packed queries, 64 pages of 16 keys.
const AttentionProblem kPaged = {.batch = 3,
                                 .heads = 8,
                                 .kv_heads = 2,
                                 .q_len = 100,
                                 .kv_len = 300,
                                 .head_dim = 128,
                                 .causal = true,
                                 .is_packed = true,
                                 .total_q = 120,
                                 .has_kv_lengths = true,
                                 .page_size = 16,
                                 .num_pages = 64,
                                 .max_pages = 19};

using Change = std::function<void(AttentionProblem&)>;

AttentionProblem changed(AttentionProblem p, const Change& change) {
  change(p);
  return p;
}

std::vector<Reason> reasons_against(const device::DeviceInfo& device, const AttentionProblem& p,
                                    ErrorKind kind, std::string* text = nullptr) {
  try {
    make_attention_plan(device, p);
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.kind(), kind) << refusal.what();
    if (text != nullptr) *text = refusal.what();
    return refusal.reasons();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

struct BadField {
  const char* what;
  Change change;
  std::string field, value, rule, fix;
};

TEST(AttentionPagedProblem, NamesEachThingThatIsWrongOnce) {
  const BadField cases[] = {
      {"lengths", [](auto& p) { p.has_kv_lengths = false; }, "has_kv_lengths", "false",
       "true with pages: kv_lengths says how many keys each sequence has",
       "Set it, and pass kv_lengths."},
      {"negative size", [](auto& p) { p.page_size = -16; }, "page_size", "-16", "1 to 536870912",
       "0 stands for no pages."},
      {"many pages", [](auto& p) { p.num_pages = std::int64_t{1} << 31; }, "num_pages",
       "2147483648", "0 to 2147483647", "Larger pages need fewer."},
      {"few pages", [](auto& p) { p.max_pages = 18; }, "max_pages", "18",
       "at least 19, the pages of 16 that kv_len = 300 keys need", ""},
      {"chunk", [](auto& p) { p.chunk = -1; }, "chunk", "-1", "0 to 536870912",
       "0 stands for no chunks."},
      {"stride", [](auto& p) { p.table_stride = -1; }, "table_stride", "-1",
       "0 to 1152921504606846976", "0 stands for max_pages."},
      {"packed keys", [](auto& p) { p.total_kv = 900; }, "total_kv", "900",
       "0 with pages: num_pages says how many rows there are", "Leave it out."},
      {"pages without a size", [](auto& p) { p.page_size = 0, p.total_kv = 900, p.max_pages = 0; },
       "num_pages", "64", "0 without pages", "Set page_size?"},
      {"table without a size", [](auto& p) { p.page_size = 0, p.total_kv = 900, p.num_pages = 0; },
       "max_pages", "19", "0 without pages", "Set page_size?"},
  };
  for (const BadField& bad : cases) {
    SCOPED_TRACE(bad.what);
    const auto reasons =
        reasons_against(h200(), changed(kPaged, bad.change), ErrorKind::kInvalidArgument);
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_EQ(reasons[0].field, bad.field);
    EXPECT_EQ(reasons[0].value, bad.value);
    EXPECT_EQ(reasons[0].rule, bad.rule);
    EXPECT_EQ(reasons[0].fix, bad.fix);
  }
}
TEST(AttentionPagedProblem, NamesAllThatIsWrong) {
  const AttentionProblem p =
      changed(kPaged, [](auto& x) { x.has_kv_lengths = false, x.num_pages = -1, x.total_kv = 1; });
  const auto field = [](const char* name) { return Field(&Reason::field, name); };
  EXPECT_THAT(reasons_against(h200(), p, ErrorKind::kInvalidArgument),
              ElementsAre(field("total_kv"), field("num_pages"), field("has_kv_lengths")));
}

class AttentionPagedPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
  // The text, in which `reason` stands once; every kernel has one reason.
  static void expect_refused(const device::DeviceInfo& device, const AttentionProblem& p,
                             const std::string& reason, const std::string& remedy) {
    std::string text;
    const auto reasons = reasons_against(device, p, ErrorKind::kUnsupported, &text);
    const std::size_t at = text.find(reason);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_EQ(text.find(reason, at + 1), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(remedy)) << text;
    EXPECT_EQ(reasons.size(), attention_kernels_for(device.compute_capability).size());
    EXPECT_THAT(reasons, Each(Field(&Reason::field, "kernel")));
  }
};

TEST_F(AttentionPagedPlan, IsTakenByTheOneKernelForItOnBlackwell) {
  const AttentionPlan plan = make_attention_plan(b200(), kPaged);
  EXPECT_EQ(plan.kernel, "sm100_pages");
  // 2 tiles of 32 queries by 4 heads: of 120 queries one is full, and each sequence has a last one.
  EXPECT_EQ(plan.launches.at(0).grid, (std::array<std::uint32_t, 3>{1 + 3, 2, 1}));
  const AttentionProblem unpacked =
      changed(kPaged, [](auto& p) { p.is_packed = false, p.total_q = 0, p.chunk = 64; });
  EXPECT_EQ(make_attention_plan(b200(), unpacked).launches.at(0).grid,
            (std::array<std::uint32_t, 3>{3 * 2, 2, 1}));
  const AttentionProblem plain =
      changed(unpacked, [](auto& p) { p.page_size = p.num_pages = p.max_pages = 0, p.chunk = 0; });
  EXPECT_EQ(make_attention_plan(b200(), plain).kernel, "sm100_pages") << "lengths on the device";
  EXPECT_THAT(
      make_attention_plan(b200(), changed(plain, [](auto& p) { p.has_kv_lengths = false; }))
          .to_string(),
      HasSubstr("not sm100_pages: it is for keys in pages, lengths on the device and chunks of "
                "keys"));
}
TEST_F(AttentionPagedPlan, IsAPairOfCtasOnBlackwellForWideHeads) {
  const auto plan = [](const Change& change) {
    return make_attention_plan(b200(), changed(kPaged, change));
  };
  for (const std::int64_t head_dim : {136, 192, 248, 256}) {
    const AttentionPlan wide = plan([&](auto& p) { p.head_dim = head_dim; });
    EXPECT_EQ(wide.kernel, "sm100_pages");
    EXPECT_EQ(wide.padded_head_dim, 256);
    EXPECT_EQ(wide.tile_queries, 64) << "32 of each CTA, by 4 heads";
    EXPECT_EQ(wide.launches.at(0).entry, "attention_sm100_pages_bf16_d256");
    // Of 120 queries one tile is full, and each sequence has a last one: two CTAs each.
    EXPECT_EQ(wide.launches.at(0).grid, (std::array<std::uint32_t, 3>{2 * (1 + 3), 2, 1}));
  }
  EXPECT_EQ(plan([](auto& p) { p.head_dim = 192, p.value_dim = 128; }).launches.at(0).entry,
            "attention_sm100_pages_bf16_d192_v128");
  for (const auto& [head_dim, value_dim] :
       {std::pair{200, 128}, std::pair{64, 136}, std::pair{192, 136}}) {
    const AttentionPlan mixed =
        plan([&](auto& p) { p.head_dim = head_dim, p.value_dim = value_dim; });
    EXPECT_EQ(mixed.launches.at(0).entry, "attention_sm100_pages_bf16_d256");
  }
}
TEST_F(AttentionPagedPlan, IsTakenByTheOneKernelForIt) {
  EXPECT_EQ(make_attention_plan(h200(), kPaged).kernel, "k6_pages");
  const auto without_pages = [](auto& p) {
    p.page_size = p.num_pages = p.max_pages = 0, p.total_kv = 900;
  };
  EXPECT_EQ(make_attention_plan(h200(), changed(kPaged, without_pages)).kernel, "k6_pages")
      << "lengths on the device";
  const AttentionProblem plain =
      changed(changed(kPaged, without_pages), [](auto& p) { p.has_kv_lengths = false; });
  EXPECT_THAT(make_attention_plan(h200(), plain).to_string(),
              HasSubstr("not k6_pages: it is for keys in pages, lengths on the device and chunks "
                        "of keys"));
  EXPECT_EQ(make_attention_plan(h200(), changed(plain, [](auto& p) { p.chunk = 64; })).kernel,
            "k6_pages");
}
TEST_F(AttentionPagedPlan, SaysWhoCopiesPages) {
  AttentionProblem p = kPaged;
  p.max_pages = 300;
  const auto text = [&](std::int64_t page_size) {
    p.page_size = page_size;
    return make_attention_plan(h200(), p).to_string();
  };
  for (const std::int64_t page_size : {1, 4, 7, 12})
    EXPECT_THAT(text(page_size), HasSubstr("four warps gather a tile of keys row by row"));
  for (const std::int64_t page_size : {8, 32, 48})
    EXPECT_THAT(text(page_size), HasSubstr("four warps copy the parts of a tile of keys"));
  for (const std::int64_t page_size : {64, 192, 256})
    EXPECT_THAT(text(page_size), HasSubstr("one thread copies the parts of a tile of keys"));
  // Elements: 64 pages of two rows, and two rows more, reach 64 GiB.
  const std::int64_t far = (std::int64_t{1} << 35) / 130 / 8 * 8;
  p.k_strides = {2 * far, far, 128};
  EXPECT_THAT(text(2), HasSubstr("four warps gather"));
  p.k_strides = {2 * (far + 8), far + 8, 128};
  EXPECT_THAT(text(2), HasSubstr("four warps copy")) << "32 bits do not find the last row";
  p = kPaged;
  p.max_pages = 300;
  p.head_dim = 64;
  EXPECT_THAT(text(2), HasSubstr("four warps gather a tile of keys row by row"));
  EXPECT_THAT(text(4), HasSubstr("four warps copy the parts of a tile of keys"));
}
TEST_F(AttentionPagedPlan, SaysWhoCopiesPagesOnBlackwell) {
  AttentionProblem p = kPaged;
  p.max_pages = 300;
  const auto text = [&](std::int64_t page_size) {
    p.page_size = page_size;
    return make_attention_plan(b200(), p).to_string();
  };
  for (const std::int64_t page_size : {1, 2, 7, 10})
    EXPECT_THAT(text(page_size), HasSubstr("a warp gathers a tile of keys, four rows a copy"));
  for (const std::int64_t page_size : {4, 12, 16, 64, 256})
    EXPECT_THAT(text(page_size), HasSubstr("a warp copies the parts of a tile of keys"));
  p.k_strides = {2 * (256 + 8), 256 + 8, 128};
  EXPECT_THAT(text(2), HasSubstr("a warp copies")) << "rows that are no matrix's";
  p.k_strides = {2 * 256, 256, 128};
  EXPECT_THAT(text(2), HasSubstr("a warp gathers"));
  p.num_pages = (std::int64_t{1} << 29) - 1;  // of two rows of two heads
  EXPECT_THAT(text(2), HasSubstr("a warp gathers"));
  p.num_pages += 1;
  EXPECT_THAT(text(2), HasSubstr("a warp copies")) << "31 bits do not number the rows";
}
TEST_F(AttentionPagedPlan, SaysWhatNoKernelDoes) {
  const std::string gather =
      "Pages and lengths on the device are read for head_dim up to 256: gather the keys and pack "
      "them, or take decode attention, which reads pages for up to 16 queries.";
  const AttentionProblem wide = changed(kPaged, [](auto& p) { p.head_dim = 264; });
  expect_refused(b200(), wide,
                 "sm100_h, sm100_pages, sm100_pages_e4m3: exists for head_dim 64, 128, 256\n",
                 gather);
  expect_refused(b200(), changed(kPaged, [](auto& p) { p.head_dim = 264, p.value_dim = 128; }),
                 "sm100_pages: exists for head_dim 64, 128, 192 with value_dim 128, 256\n", gather);
  const AttentionProblem lengths =
      changed(wide, [](auto& p) { p.page_size = p.num_pages = p.max_pages = 0, p.total_kv = 900; });
  expect_refused(b200(), lengths, "does not support lengths that only the device knows", gather);
  const AttentionProblem chunks =
      changed(lengths, [](auto& p) { p.has_kv_lengths = false, p.chunk = 64; });
  expect_refused(
      b200(), chunks, "does not support chunks of keys",
      "Chunks of keys are known for head_dim up to 256: pack each chunk as a sequence of its own, "
      "or take decode attention, which has chunks for up to 16 queries.");
  expect_refused(b200(), changed(kPaged, [](auto& p) { p.heads = 129 * 2; }),
                 "sm100_pages: has at most 128 query heads for a key head; these are 129\n",
                 gather);
  const AttentionProblem many = changed(kPaged, [](auto& p) { p.heads = p.kv_heads = 65536; });
  expect_refused(b200(), many,
                 "sm100_pages: has a grid of 3 tiles of 256 queries and 65536 heads of keys, at "
                 "most 2147483647 and 65535\n",
                 gather);
  // Of a pair's tiles there are half as many.
  const AttentionProblem pairs = changed(kPaged, [](auto& p) {
    p.head_dim = 256, p.is_packed = false, p.total_q = 0;
    p.batch = std::int64_t{1} << 20, p.q_len = 64 * 1024;
  });
  expect_refused(b200(), pairs,
                 "sm100_pages: has a grid of 1073741824 tiles of 64 queries and 2 heads of keys, "
                 "at most 1073741823 and 65535\n",
                 gather);
  expect_refused(h200(), changed(kPaged, [](auto& p) { p.head_dim = 264; }),
                 "k6_pages: exists for head_dim 64, 96, 128, 192, 256", gather);
  const std::string take =
      "Caches of e4m3 are read with scales of tensors or heads and values in rows, on Blackwell by "
      "queries of 16 bits for head_dim up to 128, or 192 with value_dim up to 128: take those, or "
      "decode attention, which reads them for up to 16 queries.";
  const AttentionProblem e4m3 = changed(kPaged, [](auto& p) { p.dtype = DType::kF8_E4M3; });
  const AttentionProblem widened = changed(kPaged, [](auto& p) { p.kv_dtype = DType::kF8_E4M3; });
  expect_refused(b200(), changed(widened, [](auto& p) { p.head_dim = 256; }),
                 "sm100_pages: exists for head_dim 64, 128\n", take);
  const auto in_blocks = [](auto& p) { p.fp8.scales = ScaleSharing::kBlock; };
  expect_refused(h200(), changed(e4m3, in_blocks),
                 "has no form for head_dim 128, values in rows and these scales", take);
  expect_refused(h200(), changed(widened, in_blocks),
                 "has scales of tensors and heads, not of blocks", take);
  expect_refused(b200(), changed(e4m3, in_blocks),
                 "sm100_pages_e4m3: has scales of tensors and heads, not of blocks", take);
  expect_refused(b200(), changed(widened, in_blocks),
                 "sm100_pages: has scales of tensors and heads, not of blocks", take);
  const auto in_columns = [](auto& p) { p.fp8.v_layout = Fp8ValueLayout::kColumns; };
  expect_refused(h200(), changed(e4m3, in_columns), "reads values in rows", take);
  expect_refused(b200(), changed(e4m3, in_columns), "sm100_pages_e4m3: reads values in rows\n",
                 take);
  // Rows that are copied one by one are found by 32 bits, which count 16 bytes.
  const auto far_apart = [](auto& p) { p.k_strides = {std::int64_t{1} << 36, 128, 128}; };
  const AttentionProblem short_pages = changed(e4m3, [](auto& p) { p.page_size = 2; });
  EXPECT_EQ(make_attention_plan(h200(), changed(e4m3, far_apart)).kernel, "k7_pages");
  expect_refused(h200(),
                 changed(changed(short_pages, far_apart), [](auto& p) { p.max_pages = 300; }),
                 "finds rows one by one in 64 GiB of k or v alone", take);
  for (const device::DeviceInfo& device : {h200(), b200()})
    expect_refused(device, changed(widened, far_apart),
                   "finds rows one by one in 64 GiB of k or v alone", take);
  // A copy writes 128 bytes or more: of head_dim 64 two rows.
  const AttentionProblem no_matrix = changed(e4m3, [](auto& p) {
    p.head_dim = 64, p.page_size = 1, p.max_pages = 300;
    p.k_strides = {144, 144, 64};
  });
  expect_refused(b200(), no_matrix,
                 "sm100_pages_e4m3: copies pages of 1 keys only where the strides of k, and of v, "
                 "have a common measure of head_dim or more\n",
                 take);
  const AttentionProblem by_twos = changed(no_matrix, [](auto& p) {
    p.page_size = 2, p.k_strides = {288, 144, 64};
  });
  EXPECT_EQ(make_attention_plan(b200(), by_twos).kernel, "sm100_pages_e4m3");
}
TEST_F(AttentionPagedPlan, SaysWhatBecomesOfCachesOfE4m3) {
  const AttentionProblem e4m3 = changed(kPaged, [](auto& p) {
    p.dtype = DType::kF8_E4M3;
    p.max_pages = 300;
    p.page_size = 16;
  });
  const auto text = [](const AttentionProblem& p) {
    return make_attention_plan(h200(), p).to_string();
  };
  EXPECT_THAT(text(e4m3), HasSubstr("one warp copies the parts of a tile of keys"));
  EXPECT_THAT(text(changed(e4m3, [](auto& p) { p.page_size = 4; })),
              HasSubstr("one warp gathers a tile of keys row by row"));
  const AttentionProblem wide = changed(e4m3, [](auto& p) {
    p.dtype = DType::kF16;
    p.kv_dtype = DType::kF8_E4M3;
  });
  const AttentionPlan plan = make_attention_plan(h200(), wide);
  EXPECT_EQ(plan.kernel, "k6_pages");
  EXPECT_THAT(plan.to_string(), HasSubstr("keys and values are widened to f16, exactly"));
  EXPECT_EQ(plan.launches[0].entry, "attention_k6_pages_f16_e4m3_d128");
}
TEST_F(AttentionPagedPlan, SaysWhatBecomesOfCachesOfE4m3OnBlackwell) {
  const AttentionProblem e4m3 = changed(kPaged, [](auto& p) {
    p.dtype = DType::kF8_E4M3;
    p.max_pages = 300;
  });
  const auto plan = [](const AttentionProblem& p) { return make_attention_plan(b200(), p); };
  EXPECT_EQ(plan(e4m3).kernel, "sm100_pages_e4m3");
  EXPECT_EQ(plan(e4m3).launches.at(0).entry, "attention_sm100_pages_e4m3_d128");
  EXPECT_EQ(plan(e4m3).launches.at(0).grid, (std::array<std::uint32_t, 3>{1 + 3, 2, 1}));
  EXPECT_THAT(plan(e4m3).to_string(), HasSubstr("a warp copies the parts of a tile of keys"));
  EXPECT_THAT(plan(changed(e4m3, [](auto& p) { p.page_size = 2; })).to_string(),
              HasSubstr("a warp gathers a tile of keys, four rows a copy"));
  // One tile of 32 queries by 4 heads.
  const AttentionPlan of_256 = plan(changed(e4m3, [](auto& p) { p.head_dim = 256; }));
  EXPECT_EQ(of_256.launches.at(0).grid, (std::array<std::uint32_t, 3>{3 + 3, 2, 1}));
  const AttentionProblem whole = changed(e4m3, [](auto& p) {
    p.page_size = p.num_pages = p.max_pages = 0, p.total_kv = 900;
    p.has_kv_lengths = false;
  });
  EXPECT_EQ(plan(whole).kernel, "sm100_h");
  EXPECT_EQ(plan(changed(whole, [](auto& p) { p.has_q_lengths = true; })).kernel,
            "sm100_pages_e4m3");
  const AttentionPlan widened = plan(changed(e4m3, [](auto& p) {
    p.dtype = DType::kF16;
    p.kv_dtype = DType::kF8_E4M3;
  }));
  EXPECT_EQ(widened.kernel, "sm100_pages");
  EXPECT_EQ(widened.launches.at(0).entry, "attention_sm100_pages_f16_e4m3_d128");
  EXPECT_THAT(widened.to_string(), HasSubstr("three warps read a tile of keys row by row"));
  EXPECT_THAT(widened.to_string(), HasSubstr("keys and values are widened to f16, exactly"));
}
TEST_F(AttentionPagedPlan, ANamedKernelSaysWhatItLacks) {
  for (const AttentionKernel& kernel : hopper_attention_kernels()) {
    if (kernel.has_pages || kernel.find_variant({.head_dim = 128}) == nullptr) continue;
    const AttentionProblem p = changed(kPaged, [&](auto& x) {
      x.kernel = kernel.name;
      x.dtype = DType::kBF16;
    });
    std::string text;
    const auto reasons = reasons_against(h200(), p, ErrorKind::kUnsupported, &text);
    ASSERT_EQ(reasons.size(), 1u) << kernel.name;
    EXPECT_EQ(reasons[0].value, kernel.name);
    // What the early rungs lack first is named first.
    if (kernel.features & kPackedSequences) {
      EXPECT_EQ(reasons[0].rule, "does not support keys in pages") << kernel.name;
    }
    EXPECT_THAT(text, HasSubstr("Possible here: k6_pages."));
  }
}
TEST_F(AttentionPagedPlan, AsksForItsAddresses) {
  const AttentionProblem p = changed(kPaged, [](auto& x) { x.has_q_lengths = true; });
  const AttentionPlan plan = make_attention_plan(h200(), p);
  char* const address = reinterpret_cast<char*>(std::uintptr_t{4096});
  const auto* const lengths = reinterpret_cast<const std::int32_t*>(address);
  const AttentionArguments all = {.q = address,
                                  .k = address,
                                  .v = address,
                                  .out = address,
                                  .cu_q = lengths,
                                  .workspace = address,
                                  .q_lengths = lengths,
                                  .kv_lengths = lengths,
                                  .block_table = lengths};
  EXPECT_NO_THROW(check_attention_arguments(plan, all)) << "cu_kv is not needed";
  const auto message = [&](auto change) -> std::string {
    AttentionArguments a = all;
    change(a);
    try {
      check_attention_arguments(plan, a);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto is_null = [](const char* name) {
    return AllOf(HasSubstr(fmt::format("the address of {} is null", name)), Not(HasSubstr("\n")));
  };
  EXPECT_THAT(message([](auto& a) { a.cu_q = nullptr; }), is_null("cu_q"));
  EXPECT_THAT(message([](auto& a) { a.q_lengths = nullptr; }), is_null("q_lengths"));
  EXPECT_THAT(message([](auto& a) { a.kv_lengths = nullptr; }), is_null("kv_lengths"));
  EXPECT_THAT(message([](auto& a) { a.block_table = nullptr; }), is_null("block_table"));
}

}  // namespace
}  // namespace tilewright::ops
