#include "verify/sparse_device.h"

#include "base/error.h"
#include "formats/minifloat.h"
#include "verify/graph_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <dlfcn.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kPeerWorkspaceBytes = std::size_t{768} << 20;

std::size_t sparse_row_count(const SparseData& data) {
  const SparseAttentionProblem& p = data.problem;
  return static_cast<std::size_t>(p.batch * p.q_len * p.heads);
}

}  // namespace

SparseListArguments SparseOperands::List::arguments(std::size_t set) const {
  if (!pages) return {};
  return {.pages = pages->data(),
          .indices = indices[set].as<std::int32_t>(),
          .lengths = lengths ? lengths->as<std::int32_t>() : nullptr};
}

SparseOperands::List SparseOperands::upload(const SparseListData& list) const {
  List to;
  if (list.is_absent()) return to;
  to.pages = std::make_unique<Buffer>(Buffer::from(device_, list.pages));
  for (const auto& set : list.indices) to.indices.push_back(Buffer::from(device_, set));
  if (!list.lengths.empty())
    to.lengths = std::make_unique<Buffer>(Buffer::from(device_, list.lengths));
  return to;
}

SparseOperands::SparseOperands(const Device& device, const SparseData& data)
    : device_(device),
      data_(data),
      sets_(std::max(data.window.indices.size(), data.compressed.indices.size())),
      stream_(device),
      timer_(device),
      q_(Buffer::from(device, data.q)),
      sink_(Buffer::from(device, data.sink)),
      out_(device, sparse_row_count(data) * kKvDims * 2),
      lse_(device, sparse_row_count(data) * 4),
      window_(upload(data.window)),
      compressed_(upload(data.compressed)) {
  poison();
}

void SparseOperands::poison() {
  out_.poison();
  lse_.poison();
}

void SparseOperands::prepare(const SparseAttentionPlan& plan) {
  workspace_ = std::make_unique<Buffer>(device_, plan.workspace_bytes);
}

SparseAttentionArguments SparseOperands::arguments(std::size_t set) const {
  return {.q = q_.data(),
          .window = window_.arguments(set),
          .compressed = compressed_.arguments(set),
          .out = out_.data(),
          .lse = data_.problem.has_lse ? lse_.as<float>() : nullptr,
          .sink = data_.problem.has_sink ? sink_.as<float>() : nullptr,
          .workspace = workspace_ ? workspace_->data() : nullptr,
          .stream = stream_.handle()};
}

json SparseOperands::check(std::int64_t queries, std::size_t set) const {
  const SparseAttentionProblem& p = data_.problem;
  const auto out = out_.to_vector<std::uint16_t>();
  const auto lse = lse_.to_vector<float>();
  const std::int64_t all = p.batch * p.q_len, count = std::min(all, queries);
  SparseDifference difference(p.batch == 1 && p.q_len > 8);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t query = count == 1 ? 0 : i * (all - 1) / (count - 1);
    const SparseData::Exact exact = data_.exact(query, set);
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const auto row = static_cast<std::size_t>(query * p.heads + h);
      for (std::size_t d = 0; d < kKvDims; ++d)
        difference.add_out(decode(kBf16, out[row * kKvDims + d]),
                           exact.out[static_cast<std::size_t>(h) * kKvDims + d]);
      if (p.has_lse) difference.add_lse(lse[row], exact.lse[static_cast<std::size_t>(h)]);
    }
  }
  return difference.log(fmt::format("float64 on dequantised rows, {} queries", count));
}

ClockedTimes SparseOperands::measure(const std::function<void(std::size_t)>& enqueue, int samples,
                                     json& log) const {
  const double once = time_us([&] { enqueue(0); });
  const auto sets = static_cast<int>(sets_);
  const int rounds = std::clamp(static_cast<int>(3000 / std::max(once, 1.0)) / sets, 1, 4);
  log["runs_per_sample"] = rounds * sets;
  return graph_times(device_, stream_, {.calls = rounds * sets, .samples = samples},
                     [&](int i) { enqueue(static_cast<std::size_t>(i % sets)); });
}

