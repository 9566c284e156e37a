// Our declarations of the driver's interface against the toolkit's own: cuda.h, and the library
// that the toolkit gives programs to link with.
#include "device/driver.h"

#include <cstddef>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <type_traits>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

// Enumerators came and went with versions; the tables name those of 13.0.
#if defined(CUDA_VERSION) && CUDA_VERSION >= 13000

namespace tilewright::device {
namespace {

/// Ours<T>: T with the types of cuda.h replaced by those of namespace abi.
template <class T>
struct Replace {
  using type = T;
};
template <class T>
using Ours = typename Replace<T>::type;
template <class T>
struct Replace<const T> {
  using type = const Ours<T>;
};
template <class T>
struct Replace<T*> {
  using type = Ours<T>*;
};
template <class Result, class... Args>
struct Replace<Result(Args...)> {
  using type = Ours<Result>(Ours<Args>...);
};
#define REPLACE(name)       \
  template <>               \
  struct Replace<::name> {  \
    using type = abi::name; \
  };
#define REPLACE_ENUM(name, table) REPLACE(name)
REPLACE(CUresult)
TILEWRIGHT_CU_ENUMS(REPLACE_ENUM)
REPLACE(CUctx_st)
REPLACE(CUmod_st)
REPLACE(CUfunc_st)
REPLACE(CUstream_st)
REPLACE(CUevent_st)
REPLACE(CUgraph_st)
REPLACE(CUgraphExec_st)
REPLACE(CUgraphNode_st)
REPLACE(CUkern_st)
REPLACE(CUuuid)
REPLACE(CUtensorMap)
REPLACE(CUlaunchConfig)
REPLACE(CUDA_KERNEL_NODE_PARAMS)
#undef REPLACE
#undef REPLACE_ENUM

#define TEXT(x) #x
#define EXPANDED_TEXT(x) TEXT(x)

TEST(AbiWitness, FunctionSignatures) {
  int checked = 0;
#define CHECK_SIGNATURE(member, exported, parameters)                                      \
  static_assert(                                                                           \
      std::is_same_v<decltype(abi::DriverFunctions::member), Ours<decltype(&::exported)>>, \
      #exported " differs from cuda.h");                                                   \
  ++checked;
  TILEWRIGHT_DRIVER_FUNCTIONS(CHECK_SIGNATURE, CHECK_SIGNATURE)
#undef CHECK_SIGNATURE
  EXPECT_EQ(static_cast<std::size_t>(checked) * sizeof(void*), sizeof(abi::DriverFunctions));
}

// cuda.h renames functions to their newest version by macros. A name of ours that such a macro
// would change is an outdated one, with other parameters or another meaning.
TEST(AbiWitness, FunctionVersions) {
  std::vector<std::string> outdated;
#define CHECK_VERSION(member, exported, parameters) \
  if (std::string(EXPANDED_TEXT(exported)) != #exported) outdated.emplace_back(#exported);
  TILEWRIGHT_DRIVER_FUNCTIONS(CHECK_VERSION, CHECK_VERSION)
#undef CHECK_VERSION
  // Its _v2 has the same signature (checked above) but came only with CUDA 12.8.
  EXPECT_THAT(outdated, ::testing::ElementsAre("cuEventElapsedTime"));
}

TEST(AbiWitness, EnumValues) {
#define CHECK_VALUE(ours, theirs, value)                       \
  static_assert(value == static_cast<int>(::theirs), #theirs); \
  EXPECT_STRNE(#ours, #theirs);
#define CHECK_ENUM(name, table)                       \
  static_assert(sizeof(abi::name) == sizeof(::name)); \
  table(CHECK_VALUE)
  TILEWRIGHT_CU_ENUMS(CHECK_ENUM)
  CHECK_ENUM(CUresult, TILEWRIGHT_CU_RESULTS)
#undef CHECK_ENUM
#undef CHECK_VALUE
  static_assert(abi::kMemHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
}

TEST(AbiWitness, StructLayouts) {
  static_assert(sizeof(abi::CUdeviceptr) == sizeof(::CUdeviceptr));
  static_assert(sizeof(abi::CUdevice) == sizeof(::CUdevice));
  static_assert(sizeof(abi::CUuuid) == sizeof(::CUuuid));
  static_assert(sizeof(abi::CUtensorMap) == sizeof(::CUtensorMap));
  static_assert(alignof(::CUtensorMap) % alignof(abi::CUtensorMap) == 0);

  static_assert(sizeof(abi::CUlaunchAttributeValue) == sizeof(::CUlaunchAttributeValue));
  static_assert(alignof(abi::CUlaunchAttributeValue) == alignof(::CUlaunchAttributeValue));
  static_assert(sizeof(abi::ClusterDim) == sizeof(::CUlaunchAttributeValue::clusterDim));
  static_assert(sizeof(abi::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
  static_assert(alignof(abi::CUlaunchAttribute) == alignof(::CUlaunchAttribute));
  static_assert(sizeof(abi::CUlaunchConfig) == sizeof(::CUlaunchConfig));
  static_assert(alignof(abi::CUlaunchConfig) == alignof(::CUlaunchConfig));
#define CHECK_MEMBER(type, ours, theirs)                                \
  static_assert(offsetof(abi::type, ours) == offsetof(::type, theirs)); \
  static_assert(sizeof(abi::type::ours) == sizeof(::type::theirs));
  CHECK_MEMBER(CUlaunchAttribute, id, id)
  CHECK_MEMBER(CUlaunchAttribute, value, value)
  CHECK_MEMBER(CUlaunchConfig, grid_dim_x, gridDimX)
  CHECK_MEMBER(CUlaunchConfig, grid_dim_y, gridDimY)
  CHECK_MEMBER(CUlaunchConfig, grid_dim_z, gridDimZ)
  CHECK_MEMBER(CUlaunchConfig, block_dim_x, blockDimX)
  CHECK_MEMBER(CUlaunchConfig, block_dim_y, blockDimY)
  CHECK_MEMBER(CUlaunchConfig, block_dim_z, blockDimZ)
  CHECK_MEMBER(CUlaunchConfig, shared_mem_bytes, sharedMemBytes)
  CHECK_MEMBER(CUlaunchConfig, stream, hStream)
  CHECK_MEMBER(CUlaunchConfig, attrs, attrs)
  CHECK_MEMBER(CUlaunchConfig, num_attrs, numAttrs)
  static_assert(sizeof(abi::CUDA_KERNEL_NODE_PARAMS) == sizeof(::CUDA_KERNEL_NODE_PARAMS));
  CHECK_MEMBER(CUDA_KERNEL_NODE_PARAMS, func, func)
  CHECK_MEMBER(CUDA_KERNEL_NODE_PARAMS, shared_mem_bytes, sharedMemBytes)
  CHECK_MEMBER(CUDA_KERNEL_NODE_PARAMS, kern, kern)
  CHECK_MEMBER(CUDA_KERNEL_NODE_PARAMS, ctx, ctx)
#undef CHECK_MEMBER
}

// What a union member means is in its bytes: write with our type, read with theirs.
TEST(AbiWitness, LaunchAttributesReadBack) {
  abi::CUlaunchAttribute ours{};
  ours.id = abi::CUlaunchAttributeID::kClusterDimension;
  ours.value.cluster_dim = {2, 3, 4};
  ::CUlaunchAttribute theirs;
  std::memcpy(&theirs, &ours, sizeof theirs);
  EXPECT_EQ(theirs.id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(theirs.value.clusterDim.x, 2u);
  EXPECT_EQ(theirs.value.clusterDim.y, 3u);
  EXPECT_EQ(theirs.value.clusterDim.z, 4u);

  ours = {};
  ours.value.programmatic_stream_serialization_allowed = 1;
  std::memcpy(&theirs, &ours, sizeof theirs);
  EXPECT_EQ(theirs.value.programmaticStreamSerializationAllowed, 1);
}

#ifdef TILEWRIGHT_CUDA_INCLUDE
// The compiler cannot list an enum, but the header is text.
TEST(AbiWitness, EveryResultOfTheHeaderIsInTheTable) {
  std::ifstream file(TILEWRIGHT_CUDA_INCLUDE "/cuda.h");
  ASSERT_TRUE(file.is_open());
  std::stringstream buffer;
  buffer << file.rdbuf();
  const std::string header = buffer.str();
  const std::size_t begin = header.find("typedef enum cudaError_enum");
  const std::size_t end = header.find("} CUresult;");
  ASSERT_NE(begin, std::string::npos);
  ASSERT_LT(begin, end);
  const std::string body = header.substr(begin, end - begin);

  std::map<std::string, int> theirs;
  const std::regex row(R"((CUDA_[A-Z0-9_]+)\s*=\s*(\d+))");
  for (std::sregex_iterator it(body.begin(), body.end(), row), last; it != last; ++it) {
    theirs[(*it)[1]] = std::stoi((*it)[2]);
  }
  std::map<std::string, int> ours;
#define ADD(name, header_name, value) ours[#header_name] = value;
  TILEWRIGHT_CU_RESULTS(ADD)
#undef ADD
  EXPECT_GT(theirs.size(), 100u);
  EXPECT_EQ(ours, theirs);
}

// The toolkit's stub exports what a driver of its version exports.
TEST(AbiWitness, StubLibraryExportsEveryFunction) {
  void* library = nullptr;
  for (const char* folder : {"/../lib64/stubs/", "/../lib/stubs/"}) {
    const std::string path = std::string(TILEWRIGHT_CUDA_INCLUDE) + folder + "libcuda.so";
    if (library == nullptr) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) GTEST_SKIP() << "the toolkit at hand has no stub of the driver";
#define CHECK_EXPORT(member, exported, parameters) \
  EXPECT_NE(dlsym(library, #exported), nullptr) << #exported;
  TILEWRIGHT_DRIVER_FUNCTIONS(CHECK_EXPORT, CHECK_EXPORT)
#undef CHECK_EXPORT
  dlclose(library);
}
#endif

}  // namespace
}  // namespace tilewright::device

#else

TEST(AbiWitness, CudaHeader) {
  GTEST_SKIP() << "no cuda.h of CUDA 13.0 or newer; set TILEWRIGHT_CUDA_INCLUDE to compare with it";
}

#endif
