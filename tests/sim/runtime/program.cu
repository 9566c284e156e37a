// What programs do with the CUDA runtime, each thing once. Prints what went wrong; the status is
// the count.
#include <cstdio>
#include <cstring>

#include <cooperative_groups.h>

namespace {

int num_failures = 0;

void expect(bool condition, const char* text, int line) {
  if (condition) return;
  ++num_failures;
  std::printf("line %d: %s (last error: %s)\n", line, text,
              cudaGetErrorName(cudaPeekAtLastError()));
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)
#define EXPECT_OK(call) EXPECT((call) == cudaSuccess)

__device__ int counter = 3;
__constant__ int offsets[4] = {1, 2, 3, 4};
__managed__ int shared_number = 5;

template <class T>
__global__ void fill(T* out, T value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = value + offsets[i % 4];
}
__global__ void count() {
  atomicAdd(&counter, shared_number);
}
__global__ void dynamic(int* out) {
  extern __shared__ int words[];
  words[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}
__global__ void meet(int* out) {
  atomicAdd(out, 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) out[1 + blockIdx.x] = *static_cast<volatile int*>(out);
}
__global__ void rank_in_cluster(unsigned* out) {
  out[blockIdx.x] = cooperative_groups::this_cluster().block_rank();
}
__global__ void write_null() {
  *static_cast<volatile int*>(nullptr) = 1;
}

void devices() {
  int count = 0, device = -1, version = 0, value = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT(count == 1 && device == 0);
  EXPECT(cudaSetDevice(7) == cudaErrorInvalidDevice &&
         cudaGetLastError() == cudaErrorInvalidDevice);
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaRuntimeGetVersion(&version));
  EXPECT(version >= 13000);
  cudaDeviceProp prop;
  EXPECT_OK(cudaGetDeviceProperties(&prop, 0));
  EXPECT(prop.major == 9 && prop.warpSize == 32 && prop.multiProcessorCount == 132);
  EXPECT(prop.sharedMemPerBlockOptin == 227 * 1024 && prop.clusterLaunch == 1);
  EXPECT(prop.maxThreadsDim[2] == 64 && prop.regsPerMultiprocessor == 65536);
  EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
  EXPECT(value == 1024);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult status;
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                             cudaEnableDefault, &status));
  EXPECT(entry != nullptr && status == cudaDriverEntryPointSuccess);
  EXPECT_OK(
      cudaGetDriverEntryPointByVersion("cuNothing", &entry, 12000, cudaEnableDefault, &status));
  EXPECT(entry == nullptr && status == cudaDriverEntryPointSymbolNotFound);
}

void memory() {
  int *a = nullptr, *b = nullptr, host[64];
  EXPECT_OK(cudaMalloc(&a, sizeof host));
  EXPECT_OK(cudaMallocHost(&b, sizeof host));
  EXPECT_OK(cudaMemset(a, 1, sizeof host));
  EXPECT_OK(cudaMemcpy(b, a, sizeof host, cudaMemcpyDefault));
  EXPECT(b[63] == 0x01010101);
  EXPECT(cudaMemcpy(b, a, 4, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
  EXPECT(cudaGetLastError() == cudaErrorInvalidMemcpyDirection &&
         cudaGetLastError() == cudaSuccess);
  cudaPointerAttributes attributes;
  EXPECT_OK(cudaPointerGetAttributes(&attributes, a));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == a);
  EXPECT_OK(cudaPointerGetAttributes(&attributes, b));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == b);
  EXPECT_OK(cudaPointerGetAttributes(&attributes, host));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  EXPECT_OK(cudaFree(a));
  EXPECT_OK(cudaFreeHost(b));
  EXPECT_OK(cudaFree(nullptr));
  char* rows = nullptr;
  std::size_t pitch = 0;
  EXPECT_OK(cudaMallocPitch(&rows, &pitch, 100, 3));
  EXPECT(pitch >= 100);
  EXPECT_OK(cudaMemset2D(rows, pitch, 7, 100, 3));
  char packed[300];
  EXPECT_OK(cudaMemcpy2D(packed, 100, rows, pitch, 100, 3, cudaMemcpyDeviceToHost));
  EXPECT(packed[0] == 7 && packed[299] == 7);
  EXPECT(cudaMemcpy2D(packed, 50, rows, pitch, 100, 3, cudaMemcpyDeviceToHost) ==
         cudaErrorInvalidPitchValue);
  cudaMemcpy3DParms block = {};
  block.srcPtr = make_cudaPitchedPtr(rows, pitch, 100, 3);
  block.dstPtr = make_cudaPitchedPtr(packed, 100, 100, 3);
  block.extent = make_cudaExtent(100, 3, 1);
  block.kind = cudaMemcpyDeviceToHost;
  std::memset(packed, 0, sizeof packed);
  EXPECT_OK(cudaMemcpy3D(&block));
  EXPECT(packed[299] == 7);
  EXPECT_OK(cudaFree(rows));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  EXPECT(format.x == 32 && format.f == cudaChannelFormatKindFloat);
  EXPECT(cudaMallocArray(&array, &format, 4) == cudaErrorNotSupported);
  cudaGetLastError();
}

