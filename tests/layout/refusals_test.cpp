// Wrong use names the operands and the law; at compile time the compiler quotes the law.

#include "base/error.h"
#include "layout/fragment_views.h"
#include "layout/recast.h"
#include "layout_families.h"
#include "tests/base/scoped_folder.h"

#include <array>
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>

namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Operation>
std::string refusal(Operation operation) {
  try {
    operation();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Refusals, NameTheOperandsAndTheLaw) {
  EXPECT_THAT(
      refusal([] { composition(parse_layout("(6,4):(1,10)"), parse_layout("3:4")); }),
      AllOf(HasSubstr("composition A o B: A = (6,4):(1,10), B = 3:4"), HasSubstr("must divide")));
  EXPECT_THAT(refusal([] { composition(parse_layout("(6,4):(1,10)"), parse_layout("8:1")); }),
              AllOf(HasSubstr("B = 8:1"), HasSubstr("multiple of the part of A that it fills")));
  EXPECT_THAT(refusal([] { complement(parse_layout("(3,4):(3,4)"), 40); }),
              AllOf(HasSubstr("complement: A = (3,4):(3,4)"), HasSubstr("injective")));
  EXPECT_THAT(refusal([] { make_layout(make_shape(2, 3), make_stride(1, make_stride(2, 3))); }),
              AllOf(HasSubstr("shape = (2,3), stride = (1,(2,3))"), HasSubstr("same nesting")));
  EXPECT_THAT(refusal([] { make_layout(make_shape(2, 0)); }),
              HasSubstr("extents must be at least 1"));
  EXPECT_THAT(
      refusal([] { parse_layout("(2,3)")(make_coord(1, 1, 1)); }),
      AllOf(HasSubstr("coordinate (1,1,1) in shape (2,3)"), HasSubstr("nesting of the shape")));
  EXPECT_THAT(refusal([] { logical_divide(parse_layout("(2,3)"), make_tiler(2, 3, 4)); }),
              AllOf(HasSubstr("A has 2 modes, B has 3")));
  EXPECT_THAT(refusal([] { mode(parse_layout("(2,3)"), 2); }),
              HasSubstr("mode 2 does not exist; there are 2"));
  EXPECT_THAT(refusal([] { upcast(parse_layout("8:3"), 2); }),
              HasSubstr("must be contiguous, and all there"));
  EXPECT_THAT(refusal([] { tile_to_shape(parse_layout("(2,3)"), IntTuple(6)); }),
              HasSubstr("A has 2 modes, B has 1"));
  EXPECT_THAT(refusal([] { make_ordered_layout(make_shape(2, 3), make_shape(0, 1, 2)); }),
              HasSubstr("order (0,1,2) for shape (2,3)"));
  EXPECT_THAT(refusal([] {
                convert_c_layout_to_a_layout(parse_layout("((2,2,3),1,1)"), make_shape(2, 2, 2));
              }),
              HasSubstr("operand values (2,2,2), accumulator values (2,2,3)"));
  Layout wide = parse_layout("(2,2,2,2,2,2,2,2)");
  EXPECT_THAT(refusal([&] { make_layout(wide, wide, wide, wide); }), HasSubstr("room for 24"));
}

// Compiles a snippet and returns what the compiler says.
struct Compilation {
  bool succeeded = false;
  std::string output;
};
Compilation run(const std::string& command) {
  Compilation out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 512> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) out.output += buffer.data();
  out.succeeded = pclose(pipe) == 0;
  return out;
}

Compilation compile(const std::string& body) {
  const ScopedFolder folder;
  const std::string path = folder / "refusal.cpp";
  std::ofstream(path) << "#include \"layout/parse.h\"\n#include \"layout/slice.h\"\n#include "
                         "\"layout/constant.h\"\n"
                         "using namespace tilewright;\n"
                      << body << "\n";
  const std::string command =
      std::string(TILEWRIGHT_CXX) + " -std=c++20 -fsyntax-only -fdiagnostics-plain-output -I" +
      TILEWRIGHT_SOURCE_DIR + "/src -I" + TILEWRIGHT_SOURCE_DIR + "/include " + path;
  return run(command);
}

// Refused, in few lines, with the law in plain words.
void expect_law(const std::string& body, const char* law) {
  const Compilation result = compile(body);
  EXPECT_FALSE(result.succeeded) << body;
  EXPECT_THAT(result.output, HasSubstr(law));
  EXPECT_LE(std::ranges::count(result.output, '\n'), 25) << result.output;
}

