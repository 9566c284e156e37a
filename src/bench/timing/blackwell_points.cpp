#include "bench/timing/blackwell_points.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

class PointList {
 public:
  std::vector<BlackwellPoint> take() {
    attention_points();
    page_points();
    linear_points();
    block_scaled_points();
    quantize_points();
    decode_points();
    sparse_points();
    latent_points();
    indexer_points();
    experts_points();
    model_points();
    return std::move(points_);
  }

 private:
  // As FlashAttention measures: 32768 tokens, 2048 of hidden size.
  void attention_points() {
    part_ = "attention";
    for (const std::int64_t length : {1024, 2048, 4096, 8192}) {
      attention({.kernel = "sm100_e", .length = length});
    }
    attention({.kernel = "sm100_c"});
    attention({.kernel = "sm100_e", .causal = true});
    attention({.kernel = "sm100_e", .head_dim = 64});
    attention({.kernel = "sm100_f", .head_dim = 256});
    for (const std::int64_t head_dim : {64, 128, 256}) {
      attention({.kernel = "sm100_h", .dtype = "e4m3", .head_dim = head_dim});
    }
  }

  void page_points() {
    part_ = "pages";
    attention({.kernel = "sm100_pages", .page = 64});
    attention({.kernel = "sm100_pages", .page = 1});
    attention({.kernel = "sm100_pages", .head_dim = 64, .page = 64});
    attention({.kernel = "sm100_pages", .kv_dtype = "e4m3", .page = 64});
    for (const std::int64_t head_dim : {64, 128, 256}) {
      attention({.kernel = "sm100_pages_e4m3", .dtype = "e4m3", .head_dim = head_dim, .page = 64});
    }
  }

  void linear_points() {
    part_ = "linear";
    for (const char* const kernel :
         {"tensor_bf16_1cta_n128", "tensor_bf16_2cta_n256", "tensor_bf16_4cta_n256"}) {
      linear("bf16", kernel, 4096, 4096, 4096);
    }
    linear("bf16", "tensor_bf16_2cta_n256", 8192, 8192, 16384);
    linear("bf16", "tensor_bf16_few", 16, 4096, 4096);
    for (const char* const kernel : {"tensor_e4m3_1cta_n128", "tensor_e4m3_2cta_n256"}) {
      linear("w8a8", kernel, 4096, 4096, 4096);
    }
    linear("w8a8", "tensor_e4m3_few", 16, 4096, 4096);
    for (const char* const kind : {"mxfp8", "mxfp8 mxfp4", "nvfp4"}) {
      linear(kind, "tensor_blocks_2cta_n256", 4096, 4096, 4096);
      linear(kind, "tensor_blocks_few", 16, 4096, 4096);
    }
    linear("w4a16", "band", 16, 4096, 4096);
    linear("w4a16", "direct", 1, 4096, 4096);
  }

  // Without quantising x: products alone, and gate and up with SwiGLU.
  void block_scaled_points() {
    part_ = "block-scaled";
    for (const char* const kind : {"mxfp8", "mxfp8 mxfp4", "nvfp4"}) {
      for (const char* const kernel :
           {"1cta_n64", "1cta_n128", "2cta_n192", "2cta_n256", "4cta_n256"}) {
        block_scaled(kind, kernel, "bf16", false);
      }
      for (const char* const kernel : {"1cta_n128", "2cta_n256"}) {
        block_scaled(kind, kernel, "bf16", true);
        block_scaled(kind, kernel, kind == std::string("nvfp4") ? "nvfp4" : "mxfp8", true);
      }
    }
  }

  void quantize_points() {
    part_ = "quantize";
    for (const char* const format : {"nvfp4", "mxfp4", "fp8_1x128", "fp8_token", "fp8_128x128"}) {
      constexpr std::int64_t kRows = 4096, kColumns = 4096;
      BlackwellPoint& point = add(TimedOperator::kQuantize, "quantize",
                                  fmt::format("{} m{} k{}", format, kRows, kColumns),
                                  {{"format", format}, {"rows", kRows}, {"cols", kColumns}});
      point.bytes = 2.0 * kRows * kColumns;
    }
  }