void symbols() {
  int value = 0, many[4] = {10, 20, 30, 40};
  EXPECT_OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  EXPECT(value == 3);
  EXPECT_OK(cudaMemcpyToSymbol(offsets, many, sizeof many));
  EXPECT(cudaMemcpyToSymbol(offsets, many, sizeof many, 4) == cudaErrorInvalidValue);
  void* address = nullptr;
  std::size_t bytes = 0;
  EXPECT_OK(cudaGetSymbolAddress(&address, counter));
  EXPECT_OK(cudaGetSymbolSize(&bytes, offsets));
  EXPECT(address != nullptr && bytes == 16);
  EXPECT(cudaGetSymbolSize(&bytes, &value) == cudaErrorInvalidSymbol);
  EXPECT(shared_number == 5);
  shared_number = 6;
  count<<<1, 32>>>();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  EXPECT(value == 3 + 32 * 6);
  cudaGetLastError();
}

void launches(cudaStream_t stream) {
  int *out = nullptr, host[200];
  EXPECT_OK(cudaMallocAsync(&out, sizeof host, stream));
  EXPECT_OK(cudaMemsetAsync(out, 0, sizeof host, stream));
  fill<int><<<2, 128, 0, stream>>>(out, 5, 200);
  EXPECT_OK(cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 15 && host[199] == 45);
  fill<int><<<1, 2000, 0, stream>>>(out, 5, 200);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  if (stream != nullptr) {  // later it may
    dynamic<<<1, 64, 100 * 1024, stream>>>(out);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  }
  EXPECT_OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  dynamic<<<1, 64, 100 * 1024, stream>>>(out);
  EXPECT_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 63 && host[63] == 0);
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, dynamic));
  EXPECT(attributes.maxDynamicSharedSizeBytes == 100 * 1024 && attributes.binaryVersion == 90);
  int num_blocks = 0, block = 0;
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&num_blocks, dynamic, 64, 100 * 1024));
  EXPECT(num_blocks == 2);
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&num_blocks, &block, fill<int>));
  EXPECT(num_blocks >= 132 && block == 1024);
  EXPECT_OK(cudaMemset(out, 0, sizeof host));
  void* arguments[] = {&out};
  EXPECT_OK(cudaLaunchCooperativeKernel(meet, dim3(8), dim3(32), arguments, 0, stream));
  EXPECT_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 256 && host[1] == 256 && host[8] == 256);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = 2;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 4;
  config.blockDim = 1;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  EXPECT_OK(cudaLaunchKernelEx(&config, rank_in_cluster, reinterpret_cast<unsigned*>(out)));
  EXPECT_OK(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 0 && host[1] == 1 && host[3] == 1);
  EXPECT(cudaLaunchKernel(host, dim3(1), dim3(1), arguments, 0, stream) ==
         cudaErrorInvalidDeviceFunction);
  cudaGetLastError();
  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(dynamic)));
  EXPECT(function != nullptr);
  EXPECT_OK(cudaFreeAsync(out, stream));
}

