// FlashAttention-3's forward, bf16, head_dim 128: fa3_forward BATCH HEADS N CAUSAL [check], where
// CAUSAL is True or False.
// The kernels and their launches are the repository's, unchanged; parameters are filled as
// hopper/flash_api.cpp does. Built beside its folder hopper and CUTLASS's include, in two minutes
// and 5 GB:
//
//   nvcc -std=c++17 -O3 --expt-relaxed-constexpr --expt-extended-lambda --use_fast_math -DNDEBUG
//     -gencode arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -cudart shared
//     -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90
//     -DFLASHATTENTION_DISABLE_SM8x -I . -I hopper -I include fa3_forward.cu -o fa3_forward
#include "hopper/flash_fwd_launch_template.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

using bf16 = cutlass::bfloat16_t;

int main(int argc, char** argv) {
  if (argc < 5) return std::fprintf(stderr, "fa3_forward BATCH HEADS N True|False [check]\n"), 2;
  const int batch = std::atoi(argv[1]), heads = std::atoi(argv[2]), n = std::atoi(argv[3]);
  const bool causal = std::strcmp(argv[4], "True") == 0;
  constexpr int d = 128;
  const size_t count = size_t(batch) * heads * n * d;
  std::vector<bf16> host[3];
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<bf16> some(1 << 16);
  for (auto& x : some) x = bf16(normal(random));
  void* device[4];
  for (int i = 0; i < 4; ++i) {
    if (i < 3) {
      host[i].resize(count);
      for (size_t j = 0; j < count; ++j)
        host[i][j] = some[(j * (2 * i + 1) + j / some.size() * 7919) % some.size()];
    }
    CHECK_CUDA(cudaMalloc(&device[i], count * 2));
    if (i < 3) CHECK_CUDA(cudaMemcpy(device[i], host[i].data(), count * 2, cudaMemcpyHostToDevice));
  }
  float* lse = nullptr;
  int* semaphore = nullptr;
  CHECK_CUDA(cudaMalloc(&lse, size_t(batch) * heads * n * 4));
  CHECK_CUDA(cudaMalloc(&semaphore, 256));
  CHECK_CUDA(cudaMemset(semaphore, 0, 256));
  Flash_fwd_params p = {};
  p.q_ptr = device[0], p.k_ptr = device[1], p.v_ptr = device[2], p.o_ptr = device[3];
  // [batch, n, heads, d]
  p.q_batch_stride = p.k_batch_stride = p.v_batch_stride = p.o_batch_stride =
      int64_t(n) * heads * d;
  p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = int64_t(heads) * d;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = d;
  p.v_dim_stride = 1;
  p.h = p.h_k = heads;
  p.softmax_lse_ptr = lse;
  p.b = p.b_k = batch;
  p.seqlen_q = p.seqlen_k = p.seqlen_q_rounded = p.seqlen_k_rounded = n;
  p.d = p.d_rounded = p.dv = p.dv_rounded = d;
  p.total_q = p.total_k = batch * n;
  p.scale_softmax = 1 / std::sqrt(float(d));
  p.p_dropout = 1, p.p_dropout_in_uint8_t = 255, p.rp_dropout = 1;
  p.window_size_left = -1, p.window_size_right = causal ? 0 : -1;
  p.is_bf16 = true, p.is_causal = causal;
  p.num_splits = 1;
  p.tile_count_semaphore = semaphore;
  p.arch = 90, p.num_sm = 132;
  if (causal) {
    run_flash_fwd<90, d, d, 1, bf16, bf16, true, false, false, false, false, false, false, false,
                  false, false>(p, nullptr);
  } else if ((n + 127) / 128 % 2 == 0) {
    run_flash_fwd<90, d, d, 2, bf16, bf16, false, false, false, false, false, false, false, false,
                  false, false>(p, nullptr);
  } else {
    return std::fprintf(stderr, "fa3_forward: n = %d; expected an even number of tiles of 128\n",
                        n),
           1;
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  if (argc < 6) return 0;
  std::vector<bf16> out(count);
  CHECK_CUDA(cudaMemcpy(out.data(), device[3], count * 2, cudaMemcpyDeviceToHost));
  double worst = 0;
  for (int row = 0; row < n; row += 61) {
    const int h = row % heads, b = row % batch;
    const auto at = [&](int i, int j) { return &host[i][((size_t(b) * n + j) * heads + h) * d]; };
    std::vector<double> weights(causal ? row + 1 : n), sum(d);
    double most = -1e30, total = 0;
    for (size_t j = 0; j < weights.size(); ++j) {
      for (int c = 0; c < d; ++c)
        weights[j] += double(float(at(0, row)[c])) * double(float(at(1, j)[c]));
      weights[j] *= p.scale_softmax;
      most = std::fmax(most, weights[j]);
    }
    for (size_t j = 0; j < weights.size(); ++j) {
      const double w = std::exp(weights[j] - most);
      total += w;
      for (int c = 0; c < d; ++c) sum[c] += w * double(float(at(2, j)[c]));
    }
    for (int c = 0; c < d; ++c)
      worst = std::fmax(worst,
                        std::fabs(sum[c] / total -
                                  double(float(out[((size_t(b) * n + row) * heads + h) * d + c]))));
  }
  std::printf("off by %.3g\n", worst);
}