  void decode_points() {
    part_ = "decode";
    for (const char* const kernel : {"t16", "t64"}) decode(kernel, "BF16", 8, 4096);
    decode("t16", "BF16", 64, 4096);
    for (const char* const kernel : {"t16", "t32"}) decode(kernel, "F8_E4M3", 8, 4096);
    decode("t16", "F8_E4M3", 64, 4096);
  }

  void sparse_points() {
    part_ = "sparse";
    for (const char* const format : {"fp8", "bf16", "nvfp4"})
      sparse("pair", "flash", 64, format, 64);
    sparse("pair", "flash", 64, "fp8", 128);
    sparse("few_heads", "flash8", 8, "fp8", 64);
    sparse("few_heads", "flash16", 16, "bf16", 64);
    sparse("few_heads", "flash32", 32, "nvfp4", 64);
    mla("v32", "fp8", 128);
    mla("prefill-v32", "bf16", 256);
    sparse("naive", "flash", 64, "fp8", 2);
  }

  void latent_points() {
    part_ = "latent";
    latent(128, 32, 4096);
    latent(16, 32, 4096);
  }

  void indexer_points() {
    part_ = "indexer";
    indexer("fp8", 64, 4096);
    indexer("fp8", 256, 4096);
    indexer("mxfp4", 64, 4096);
    indexer("mxfp4", 256, 4096);
  }

  // A quarter of the experts of V4-Flash, and half of its width: what an SM does is the same.
  void experts_points() {
    part_ = "experts";
    for (const char* const format : {"fp8", "mxfp4", "nvfp4"}) {
      experts("few", format, 16);
      experts("2cta_n256", format, 2048);
    }
  }

  // What stands between the large operators of V4-Flash; a step of 64 sequences, and a prompt.
  void model_points() {
    part_ = "model";
    for (const std::int64_t q_len : {1, 4096}) {
      const std::int64_t batch = q_len == 1 ? 64 : 1;
      compressor("csa", "fp8", batch, q_len);
      compressor("csa", "nvfp4", batch, q_len);
      compressor("hca", "fp8", batch, q_len);
      compressor("index", "fp8", batch, q_len);
      compressor("index", "mxfp4", batch, q_len);
    }
    for (const std::int64_t tokens : {64, 4096}) {
      for (const char* const format : {"bf16", "fp8", "nvfp4"}) cache_write(format, tokens);
    }
    for (const std::int64_t tokens : {1, 64, 4096}) hyper_connection(tokens);
  }

  void compressor(const char* kind, const char* format, std::int64_t batch, std::int64_t q_len) {
    const bool is_index = kind == std::string("index");
    const double width = is_index ? 256 : kind == std::string("csa") ? 1024 : 512;
    BlackwellPoint& point =
        add(TimedOperator::kCompressor, kind,
            fmt::format("compressor {} {} b{} q{}", kind, format, batch, q_len),
            {{"kind", kind}, {"format", format}, {"batch", batch}, {"q_len", q_len}});
    point.bytes = 2 * 4 * width * static_cast<double>(batch * q_len);  // values and gates
  }

  void cache_write(const char* format, std::int64_t tokens) {
    constexpr std::int64_t kHeads = 64, kRow = 512;
    BlackwellPoint& point = add(TimedOperator::kCacheWrite, "cache_write",
                                fmt::format("cache {} h{} m{}", format, kHeads, tokens),
                                {{"format", format}, {"tokens", tokens}, {"heads", kHeads}});
    point.bytes = 2.0 * (2 * kHeads + 1) * kRow * static_cast<double>(tokens);
  }

  void hyper_connection(std::int64_t tokens) {
    constexpr std::int64_t kHidden = 4096;
    BlackwellPoint& point = add(TimedOperator::kHyperConnection, "hyper_connection",
                                fmt::format("hyper-connection m{} k{}", tokens, kHidden),
                                {{"tokens", tokens}, {"hidden", kHidden}});
    // Four streams read and written, a result read, another written.
    point.bytes = 2.0 * (4 + 4 + 1 + 1) * kHidden * static_cast<double>(tokens);
  }