TEST(Refusals, AreReadableAtCompileTime) {
  EXPECT_TRUE(compile("constexpr Layout a = composition(\"(6,4):(1,10)\"_layout, \"3:2\"_layout);")
                  .succeeded);
  expect_law("constexpr Layout a = composition(\"(6,4):(1,10)\"_layout, \"3:4\"_layout);",
             "law::strides_of_b_must_divide_the_extents_of_a_they_cross");
  expect_law("constexpr Layout a = complement(\"(3,4):(3,4)\"_layout, 40);",
             "law::complement_needs_an_injective_layout_with_nested_strides");
  expect_law("constexpr Layout a = \"(6,4:(1,10)\"_layout;", "malformed_layout_text");
  expect_law("constexpr auto a = make_layout(make_shape(2, 3), make_stride(1, make_stride(2, 3)));",
             "law::shape_and_stride_must_be_nested_alike");
  expect_law("constexpr auto a = offset_in<\"(2,(3,4))\"_layout>(1, 2, 3);",
             "offset_in takes one linear index, or one index per mode of the layout");
}

// Device code has layouts as constants. The mechanism is in the headers alone, so a host compiler
// that is told it compiles for a device shows it; with nvcc at hand, nvcc and ptxas do.
constexpr const char* kAdvice =
    "layouts_must_be_constants_in_device_code__pass_run_time_coordinates_to_offset_in";
constexpr const char* kMma =
    "[[maybe_unused]] constexpr TiledMma mma{arch::make_wgmma_rs(64, 16)};\n"
    "[[maybe_unused]] constexpr Layout tile = make_layout(make_shape(64, 64));\n"
    "[[maybe_unused]] constexpr Layout identity = make_identity_layout(make_shape(64, 64));\n"
    "[[maybe_unused]] constexpr Layout places = partition_C(mma, identity);\n";

struct DeviceSnippet {
  const char* body;
  const char* refusal;  ///< empty: accepted
};
const DeviceSnippet kDeviceSnippets[] = {
    {"out[0] = partition_C(get_slice(mma, n), identity).offset.value[0];", kAdvice},
    {"out[0] = get_slice(mma, n).thr_vmnk.value[0];", kAdvice},
    {"out[0] = tile(n);", kAdvice},
    {"out[0] = tile(n, 1);", kAdvice},
    {"out[0] = coordinate(identity, IntTuple(n)).value[0];", kAdvice},
    {"out[0] = idx2crd(n, make_shape(2, 3)).value[0];", kAdvice},
    {"out[0] = make_layout(make_shape(n, 3)).stride[1];", kAdvice},
    {"Layout a = tile; a.shape[0] = n; out[0] = size(a);", "product_must_fit_in_63_bits"},
    {"out[0] = offset_in<tile>(n, n + 1);", ""},
    {"out[0] = coordinate_in<places>(n, 3)[1];", ""},
    {"constexpr auto part = partition_C(get_slice(mma, 5), tile); out[n] = part.offset.value[0];",
     ""},
};

std::string device_source(const DeviceSnippet& snippet, const char* signature) {
  return std::string("#include \"arch/fragments/wgmma.h\"\n#include \"layout/constant.h\"\n") +
         "#include \"layout/fragment_views.h\"\nusing namespace tilewright;\n" + signature +
         " {\n" + kMma + snippet.body + "\n}\n";
}

void expect_refusal(const DeviceSnippet& snippet, const Compilation& result) {
  EXPECT_EQ(result.succeeded, *snippet.refusal == '\0') << snippet.body << "\n" << result.output;
  EXPECT_THAT(result.output, HasSubstr(snippet.refusal)) << snippet.body;
}

TEST(Refusals, DeviceCodeHasLayoutsAsConstants) {
  const ScopedFolder folder;
  const std::string path = folder / "device.cpp";
  for (const DeviceSnippet& snippet : kDeviceSnippets) {
    std::ofstream(path) << device_source(snippet, "void kernel(std::int64_t* out, int n)")
                        << "int main(int n, char**) { std::int64_t out[8] = {}; kernel(out, n); "
                           "return static_cast<int>(out[0] + out[1]); }\n";
    expect_refusal(snippet, run(std::string(TILEWRIGHT_CXX) +
                                " -std=c++20 -O1 -w -D__CUDACC__ -D__CUDA_ARCH__=900 -D__host__= "
                                "-D__device__= -I" +
                                TILEWRIGHT_SOURCE_DIR + "/src " + path + " -o " +
                                std::string(folder / "device")));
  }
}

TEST(Refusals, NvccAndPtxasRefuseLayoutsOfTheRunTime) {
  if (std::string(TILEWRIGHT_NVCC).empty()) GTEST_SKIP() << "configured without nvcc";
  const ScopedFolder folder;
  const std::string path = folder / "device.cu";
  for (const DeviceSnippet& snippet :
       {kDeviceSnippets[0], kDeviceSnippets[3], kDeviceSnippets[9]}) {
    std::ofstream(path) << device_source(
        snippet, "extern \"C\" __global__ void kernel(std::int64_t* out, int n)");
    expect_refusal(snippet,
                   run(std::string(TILEWRIGHT_NVCC) +
                       " -std=c++20 -O3 --expt-relaxed-constexpr -Werror all-warnings -I " +
                       TILEWRIGHT_SOURCE_DIR + "/src -arch=sm_90a -cubin " + path + " -o " +
                       std::string(folder / "device.cubin")));
  }
}

}  // namespace
}  // namespace tilewright