namespace {

using PeerDecode = int (*)(int flags, const void* q, const void* k, const int* idx, int topk,
                           const int* topk_len, const void* xk, const int* xidx, int xtopk,
                           const int* xlen, const float* sink, int b, int s_q, int h, int pages,
                           int page, std::int64_t stride, int xpages, int xpage,
                           std::int64_t xstride, float scale, void* out, float* lse,
                           void* workspace, std::size_t bytes, void* stream);
using PeerPrefill = int (*)(const void* q, const void* kv, const int* idx, int topk,
                            const int* topk_len, const float* sink, int s_q, int s_kv, int h,
                            float scale, void* out, float* max_logits, float* lse, void* stream);

constexpr int kMakeSchedule = 1, kAttend = 2;

// The same problem with heads padded to 64: zeros as queries.
SparseData pad_heads(const SparseData& data) {
  SparseData padded = data;
  const auto heads = static_cast<std::size_t>(data.problem.heads);
  if (heads % 64 == 0) return padded;
  padded.problem.heads = 64;
  padded.sink.resize(64, 0.0f);
  padded.q.assign(sparse_row_count(padded) * kKvDims, 0);
  for (std::size_t query = 0; query < sparse_row_count(data) / heads; ++query)
    std::copy_n(data.q.begin() + static_cast<std::ptrdiff_t>(query * heads * kKvDims),
                heads * kKvDims,
                padded.q.begin() + static_cast<std::ptrdiff_t>(query * 64 * kKvDims));
  return padded;
}

int to_peer_int(std::int64_t x) {
  return static_cast<int>(x);
}

void call_peer(PeerDecode decode, int flags, const SparseData& d, const SparseOperands& operands,
               const Buffer& workspace, std::size_t set) {
  const SparseAttentionProblem& p = d.problem;
  const SparseAttentionArguments a = operands.arguments(set);
  const KvCacheLayout &k = p.window.cache, &x = p.compressed.cache;
  const int status =
      decode(flags, a.q, a.window.pages, a.window.indices, to_peer_int(p.window.topk),
             a.window.lengths, a.compressed.pages, a.compressed.indices,
             to_peer_int(p.compressed.topk), a.compressed.lengths, a.sink, to_peer_int(p.batch),
             to_peer_int(p.q_len), to_peer_int(p.heads), to_peer_int(k.num_pages),
             to_peer_int(k.page_size), k.page_stride_bytes, to_peer_int(x.num_pages),
             to_peer_int(x.page_size), x.page_stride_bytes, static_cast<float>(*p.scale), a.out,
             a.lse, workspace.data(), workspace.size_bytes(), a.stream);
  require(status == 0, ErrorKind::kDeviceError, "bench sparse: flashmla_decode_flags gave {}",
          status);
}

}  // namespace

FlashMlaPeer::FlashMlaPeer(const std::string& file)
    : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  require(library_ != nullptr, ErrorKind::kInvalidArgument, "bench sparse: {}", ::dlerror());
  decode_ = ::dlsym(library_, "flashmla_decode_flags");
  prefill_ = ::dlsym(library_, "flashmla_prefill");
  require(decode_ != nullptr, ErrorKind::kInvalidArgument,
          "bench sparse: {} has no flashmla_decode_flags; docs/05-benchmarks.md says what such a "
          "library is",
          file);
}

FlashMlaPeer::~FlashMlaPeer() {
  if (library_ != nullptr) ::dlclose(library_);
}

std::string FlashMlaPeer::obstacle(const SparseAttentionProblem& p) {
  if (p.head_dim != kKvDims) return "is called for rows of 512 alone";
  const bool is_prefill = p.window.cache.format == NumberFormat::kBf16;
  if (is_prefill && (p.compressed.topk > 0 || p.window.topk % 128 != 0 || p.batch != 1))
    return "does prefill over one list of a multiple of 128 rows";
  if (p.window.cache.format == NumberFormat::kNvfp4) return "has no nvfp4 cache";
  if (p.window.topk % 64 != 0 || p.compressed.topk % 64 != 0)
    return "wants lists of multiples of 64";
  return {};
}

json FlashMlaPeer::run(const Device& device, const SparseData& given, int samples) const {
  const SparseData data = pad_heads(given);
  SparseOperands operands(device, data);
  const SparseAttentionProblem& p = data.problem;
  json log = {{"kernel", given.problem.heads < 64 ? "FlashMLA padded" : "FlashMLA"}};
  if (p.window.cache.format == NumberFormat::kBf16) {
    require(prefill_ != nullptr, ErrorKind::kUnsupported, "the library has no flashmla_prefill");
    const Buffer maxima(device, sparse_row_count(data) * 4);
    const auto run = [&](std::size_t set) {
      const SparseAttentionArguments a = operands.arguments(set);
      const int status = reinterpret_cast<PeerPrefill>(prefill_)(
          a.q, a.window.pages, a.window.indices, to_peer_int(p.window.topk), a.window.lengths,
          a.sink, to_peer_int(p.q_len), to_peer_int(p.window.cache.num_pages), to_peer_int(p.heads),
          static_cast<float>(*p.scale), a.out, maxima.as<float>(), a.lse, a.stream);
      require(status == 0, ErrorKind::kDeviceError, "bench sparse: flashmla_prefill gave {}",
              status);
    };
    run(0);
    operands.stream().synchronize();
    log["error"] = operands.check(4, 0);
    operands.measure(run, samples, log).write(log);
    return log;
  }
  const auto decode = reinterpret_cast<PeerDecode>(decode_);
  const Buffer workspace(device, kPeerWorkspaceBytes);
  const auto run = [&](int flags, std::size_t set) {
    call_peer(decode, flags, data, operands, workspace, set);
  };
  run(kMakeSchedule | kAttend, 0);
  operands.stream().synchronize();
  log["error"] = operands.check(4, 0);
  operands.measure([&](std::size_t set) { run(kAttend, set); }, samples, log).write(log);
  return log;
}

}  // namespace tilewright::cli
