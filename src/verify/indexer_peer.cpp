// DeepGEMM's logits beside the indexer's, on the same codes and keys.
#include "base/error.h"
#include "verify/indexer_device.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include <dlfcn.h>

namespace tilewright::cli {

using nlohmann::json;

namespace {

using PeerPagedLogits = int (*)(int flags, const void* q, const void* pages,
                                std::int64_t page_stride_bytes, int num_pages, const float* weights,
                                const int* context_lens, const int* block_table,
                                int block_table_stride, int b, int next_n, int heads, int dim,
                                float* logits, int logits_stride, int* schedule_meta, void* stream);
using PeerLogits = int (*)(const void* q, const void* kv, const float* kv_scales,
                           const float* weights, const int* start, const int* end, int s, int s_kv,
                           int heads, int dim, float* logits, int logits_stride, void* stream);

constexpr int kPeerSchedule = 1, kPeerLogits = 2;
constexpr std::int64_t kPeerPage = 64, kPeerStep = 256, kPeerRows = 128;
constexpr std::size_t kPeerScheduleBytes = 4096;

int narrow_for_peer(std::int64_t x) {
  return static_cast<int>(x);
}

// Keys in one piece, as the peer's prefill wants them.
struct ContiguousKeys {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;

  explicit ContiguousKeys(const IndexData& data) {
    for (std::int64_t j = 0; j < data.shape.keys; ++j) {
      const std::uint8_t* const from = data.key_codes(0, 0, j);
      codes.insert(codes.end(), from, from + kIndexDims);
      float scale;
      std::memcpy(&scale, data.key_scales(0, 0, j), sizeof scale);
      scales.push_back(scale);
    }
    scales.resize((scales.size() + 3) / 4 * 4, 0.0f);
  }
};

void check_peer(int status, const char* function) {
  require(status == 0, ErrorKind::kDeviceError, "bench indexer: {} gave {}", function, status);
}

}  // namespace

DeepGemmPeer::DeepGemmPeer(const std::string& file)
    : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  require(library_ != nullptr, ErrorKind::kInvalidArgument, "bench indexer: {}", ::dlerror());
  paged_ = ::dlsym(library_, "deepgemm_paged_mqa_logits");
  contiguous_ = ::dlsym(library_, "deepgemm_mqa_logits");
  require(paged_ != nullptr && contiguous_ != nullptr, ErrorKind::kInvalidArgument,
          "bench indexer: {} has no deepgemm_paged_mqa_logits or no deepgemm_mqa_logits; "
          "docs/05-benchmarks.md says what such a library is",
          file);
}

DeepGemmPeer::~DeepGemmPeer() {
  if (library_ != nullptr) ::dlclose(library_);
}

std::string DeepGemmPeer::obstacle(const IndexShape& shape) {
  if (shape.format != NumberFormat::kFp8) return "has FP8 alone on Hopper";
  if (shape.heads != 64 && shape.heads != 32) return "has 32 or 64 heads";
  if (shape.batch > 1 && shape.key_page != kPeerPage) return "has pages of 64 keys";
  if (shape.batch > 1 && shape.q_len > 2) return "has up to two tokens a sequence";
  return {};
}

json DeepGemmPeer::run(const Device& device, const IndexOperands& operands, int samples) const {
  const bool is_prefill = operands.data().shape.batch == 1;
  json log =
      is_prefill ? run_contiguous(device, operands, samples) : run_paged(device, operands, samples);
  log["kernel"] = "DeepGEMM";
  return log;
}

json DeepGemmPeer::run_paged(const Device& device, const IndexOperands& operands,
                             int samples) const {
  const IndexData& data = operands.data();
  const IndexShape& shape = data.shape;
  const IndexerProblem& p = operands.indexer().problem();
  const std::int64_t stride = (shape.keys + kPeerStep - 1) / kPeerStep * kPeerStep;
  const Buffer logits(device, static_cast<std::size_t>(shape.tokens() * stride) * 4);
  const Buffer schedule(device, kPeerScheduleBytes);
  const auto run = [&](int flags, std::size_t table) {
    const IndexerArguments a = operands.arguments(table);
    const IndexerResults codes = operands.indexer().results(a);
    const int status = reinterpret_cast<PeerPagedLogits>(paged_)(
        flags, codes.codes, a.key_pages, p.keys.page_stride_bytes,
        narrow_for_peer(p.keys.num_pages), codes.weights, a.lengths, a.key_table.pages,
        narrow_for_peer(a.key_table.blocks), narrow_for_peer(shape.batch),
        narrow_for_peer(shape.q_len), narrow_for_peer(shape.heads), kIndexDims, logits.as<float>(),
        narrow_for_peer(stride), schedule.as<int>(), a.stream);
    check_peer(status, "deepgemm_paged_mqa_logits");
  };
  run(kPeerSchedule | kPeerLogits, 0);
  operands.stream().synchronize();
  json log = {{"error", operands.check_logits(logits, stride, 4, 0)}};
  operands.measure([&](std::size_t table) { run(kPeerLogits, table); }, samples).write(log);
  return log;
}

json DeepGemmPeer::run_contiguous(const Device& device, const IndexOperands& operands,
                                  int samples) const {
  const IndexData& data = operands.data();
  const IndexShape& shape = data.shape;
  const ContiguousKeys keys(data);
  const Buffer codes = Buffer::from(device, keys.codes);
  const Buffer scales = Buffer::from(device, keys.scales);
  const Buffer starts = Buffer::from(device, std::vector<std::int32_t>(data.lengths.size(), 0));
  const std::int64_t stride = (shape.keys + kPeerStep - 1) / kPeerStep * kPeerStep + kPeerStep;
  const std::int64_t rows = shape.tokens() + kPeerRows;
  const Buffer logits(device, static_cast<std::size_t>(rows * stride) * 4);
  const auto run = [&](std::size_t) {
    const IndexerArguments a = operands.arguments(0);
    const IndexerResults queries = operands.indexer().results(a);
    const int status = reinterpret_cast<PeerLogits>(contiguous_)(
        queries.codes, codes.data(), scales.as<float>(), queries.weights, starts.as<int>(),
        a.lengths, narrow_for_peer(shape.tokens()), narrow_for_peer(shape.keys),
        narrow_for_peer(shape.heads), kIndexDims, logits.as<float>(), narrow_for_peer(stride),
        a.stream);
    check_peer(status, "deepgemm_mqa_logits");
  };
  run(0);
  operands.stream().synchronize();
  json log = {{"error", operands.check_logits(logits, stride, 4, 0)}};
  operands.measure(run, samples).write(log);
  return log;
}

}  // namespace tilewright::cli
