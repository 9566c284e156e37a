// What decode refuses: every message has the values, what was expected, and a remedy.
#include "ops/decode/problem.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <functional>

namespace tilewright::ops {
namespace {

using reference::expect_invalid;
using Change = std::function<void(AttentionDecodeProblem&)>;

const AttentionDecodeProblem kGood = {
    .batch = 4, .q_len = 2, .heads = 8, .kv_heads = 2, .head_dim = 128, .max_len = 5000};

AttentionDecodeProblem with(const Change& change, AttentionDecodeProblem p = kGood) {
  change(p);
  return p;
}
AttentionDecodeProblem paged(const Change& change = [](auto&) {}) {
  return with(change, with([](auto& p) {
                p.max_len = 0, p.page_size = 64, p.num_pages = 400, p.max_pages = 79;
              }));
}
void refused(const AttentionDecodeProblem& problem, const std::vector<std::string>& parts) {
  expect_invalid([&] { complete(problem); }, parts);
}

TEST(AttentionDecodeRefusals, NameValueExpectationAndRemedy) {
  const std::vector<std::pair<Change, std::vector<std::string>>> cases = {
      {[](auto& p) { p.dtype = DType::kF32; }, {"dtype = F32", "BF16 or F16", "Convert"}},
      {[](auto& p) { p.kv_dtype = DType::kF16; },
       {"kv_dtype = F16", "dtype = BF16 or F8_E4M3", "Convert"}},
      {[](auto& p) { p.batch = -1; }, {"batch = -1", "0 to 1048576", "parts of the batch"}},
      {[](auto& p) { p.q_len = 17; }, {"q_len = 17", "0 to 16", "attention.h"}},
      {[](auto& p) { p.heads = 0; }, {"heads = 0", "1 to 65536", "parts of the heads"}},
      {[](auto& p) { p.kv_heads = 65537; }, {"kv_heads = 65537", "1 to 65536"}},
      {[](auto& p) { p.kv_heads = 3; }, {"heads = 8", "kv_heads = 3", "Repeat or drop"}},
      {[](auto& p) { p.head_dim = 100; }, {"head_dim = 100", "multiple of 8", "Pad"}},
      {[](auto& p) { p.head_dim = 72, p.kv_dtype = DType::kF8_E4M3; },
       {"head_dim = 72", "multiple of 16 in a cache of F8_E4M3 without gaps", "cache_strides"}},
      {[](auto& p) { p.scale = NAN; }, {"scale = nan", "> 0", "none for head_dim^-0.5"}},
      {[](auto& p) { p.softcap = -2; }, {"softcap = -2", "> 0", "0 for none"}},
      {[](auto& p) { p.scale = 1e-50; }, {"scale = 1e-50", "fp32 holds as a normal number"}},
      {[](auto& p) { p.softcap = 1e10; }, {"softcap = 10000000000", "at most 4096"}},
      {[](auto& p) { p.softcap = 1e-320; }, {"softcap = ", "fp32 holds as normal numbers"}},
      {[](auto& p) { p.window_left = -2; }, {"window_left = -2", "-1 for all"}},
      {[](auto& p) { p.chunk = -1; }, {"chunk = -1", "0 to 1073741824", "0 stands for no chunks"}},
      {[](auto& p) { p.splits = 1025; }, {"splits = 1025", "0 to 1024", "0 leaves it"}},
      {[](auto& p) { p.descale = ScaleSharing::kHead; },
       {"descale = head", "cache of BF16", "F8_E4M3", "kNone"}},
      {[](auto& p) { p.num_pages = 3; }, {"num_pages = 3", "expected 0", "Set page_size?"}},
      {[](auto& p) { p.max_len = -1; }, {"max_len = -1", "0 to 1073741824", "oldest keys"}},
      {[](auto& p) {
         p.q_strides = {2048, 1028, 128};
       },
       {"q_strides = 2048, 1028, 128", "multiples of 8", "Pad"}},
      {[](auto& p) {
         p.out_strides = {-8, 8, 8};
       },
       {"out_strides = -8, 8, 8", "from 0 on"}},
      {[](auto& p) {
         p.cache_strides = {1280008, 256, 124};
       },
       {"cache_strides = 1280008, 256, 124", "multiples of 8", "Pad"}},
      {[](auto& p) {
         p.kv_dtype = DType::kF8_E4M3, p.cache_strides = {1280000, 256, 136};
       },
       {"cache_strides = 1280000, 256, 136", "multiples of 16"}},
      {[](auto& p) { p.kv_dtype = DType::kF8_E4M3, p.descale = ScaleSharing::kBlock; },
       {"descale = block", "expected none, tensor or head"}},
      {[](auto& p) { p.append.rotary_dim = 64; },
       {"append.rotary_dim = 64", "expected 0", "Set append.rotary?"}},
      {[](auto& p) { p.append.rotary = RotaryPairs::kHalves; },
       {"append.is_wanted = false", "expected true", "Append, or rotate q before"}},
      {[](auto& p) {
         p.append = {true, RotaryPairs::kHalves, 63, 5000};
       },
       {"append.rotary_dim = 63", "up to head_dim = 128", "pairs"}},
      {[](auto& p) {
         p.append = {true, RotaryPairs::kHalves, 64, 0};
       },
       {"append.max_position = 0", "1 to", "rows of the tables of angles"}},
      {[](auto& p) {
         p.batch = 1 << 20, p.q_len = 16, p.heads = p.kv_heads = 512, p.append.is_wanted = true;
       },
       {"batch = 1048576", "at most 17179869176 rows of a head", "not 17179869184",
        "parts of the batch"}},
      {[](auto& p) {
         p.batch = 1 << 20, p.q_len = 16, p.heads = 1024, p.kv_heads = 256;
         p.append = {true, RotaryPairs::kHalves, 64, 5000};
       },
       {"batch = 1048576", "those of q that turn included, not 25769803776"}}};
  for (const auto& [change, parts] : cases) refused(with(change), parts);
}

TEST(AttentionDecodeRefusals, NameWhatIsWrongWithPages) {
  const std::vector<std::pair<Change, std::vector<std::string>>> cases = {
      {[](auto& p) { p.page_size = -1; }, {"page_size = -1", "1 to", "no pages"}},
      {[](auto& p) { p.num_pages = std::int64_t{1} << 31; },
       {"num_pages = 2147483648", "2147483647", "Larger pages"}},
      {[](auto& p) { p.max_pages = 1 << 25; }, {"max_pages = 33554432", "0 to 16777216", "oldest"}},
      {[](auto& p) { p.max_len = 5; },
       {"max_len = 5", "pages of 64", "expected 0", "Leave it out"}},
      {[](auto& p) { p.table_stride = -4; }, {"table_stride = -4", "0 to", "max_pages"}}};
  for (const auto& [change, parts] : cases) refused(paged(change), parts);
}

}  // namespace
}  // namespace tilewright::ops