void streams_events_and_graphs() {
  cudaStream_t stream;
  cudaEvent_t start, end;
  float milliseconds = -1;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreate(&start));
  EXPECT_OK(cudaEventCreateWithFlags(&end, cudaEventDefault));
  EXPECT_OK(cudaEventRecord(start, stream));
  launches(stream);
  EXPECT_OK(cudaEventRecord(end, stream));
  EXPECT_OK(cudaStreamWaitEvent(stream, end));
  EXPECT_OK(cudaEventSynchronize(end));
  EXPECT_OK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0);
  int called = 0;
  EXPECT_OK(cudaLaunchHostFunc(
      stream, [](void* data) { ++*static_cast<int*>(data); }, &called));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(called == 1);

  int *out = nullptr, host[4];
  EXPECT_OK(cudaMalloc(&out, sizeof host));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  fill<int><<<1, 32, 0, stream>>>(out, 1, 4);
  EXPECT_OK(cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  std::size_t num_nodes = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &num_nodes));
  EXPECT(num_nodes == 2);
  int value = 100, n = 4;
  void* arguments[] = {&out, &value, &n};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(fill<int>);
  params.gridDim = params.blockDim = dim3(1);
  params.blockDim.x = 32;
  params.kernelParams = arguments;
  cudaGraphNode_t nodes[2], kernel;
  EXPECT_OK(cudaGraphGetNodes(graph, nodes, &num_nodes));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 11 && host[3] == 41);
  EXPECT_OK(cudaGraphAddKernelNode(&kernel, graph, nodes, num_nodes, &params));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 110);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaFree(out));
  EXPECT_OK(cudaEventDestroy(start));
  EXPECT_OK(cudaEventDestroy(end));
  EXPECT_OK(cudaStreamDestroy(stream));
}

__global__ void count_equal(const int* a, const int* b, int n, int* num_equal) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {
    if (a[i] != b[i]) return;
    atomicAdd(num_equal, 1);
  }
}

/// What a kernel wrote is known to be written, also before the host has written anything.
void kernel_writes_first() {
  int *values = nullptr, *num_equal = nullptr, host = 0;
  EXPECT_OK(cudaMalloc(&values, 100 * sizeof *values));
  fill<int><<<1, 128>>>(values, 1, 100);
  EXPECT_OK(cudaMalloc(&num_equal, sizeof *num_equal));
  EXPECT_OK(cudaMemset(num_equal, 0, sizeof *num_equal));
  count_equal<<<1, 32>>>(values, values, 100, num_equal);
  EXPECT_OK(cudaMemcpy(&host, num_equal, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host == 100);
  EXPECT_OK(cudaFree(values));
  EXPECT_OK(cudaFree(num_equal));
}

void faults() {
  EXPECT(cudaPeekAtLastError() == cudaSuccess);
  write_null<<<1, 1>>>();
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  int* memory = nullptr;
  EXPECT(cudaMalloc(&memory, 4) == cudaErrorIllegalAddress);
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  EXPECT(std::strcmp(cudaGetErrorString(cudaErrorIllegalAddress),
                     "an illegal memory access was encountered") == 0);
  EXPECT_OK(cudaDeviceReset());
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT_OK(cudaMalloc(&memory, 4));
  fill<int><<<1, 1>>>(memory, 1, 1);
  EXPECT_OK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  devices();
  kernel_writes_first();
  memory();
  symbols();
  streams_events_and_graphs();
  launches(nullptr);
  faults();
  std::printf("%d failures\n", num_failures);
  return num_failures;
}
