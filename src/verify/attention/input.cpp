#include "verify/attention/input.h"

#include "base/error.h"
#include "base/npy.h"
#include "base/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

// "64" keys before; "64,8" keys before and after.
void set_window(AttentionProblem& problem, const std::string& text) {
  if (text.empty()) return;
  int end = 0;
  long long left = -1, right = -1;
  const int found = std::sscanf(text.c_str(), "%lld%n,%lld%n", &left, &end, &right, &end);
  require(found >= 1 && static_cast<std::size_t>(end) == text.size(), ErrorKind::kInvalidArgument,
          "attention: --window {}; expected LEFT or LEFT,RIGHT, -1 for all keys of a side", text);
  problem.window_left = left;
  problem.window_right = right;
}

DType element_type(const std::string& given, DType of_q) {
  if (given == "bf16") return DType::kBF16;
  if (given == "f16") return DType::kF16;
  return of_q == DType::kF16 ? DType::kF16 : DType::kBF16;
}

std::vector<float> load_sink(const AttentionInput& input, std::int64_t heads) {
  if (input.sink.empty()) return {};
  const HostTensor sink = load_tensor(input, input.sink);
  require(sink.num_elems() == heads, ErrorKind::kInvalidArgument,
          "attention: --sink {} has {} values; expected one for each of {} heads", input.sink,
          sink.num_elems(), heads);
  return to_floats(sink.view(), input.sink);
}

// "0,17,300", or nothing if it is no such list.
std::vector<std::int64_t> parse_list(const std::string& text) {
  std::vector<std::int64_t> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',')) return {};
    values.push_back(value);
    at = next == end ? end : next + 1;
  }
  return values;
}

std::vector<std::int64_t> load_integers(const AttentionInput& input, const std::string& name,
                                        const char* option) {
  if (auto list = parse_list(name); !list.empty()) return list;
  const HostTensor tensor = load_tensor(input, name);
  require(tensor.shape().size() == 1 && tensor.num_elems() >= 1 &&
              (tensor.dtype() == DType::kI32 || tensor.dtype() == DType::kI64),
          ErrorKind::kInvalidArgument,
          "attention: {} {} is {} {}; expected I32 or I64 of shape [sequences + 1]", option, name,
          to_string(tensor.dtype()), shape_text(tensor.shape()));
  if (tensor.dtype() == DType::kI64)
    return {tensor.elems<std::int64_t>().begin(), tensor.elems<std::int64_t>().end()};
  return {tensor.elems<std::int32_t>().begin(), tensor.elems<std::int32_t>().end()};
}

// [0, ..., rows], never falling.
std::vector<std::int32_t> load_lengths(const AttentionInput& input, const std::string& name,
                                       const char* option, std::int64_t rows) {
  const std::vector<std::int64_t> starts = load_integers(input, name, option);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t before = i == 0 ? 0 : starts[i - 1];
    require(i == 0 ? starts[0] == 0 : starts[i] >= before, ErrorKind::kInvalidArgument,
            "attention: {} {} has {} at index {}{}; expected 0 first and then never less than "
            "before",
            option, name, starts[i], i, i == 0 ? "" : fmt::format(" after {}", before));
  }
  require(starts.back() == rows, ErrorKind::kInvalidArgument,
          "attention: {} {} ends with {}; the tensor has {} rows", option, name, starts.back(),
          rows);
  require(rows <= std::numeric_limits<std::int32_t>::max(), ErrorKind::kUnsupported,
          "attention: {} packed rows; at most 2^31 - 1", rows);
  return {starts.begin(), starts.end()};
}

std::int64_t longest(const std::vector<std::int32_t>& starts) {
  std::int32_t length = 0;
  for (std::size_t i = 1; i < starts.size(); ++i)
    length = std::max(length, starts[i] - starts[i - 1]);
  return length;
}

// The extents were those of one sequence of all rows.
void set_packing(const AttentionInput& input, AttentionData& data) {
  if (input.cu_q.empty() && input.cu_kv.empty()) return;
  AttentionProblem& p = data.problem;
  require(!input.cu_q.empty(), ErrorKind::kInvalidArgument,
          "attention: --cu-seqlens-k without --cu-seqlens-q; give both, or the second alone if "
          "queries and keys are equally long");
  require(p.batch == 1, ErrorKind::kInvalidArgument,
          "attention: --cu-seqlens-q with tensors of batch {}; packed sequences lie one after the "
          "other in a batch of 1, for example --layout nhd",
          p.batch);
  const bool has_own = !input.cu_kv.empty();
  data.cu_q = load_lengths(input, input.cu_q, "--cu-seqlens-q", p.q_len);
  data.cu_kv =
      load_lengths(input, has_own ? input.cu_kv : input.cu_q,
                   has_own ? "--cu-seqlens-k" : "--cu-seqlens-q (for the keys too)", p.kv_len);
  require(data.cu_q.size() == data.cu_kv.size(), ErrorKind::kInvalidArgument,
          "attention: --cu-seqlens-q {} has {} sequences, --cu-seqlens-k {} has {}; expected as "
          "many",
          input.cu_q, data.cu_q.size() - 1, input.cu_kv, data.cu_kv.size() - 1);
  p.is_packed = true;
  p.batch = static_cast<std::int64_t>(data.cu_q.size()) - 1;
  p.total_q = p.q_len;
  p.total_kv = p.kv_len;
  p.q_len = longest(data.cu_q);
  p.kv_len = longest(data.cu_kv);
}