  BlackwellPoint& add(TimedOperator timed, std::string kernel, std::string shape, json problem) {
    BlackwellPoint& point = points_.emplace_back();
    point.part = part_;
    point.timing.timed = timed;
    point.timing.kernel = std::move(kernel);
    point.timing.shape = std::move(shape);
    point.timing.problem = std::move(problem);
    return point;
  }

  struct AttentionPoint {
    const char* kernel;
    const char *dtype = "bf16", *kv_dtype = "";
    std::int64_t length = 4096, head_dim = 128;
    bool causal = false;
    std::int64_t page = 0;
  };

  void attention(const AttentionPoint& p) {
    constexpr std::int64_t kTokens = 32768, kHidden = 2048;
    const std::int64_t batch = kTokens / p.length, heads = kHidden / p.head_dim;
    const std::string type = p.dtype == std::string("bf16") ? "" : fmt::format("{} ", p.dtype);
    const std::string keys = p.kv_dtype[0] == 0 ? "" : fmt::format(" keys {}", p.kv_dtype);
    const std::string pages = p.page == 0 ? "" : fmt::format(" pages of {}", p.page);
    BlackwellPoint& point =
        add(TimedOperator::kAttention, p.kernel,
            fmt::format("attention {}{} d{} n{}{}{}", type, p.causal ? "causal" : "full",
                        p.head_dim, p.length, keys, pages),
            {{"dtype", p.dtype},
             {"kv_dtype", p.kv_dtype},
             {"batch", batch},
             {"heads", heads},
             {"kv_heads", heads},
             {"q_len", p.length},
             {"kv_len", p.length},
             {"head_dim", p.head_dim},
             {"causal", p.causal},
             {"page", p.page},
             {"q_strides", {heads * p.length * p.head_dim, p.head_dim, p.length * p.head_dim}}});
    if (p.page != 0) {  // keys of a page lie together: rows, then heads
      point.timing.problem["q_strides"] = {p.length * kHidden, kHidden, p.head_dim};
    }
    const auto visible = static_cast<double>(p.causal ? (p.length + 1) / 2 : p.length);
    point.flop = 4.0 * kTokens * kHidden * visible;
  }

  void linear(const std::string& kind, const std::string& kernel, std::int64_t m, std::int64_t n,
              std::int64_t k) {
    const std::string name = kind == "bf16" ? "" : kind + " ";
    BlackwellPoint& point =
        add(TimedOperator::kLinear, kind + ":" + kernel,
            fmt::format("linear {}m{} n{} k{}", name, m, n, k), {{"m", m}, {"n", n}, {"k", k}});
    point.flop = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
    if (m > 64) return;
    const bool is_fp4 = kind == "nvfp4" || kind == "mxfp8 mxfp4" || kind == "w4a16";
    point.bytes = (kind == "bf16" ? 2.0 : is_fp4 ? 0.5 : 1.0) * static_cast<double>(n * k);
  }

  void block_scaled(const std::string& kind, const std::string& kernel, const std::string& out,
                    bool has_swiglu) {
    constexpr std::int64_t kM = 4096, kN = 4096, kK = 4096;
    BlackwellPoint& point = add(
        TimedOperator::kBlockScaled, kernel,
        fmt::format("{}{} to {} m{} n{} k{}", kind, has_swiglu ? " swiglu" : "", out, kM, kN, kK),
        {{"m", kM}, {"n", kN}, {"k", kK}, {"kind", kind}, {"out", out}, {"swiglu", has_swiglu}});
    point.flop = 2.0 * kM * kN * kK;
  }

