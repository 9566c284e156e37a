// Our declarations of the runtime's interface against the toolkit's own headers, and the names that
// the library exports.
#include "sim/runtime/abi.h"
#include "sim/runtime/forwards.h"
#include "sim/runtime/unsupported.h"

#include <cstddef>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif

namespace tilewright::sim::runtime {
namespace {

TEST(SimRuntime, ExportsEveryNameUnderTheVersionOfThePrograms) {
  void* const library = dlopen(TILEWRIGHT_SIM_FOLDER "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto has = [&](const char* name) {
    return dlvsym(library, name, "libcudart.so.13") != nullptr;
  };
#define TILEWRIGHT_EXPECT(name, ...) EXPECT_TRUE(has(#name)) << #name;
  TILEWRIGHT_SIM_RUNTIME_FORWARDS(TILEWRIGHT_EXPECT)
  TILEWRIGHT_SIM_RUNTIME_UNSUPPORTED(TILEWRIGHT_EXPECT)
#undef TILEWRIGHT_EXPECT
  for (const char* name : {"cudaMemcpy_ptds", "cudaLaunchKernelExC_ptsz", "__cudaLaunchKernel_ptsz",
                           "__cudaGetKernel", "__cudaInitModule"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  EXPECT_EQ(
      dlsym(library, "_ZN10tilewright3sim7runtime3sayESt17basic_string_viewIcSt11char_traitsIcEE"),
      nullptr)
      << "nothing else is seen";
}

#if defined(CUDART_VERSION) && CUDART_VERSION >= 13000 && CUDART_VERSION < 14000

TEST(SimRuntime, ErrorsAreThoseOfTheHeader) {
#define TILEWRIGHT_EXPECT(ours, theirs, value, text) \
  EXPECT_EQ(static_cast<int>(::theirs), value);      \
  EXPECT_EQ(static_cast<int>(cudaError::ours), value);
  TILEWRIGHT_SIM_RUNTIME_ERRORS(TILEWRIGHT_EXPECT)
#undef TILEWRIGHT_EXPECT
}

#define EXPECT_SIZE(ours, theirs) EXPECT_EQ(sizeof(runtime::ours), sizeof(::theirs)) << #theirs
#define EXPECT_MEMBER(ours, member, theirs, their_member) \
  EXPECT_EQ(offsetof(runtime::ours, member), offsetof(::theirs, their_member)) << #their_member

TEST(SimRuntime, StructuresHaveTheHeadersLayout) {
  EXPECT_SIZE(cudaDeviceProp, cudaDeviceProp);
  EXPECT_SIZE(cudaFuncAttributes, cudaFuncAttributes);
  EXPECT_SIZE(cudaPointerAttributes, cudaPointerAttributes);
  EXPECT_SIZE(cudaMemcpy3DParms, cudaMemcpy3DParms);
  EXPECT_SIZE(cudaMemcpy3DPeerParms, cudaMemcpy3DPeerParms);
  EXPECT_SIZE(cudaLaunchConfig, cudaLaunchConfig_t);
  EXPECT_SIZE(cudaKernelNodeParams, cudaKernelNodeParams);
  EXPECT_SIZE(cudaMemcpyNodeParams, cudaMemcpyNodeParams);
  EXPECT_SIZE(cudaGraphNodeParams, cudaGraphNodeParams);
  EXPECT_SIZE(cudaChannelFormatDesc, cudaChannelFormatDesc);
  EXPECT_EQ(sizeof(CUDA_MEMSET_NODE_PARAMS), sizeof(::cudaMemsetParams));
  EXPECT_EQ(sizeof(CUDA_HOST_NODE_PARAMS), sizeof(::cudaHostNodeParams));
  EXPECT_EQ(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), sizeof(::cudaGraphInstantiateParams));
  EXPECT_EQ(sizeof(CUlaunchAttribute), sizeof(::cudaLaunchAttribute));
  EXPECT_EQ(sizeof(CUmemPoolProps), sizeof(::cudaMemPoolProps));
  EXPECT_MEMBER(cudaMemcpyNodeParams, copy_params, cudaMemcpyNodeParams, copyParams);
  EXPECT_MEMBER(cudaLaunchConfig, attrs, cudaLaunchConfig_st, attrs);
  EXPECT_MEMBER(cudaFuncAttributes, required_cluster_width, cudaFuncAttributes,
                requiredClusterWidth);
  EXPECT_MEMBER(cudaFuncAttributes, non_portable_cluster_size_allowed, cudaFuncAttributes,
                nonPortableClusterSizeAllowed);
  EXPECT_MEMBER(cudaMemcpy3DParms, extent, cudaMemcpy3DParms, extent);
  EXPECT_MEMBER(cudaMemcpy3DPeerParms, dst_device, cudaMemcpy3DPeerParms, dstDevice);
}

TEST(SimRuntime, DevicePropertiesStandWhereTheHeaderHasThem) {
  EXPECT_MEMBER(cudaDeviceProp, total_global_mem, cudaDeviceProp, totalGlobalMem);
  EXPECT_MEMBER(cudaDeviceProp, major, cudaDeviceProp, major);
  EXPECT_MEMBER(cudaDeviceProp, max_texture_3d_alt, cudaDeviceProp, maxTexture3DAlt);
  EXPECT_MEMBER(cudaDeviceProp, surface_alignment, cudaDeviceProp, surfaceAlignment);
  EXPECT_MEMBER(cudaDeviceProp, l2_cache_size, cudaDeviceProp, l2CacheSize);
  EXPECT_MEMBER(cudaDeviceProp, shared_mem_per_multiprocessor, cudaDeviceProp,
                sharedMemPerMultiprocessor);
  EXPECT_MEMBER(cudaDeviceProp, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
  EXPECT_MEMBER(cudaDeviceProp, shared_mem_per_block_optin, cudaDeviceProp, sharedMemPerBlockOptin);
  EXPECT_MEMBER(cudaDeviceProp, cluster_launch, cudaDeviceProp, clusterLaunch);
  EXPECT_MEMBER(cudaDeviceProp, host_numa_id, cudaDeviceProp, hostNumaId);
  EXPECT_MEMBER(cudaDeviceProp, reserved, cudaDeviceProp, reserved);
}

#endif

}  // namespace
}  // namespace tilewright::sim::runtime
