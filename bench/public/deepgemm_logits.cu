// DeepGEMM's FP8 logits over pages, one call in a graph: deepgemm_logits BATCH Q_LEN KEYS [check].
// The kernels are DeepGEMM's, unchanged; its host code for them is in csrc/jit_kernels/impls. Built
// beside its deep_gemm/include and CUTLASS's include:
//
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr --expt-extended-lambda -DNDEBUG
//     -gencode arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -cudart shared
//     -I deep_gemm/include -I include deepgemm_logits.cu -o deepgemm_logits
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deep_gemm/impls/sm90_fp8_paged_mqa_logits.cuh>
#include <vector>

#include <cuda.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#define OK(call)                                                      \
  do {                                                                \
    const cudaError_t e = (call);                                     \
    if (e != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

constexpr int kHeads = 64, kDim = 128, kPage = 64, kSplit = 256, kStages = 3, kSms = 132;
constexpr int kMath = kSplit / 64 * 128, kCopy = 128;

CUtensorMap make_map(CUtensorMapDataType type, void* data, std::vector<cuuint64_t> dims,
                     std::vector<cuuint64_t> strides, std::vector<cuuint32_t> box, bool swizzled) {
  static decltype(&cuTensorMapEncodeTiled) encode = nullptr;
  if (encode == nullptr) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                        &result));
    encode = reinterpret_cast<decltype(encode)>(found);
  }
  CUtensorMap map;
  const cuuint32_t ones[3] = {1, 1, 1};
  const CUresult r = encode(&map, type, static_cast<cuuint32_t>(dims.size()), data, dims.data(),
                            strides.data(), box.data(), ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                            swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r != CUDA_SUCCESS) std::fprintf(stderr, "map: %d\n", r), std::exit(1);
  return map;
}

constexpr int align(int x, int to) {
  return (x + to - 1) / to * to;
}

template <int kNext>
void run(int batch, int keys, bool is_checked) {
  const int pages = keys / kPage, page_bytes = kPage * (kDim + 4), tokens = batch * kNext;
  const int stride = align(keys, kSplit);
  std::vector<unsigned char> q(size_t(tokens) * kHeads * kDim),
      cache(size_t(batch) * pages * page_bytes);
  std::vector<float> weights(size_t(tokens) * kHeads), logits(size_t(tokens) * stride);
  unsigned state = 1;
  const auto draw = [&] { return state = state * 1664525u + 1013904223u, state >> 24; };
  const auto code = [&] { return static_cast<unsigned char>((draw() & 0x87u) | 0x30u); };
  for (auto& x : q) x = code();
  for (int p = 0; p < batch * pages; ++p) {
    unsigned char* const at = cache.data() + size_t(p) * page_bytes;
    for (int i = 0; i < kPage * kDim; ++i) at[i] = code();
    for (int i = 0; i < kPage; ++i) {
      const float scale = 0.5f + float(i) / 64;
      std::memcpy(at + kPage * kDim + 4 * i, &scale, 4);
    }
  }
  for (auto& w : weights) w = float(int(draw()) - 128) / 128;
  std::vector<unsigned> lengths(batch, keys), table(size_t(batch) * pages);
  for (size_t i = 0; i < table.size(); ++i) table[i] = unsigned(i);
  const auto upload = [](const auto& host) {
    void* out = nullptr;
    OK(cudaMalloc(&out, host.size() * sizeof host[0]));
    OK(cudaMemcpy(out, host.data(), host.size() * sizeof host[0], cudaMemcpyHostToDevice));
    return out;
  };
  void *dq = upload(q), *dcache = upload(cache), *dw = upload(weights), *dl = upload(logits);
  auto* dlen = static_cast<unsigned*>(upload(lengths));
  auto* dtable = static_cast<unsigned*>(upload(table));
  unsigned* dmeta = nullptr;
  OK(cudaMalloc(&dmeta, (kSms + 1) * 8));
  const auto kU8 = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  const auto kF32 = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const cuuint64_t all_pages = cuuint64_t(batch) * pages, bytes = page_bytes;
  const CUtensorMap qm =
      make_map(kU8, dq, {kDim, cuuint64_t(tokens) * kHeads}, {kDim}, {kDim, kNext * kHeads}, true);
  const CUtensorMap km =
      make_map(kU8, dcache, {kDim, kPage, all_pages}, {kDim, bytes}, {kDim, kPage, 1}, true);
  const CUtensorMap sm = make_map(kF32, static_cast<char*>(dcache) + kPage * kDim,
                                  {kPage, all_pages}, {bytes}, {kPage, 1}, false);
  const CUtensorMap wm =
      make_map(kF32, dw, {kHeads, cuuint64_t(tokens)}, {kHeads * 4}, {kHeads, kNext}, false);
  constexpr int kAlign = kDim * 8;
  constexpr int kQ = kStages * (kNext * kHeads * kDim + align(kNext * kHeads * 4, kAlign)) +
                     align(kStages * 16, kAlign);
  constexpr int kKv =
      kStages * (kPage * kDim + align(kPage * 4, kAlign)) + align(kStages * 16, kAlign);
  constexpr int kShared = kQ + kSplit / 64 * kKv + kSplit / 64 * 16 + 4;
  auto* const schedule =
      &deep_gemm::sched::sm90_paged_mqa_logits_metadata<256, kSplit, kSms, false>;
  auto* const kernel =
      &deep_gemm::sm90_fp8_paged_mqa_logits<kNext, kHeads, kDim, kPage, false, false, kStages,
                                            kStages, kSplit, kCopy, kMath, float>;
  OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  schedule<<<1, 32, 256 * 4>>>(batch, kNext, false, dlen, nullptr, dmeta);
  OK(cudaDeviceSynchronize());
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  kernel<<<kSms, kCopy + kMath, kShared, stream>>>(
      batch, stride, pages, dlen, static_cast<float*>(dl), dtable, nullptr, dmeta, qm, km, sm, wm);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  if (!is_checked) return;
  OK(cudaMemcpy(logits.data(), dl, logits.size() * 4, cudaMemcpyDeviceToHost));
  const auto value = [](unsigned char c) {
    __nv_fp8_e4m3 x;
    x.__x = c;
    return double(float(x));
  };
  double worst = 0, rms = 0;
  int count = 0;
  for (int t = 0; t < tokens; ++t) {
    for (int j = 0; j < keys - kNext; j += 37, ++count) {
      const unsigned char* const page =
          cache.data() + (size_t(t / kNext) * pages + j / kPage) * page_bytes;
      float scale;
      std::memcpy(&scale, page + kPage * kDim + 4 * (j % kPage), 4);
      double sum = 0;
      for (int h = 0; h < kHeads; ++h) {
        double dot = 0;
        for (int c = 0; c < kDim; ++c)
          dot += value(q[(size_t(t) * kHeads + h) * kDim + c]) *
                 value(page[size_t(j % kPage) * kDim + c]);
        sum += std::fmax(dot, 0) * weights[size_t(t) * kHeads + h];
      }
      worst = std::fmax(worst, std::fabs(sum * scale - logits[size_t(t) * stride + j]));
      rms += sum * scale * sum * scale;
    }
  }
  std::printf("%d logits: off by %.3g, rms %.3g\n", count, worst, std::sqrt(rms / count));
}

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "deepgemm_logits BATCH Q_LEN KEYS [check]\n"), 2;
  const int batch = std::atoi(argv[1]), next = std::atoi(argv[2]), keys = std::atoi(argv[3]);
  next == 1 ? run<1>(batch, keys, argc > 4) : run<2>(batch, keys, argc > 4);
}
