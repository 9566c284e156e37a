/* Names by which code that NVIDIA's CuTe DSL compiles calls the CUDA runtime and the driver. Its own library has them
   too, with NVIDIA's runtime inside, which runs on NVIDIA's driver only; loaded before that library, these serve in
   their place. Each jumps to the function of the same name without the underscore. */

#if defined(__x86_64__)
#define JUMP(name) jmp name@PLT
#elif defined(__aarch64__)
#define JUMP(name) b name
#endif

#define FORWARD_TO(alias, name) \
  .globl alias; \
  .type alias, %function; \
  alias: JUMP(name)
#define FORWARD(name) FORWARD_TO(_##name, name)

    .text
FORWARD_TO(_cudaLaunchKernelEx, cudaLaunchKernelExC)
FORWARD(cuDeviceGet)
FORWARD(cuKernelGetAttribute)
FORWARD(cuLibraryGetGlobal)
FORWARD(cuLibraryGetKernel)
FORWARD(cuLibraryGetKernelCount)
FORWARD(cuLibraryGetManaged)
FORWARD(cuLibraryGetModule)
FORWARD(cuLibraryGetUnifiedFunction)
FORWARD(cuLibraryLoadData)
FORWARD(cuLibraryLoadFromFile)
FORWARD(cuLibraryUnload)
FORWARD(cuTensorMapEncodeTiled)
FORWARD(cudaDeviceGetAttribute)
FORWARD(cudaDeviceSynchronize)
FORWARD(cudaEventCreate)
FORWARD(cudaEventDestroy)
FORWARD(cudaEventElapsedTime)
FORWARD(cudaEventRecord)
FORWARD(cudaFree)
FORWARD(cudaFreeAsync)
FORWARD(cudaFreeHost)
FORWARD(cudaFuncSetAttribute)
FORWARD(cudaGetDevice)
FORWARD(cudaGetDeviceCount)
FORWARD(cudaGetDeviceProperties)
FORWARD(cudaGraphDestroy)
FORWARD(cudaGraphExecDestroy)
FORWARD(cudaGraphInstantiate)
FORWARD(cudaGraphLaunch)
FORWARD(cudaKernelSetAttributeForDevice)
FORWARD(cudaLaunchKernel)
FORWARD(cudaLibraryGetGlobal)
FORWARD(cudaLibraryGetKernel)
FORWARD(cudaLibraryGetKernelCount)
FORWARD(cudaLibraryGetManaged)
FORWARD(cudaLibraryGetUnifiedFunction)
FORWARD(cudaLibraryLoadData)
FORWARD(cudaLibraryLoadFromFile)
FORWARD(cudaLibraryUnload)
FORWARD(cudaMalloc)
FORWARD(cudaMallocAsync)
FORWARD(cudaMallocHost)
FORWARD(cudaMallocManaged)
FORWARD(cudaMemcpy)
FORWARD(cudaMemcpyAsync)
FORWARD(cudaMemset)
FORWARD(cudaMemsetAsync)
FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
FORWARD(cudaProfilerStart)
FORWARD(cudaProfilerStop)
FORWARD(cudaSetDevice)
FORWARD(cudaStreamAddCallback)
FORWARD(cudaStreamBeginCapture)
FORWARD(cudaStreamCreate)
FORWARD(cudaStreamDestroy)
FORWARD(cudaStreamEndCapture)
FORWARD(cudaStreamSynchronize)
FORWARD(cudaStreamWaitEvent)

    .section .note.GNU-stack, "", %progbits
