// A CUDA program like any other: adds two vectors and sums the result, and checks both on the host.
//
//   nvcc -cudart shared -gencode arch=compute_90a,code=compute_90a -o vector_add vector_add.cu
//   tilewright sim exec --check all -- ./vector_add
#include <cstdio>
#include <vector>

#define CHECK(call)                                                       \
  do {                                                                    \
    const cudaError_t error = (call);                                     \
    if (error != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      return 1;                                                           \
    }                                                                     \
  } while (false)

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) sum[i] = a[i] + b[i];
}

__global__ void reduce(const float* values, int n, float* total) {
  __shared__ float partial[256];
  float mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 256) mine += values[i];
  partial[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) *total = partial[0];
}

int main() {
  constexpr int kCount = 10000;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  std::vector<float> a(kCount), b(kCount), sum(kCount);
  double expected = 0;
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 5);
    expected += a[i] + b[i];
  }
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  float *device_a, *device_b, *device_sum, *device_total, total = 0;
  CHECK(cudaMalloc(&device_a, kBytes));
  CHECK(cudaMalloc(&device_b, kBytes));
  CHECK(cudaMalloc(&device_sum, kBytes));
  CHECK(cudaMalloc(&device_total, sizeof total));
  CHECK(cudaMemcpy(device_a, a.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), kBytes, cudaMemcpyHostToDevice));
  add<<<(kCount + 255) / 256, 256>>>(device_a, device_b, device_sum, kCount);
  CHECK(cudaGetLastError());
  reduce<<<1, 256>>>(device_sum, kCount, device_total);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sum.data(), device_sum, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost));
  int num_wrong = total == static_cast<float>(expected) ? 0 : 1;
  for (int i = 0; i < kCount; ++i) num_wrong += sum[i] == a[i] + b[i] ? 0 : 1;
  std::printf("%s: %d numbers, total %g: %s\n", device.name, kCount, total,
              num_wrong == 0 ? "right" : "wrong");
  for (float* memory : {device_a, device_b, device_sum, device_total}) CHECK(cudaFree(memory));
  return num_wrong == 0 ? 0 : 1;
}