std::string default_layout(const std::vector<std::int64_t>& shape) {
  return shape.size() == 3 ? "nhd" : "bnhd";
}

}  // namespace

HostTensor load_tensor(const AttentionInput& input, const std::string& name) {
  if (input.file.empty() || name.ends_with(".npy")) return read_npy(name);
  return HostTensor(SafetensorsFile(input.file).tensor(name));
}

namespace {

AttentionData describe_drawn(const AttentionInput& input) {
  require(!input.shape.empty(), ErrorKind::kInvalidArgument,
          "attention: --inputs {} without --shape; expected B,H,HKV,NQ,NK,D[,DV]", input.drawn);
  require(input.shape.size() == 6 || input.shape.size() == 7, ErrorKind::kInvalidArgument,
          "attention: --shape {} has {} numbers; expected B,H,HKV,NQ,NK,D[,DV], six or seven",
          fmt::join(input.shape, ","), input.shape.size());
  for (const std::int64_t extent : input.shape)
    require(extent >= 0 && extent < std::int64_t{1} << 24, ErrorKind::kInvalidArgument,
            "attention: --shape has {}; expected 0 to 2^24", extent);
  AttentionData data;
  AttentionProblem& p = data.problem;
  p.dtype = element_type(input.dtype, DType::kBF16);
  p.batch = input.shape[0];
  p.heads = input.shape[1];
  p.kv_heads = input.shape[2];
  p.q_len = input.shape[3];
  p.kv_len = input.shape[4];
  p.head_dim = input.shape[5];
  p.value_dim = input.shape.back();
  return data;
}

// The names that stand where none is given are of tensors in a file.
void require_operands(const AttentionInput& input) {
  const std::pair<std::string, const char*> operands[] = {
      {input.q, "q"}, {input.k, "k"}, {input.v, "v"}};
  for (const auto& [given, name] : operands)
    require(!input.file.empty() || given != name || std::filesystem::exists(given),
            ErrorKind::kInvalidArgument,
            "attention: --{} is missing; expected the .npy file of each of --q, --k and --v, or a "
            "safetensors file with all three by --input FILE",
            name);
}

AttentionData read_attention(const AttentionInput& input) {
  require_operands(input);
  const HostTensor q = load_tensor(input, input.q), k = load_tensor(input, input.k);
  const HostTensor v = load_tensor(input, input.v);
  AttentionData data;
  AttentionProblem& p = data.problem;
  p.dtype = element_type(input.dtype, q.dtype());
  const std::string layout = input.layout.empty() ? default_layout(q.shape()) : input.layout;
  set_extents(p, read_layout(layout, q.shape(), input.q), read_layout(layout, k.shape(), input.k),
              read_layout(layout, v.shape(), input.v));
  set_packing(input, data);
  data.q = to_codes(q.view(), p.dtype, input.q);
  data.k = to_codes(k.view(), p.dtype, input.k);
  data.v = to_codes(v.view(), p.dtype, input.v);
  return data;
}

}  // namespace

AttentionData describe_attention(const AttentionInput& input) {
  const bool has_files = !input.file.empty() || input.q != "q" || input.k != "k" || input.v != "v";
  require(has_files || !input.drawn.empty(), ErrorKind::kInvalidArgument,
          "attention: there are no operands; give --q, --k and --v, .npy files or names of tensors "
          "in --input FILE, or draw them: --inputs normal --shape B,H,HKV,NQ,NK,D[,DV]");
  AttentionData data = input.drawn.empty() ? read_attention(input) : describe_drawn(input);
  AttentionProblem& p = data.problem;
  p.causal = input.causal;
  p.softcap = input.softcap;
  p.scale = input.scale;
  set_window(p, input.window);
  p.kernel = input.kernel;
  data.sink = load_sink(input, p.heads);
  p.has_sink = !data.sink.empty();
  return data;
}

void draw_operands(const AttentionInput& input, AttentionData& data) {
  if (input.drawn.empty()) return;
  const AttentionProblem& p = data.problem;
  const Drawn from = input.drawn == "outlier" ? Drawn::kOutlier : Drawn::kNormal;
  const std::int64_t q_elems = p.batch * p.q_len * p.heads * p.head_dim;
  const std::int64_t kv_rows = p.batch * p.kv_len * p.kv_heads;
  data.q = draw_values(from, q_elems, 1, p.dtype);
  data.k = draw_values(from, kv_rows * p.head_dim, 2, p.dtype);
  data.v = draw_values(from, kv_rows * value_dim(p), 3, p.dtype);
}

AttentionData load_attention(const AttentionInput& input) {
  AttentionData data = describe_attention(input);
  draw_operands(input, data);
  return data;
}

}  // namespace tilewright::cli