  void decode(const char* kernel, const char* kv, std::int64_t batch, std::int64_t keys) {
    constexpr std::int64_t kHeads = 32, kKvHeads = 8, kHeadDim = 128;
    const bool is_e4m3 = kv == std::string("F8_E4M3");
    BlackwellPoint& point =
        add(TimedOperator::kDecode, kernel,
            fmt::format("decode {}h32/8 d128 b{} n{}", is_e4m3 ? "keys e4m3 " : "", batch, keys),
            {{"batch", batch},
             {"q_len", 1},
             {"heads", kHeads},
             {"kv_heads", kKvHeads},
             {"head_dim", kHeadDim},
             {"keys", keys},
             {"page", 0},
             {"kv", kv}});
    point.flop = 4.0 * static_cast<double>(batch * keys * kHeads * kHeadDim);
    point.bytes = (is_e4m3 ? 2.0 : 4.0) * static_cast<double>(batch * keys * kKvHeads * kHeadDim);
  }

  void sparse(const char* kernel, const char* shape, std::int64_t heads, const char* format,
              std::int64_t batch) {
    BlackwellPoint& point = add(TimedOperator::kSparse, kernel,
                                fmt::format("{} {} b{}", shape, format, batch), {{"batch", batch}});
    point.timing.format = format;  // find_sparse_shape() takes the first word of the name
    // Two queries a sequence, 640 rows of 512 in two products.
    point.flop = 4.0 * static_cast<double>(batch) * 2 * static_cast<double>(heads) * 640 * 512;
  }

  // 128 heads, lists of 2048 rows of 576, one query each.
  void mla(const char* shape, const char* format, std::int64_t batch) {
    constexpr double kRows = 2048;
    BlackwellPoint& point = add(TimedOperator::kSparse, "pair",
                                fmt::format("{} {} b{}", shape, format, batch), {{"batch", batch}});
    point.timing.format = format;
    point.flop = 2.0 * static_cast<double>(batch) * 128 * kRows * (576 + 512);
  }

  void latent(std::int64_t heads, std::int64_t batch, std::int64_t keys) {
    BlackwellPoint& point =
        add(TimedOperator::kLatent, "pair", fmt::format("mla h{} b{} n{}", heads, batch, keys),
            {{"batch", batch}, {"q_len", 1}, {"heads", heads}, {"keys", keys}});
    const auto all = static_cast<double>(batch * keys);
    point.flop = 2.0 * all * static_cast<double>(heads) * (576 + 512);
    point.bytes = all * 576 * 2;
  }

  void indexer(const char* format, std::int64_t batch, std::int64_t keys) {
    BlackwellPoint& point = add(TimedOperator::kIndexer, "indexer",
                                fmt::format("indexer {} h64 b{} n{}", format, batch, keys),
                                {{"batch", batch},
                                 {"q_len", 1},
                                 {"heads", 64},
                                 {"keys", keys},
                                 {"topk", 512},
                                 {"key_page", 64},
                                 {"lengths", "full"}});
    point.timing.format = format;
    point.flop = 2.0 * static_cast<double>(batch * keys) * 64 * 128;
  }

  void experts(const char* kernel, const char* format, std::int64_t tokens) {
    constexpr std::int64_t kExperts = 64, kTopk = 6, kHidden = 4096, kInter = 1024;
    BlackwellPoint& point =
        add(TimedOperator::kExperts, kernel,
            fmt::format("{}/{}/{}/{}", kExperts, kTopk, kHidden, kInter),
            {{"tokens", tokens}, {"shared", false}, {"activations", "block_scaled"}});
    point.timing.format = format;
    point.flop = 6.0 * static_cast<double>(tokens) * kTopk * kHidden * kInter;
  }

  std::vector<BlackwellPoint> points_;
  std::string part_;
};

}  // namespace

std::vector<BlackwellPoint> blackwell_points() {
  return PointList().take();
}

std::vector<std::string> blackwell_parts() {
  std::vector<std::string> parts;
  for (const BlackwellPoint& point : blackwell_points()) {
    if (parts.empty() || parts.back() != point.part) parts.push_back(point.part);
  }
  return parts;
}

}  // namespace tilewright::cli
