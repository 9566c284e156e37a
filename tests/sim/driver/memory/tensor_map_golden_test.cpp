// Tensor maps as an H200's driver makes them: every call in tests/golden/hardware/tensor_map.txt.gz
// must end in the same way here, with the same 128 bytes.
#include "sim/async/tensor_map.h"
#include "tests/sim/driver/driver_fixture.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <zlib.h>

namespace tilewright::sim::abi {
namespace {

/// "tiled dtype=13 rank=2 ... -> refused 1"
struct Recorded {
  std::string line, kind, result;
  std::map<std::string, std::string> arguments;

  std::uint64_t number(const std::string& name, int base = 10) const {
    return std::stoull(arguments.at(name), nullptr, base);
  }
  template <class T>
  std::vector<T> numbers(const std::string& name) const {
    std::vector<T> out;
    std::istringstream stream(arguments.at(name));
    for (std::string number; std::getline(stream, number, ',');) {
      out.push_back(static_cast<T>(std::stoll(number)));
    }
    return out;
  }
  template <class T>
  T code(const std::string& name) const {
    return static_cast<T>(number(name));
  }
};

std::string read_compressed(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot read " + path);
  std::string text;
  char block[1 << 16];
  for (int count = 0; (count = gzread(file, block, sizeof block)) > 0;) {
    text.append(block, static_cast<std::size_t>(count));
  }
  gzclose(file);
  return text;
}

std::vector<Recorded> recorded_calls() {
  std::istringstream lines(read_compressed(std::string(TILEWRIGHT_SOURCE_DIR) +
                                           "/tests/golden/hardware/tensor_map.txt.gz"));
  std::vector<Recorded> calls;
  for (std::string line; std::getline(lines, line);) {
    Recorded call;
    call.line = line;
    const std::size_t arrow = line.find(" -> ");
    call.result = line.substr(arrow + 4);
    std::istringstream words(line.substr(0, arrow));
    words >> call.kind;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      call.arguments[word.substr(0, equals)] = word.substr(equals + 1);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

/// Of im2col wide, which were not written down: rows padded to 16 bytes, then dense.
std::vector<std::uint64_t> wide_strides(const Recorded& call,
                                        const std::vector<std::uint64_t>& dims) {
  constexpr std::uint64_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  std::uint64_t stride = (dims[0] * kBytes[call.number("dtype")] + 15) / 16 * 16;
  std::vector<std::uint64_t> strides;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    strides.push_back(stride);
    stride *= dims[i];
  }
  return strides;
}

CUresult repeat(const DriverTable& cu, const Recorded& call, CUtensorMap& map) {
  const auto type = call.code<CUtensorMapDataType>("dtype");
  const auto rank = static_cast<std::uint32_t>(call.number("rank"));
  auto* const address = reinterpret_cast<void*>(call.number("address", 16));
  const auto swizzle = call.code<CUtensorMapSwizzle>("swizzle");
  const auto l2 = call.code<CUtensorMapL2promotion>("l2");
  const auto fill = call.code<CUtensorMapFloatOOBfill>("oob");
  const auto dims = call.numbers<std::uint64_t>("dims");
  if (call.kind == "im2col_wide") {
    const std::vector<std::uint32_t> ones(rank, 1);
    const auto strides = wide_strides(call, dims);
    return cu.cuTensorMapEncodeIm2colWide(
        &map, type, rank, address, dims.data(), strides.data(), call.numbers<int>("lower").at(0),
        call.numbers<int>("upper").at(0), static_cast<std::uint32_t>(call.number("channels")),
        static_cast<std::uint32_t>(call.number("pixels")), ones.data(),
        static_cast<CUtensorMapInterleave>(0), call.code<CUtensorMapIm2ColWideMode>("mode"),
        swizzle, l2, fill);
  }
  const auto strides = call.numbers<std::uint64_t>("strides");
  const auto elements = call.numbers<std::uint32_t>("elements");
  const auto interleave = call.code<CUtensorMapInterleave>("interleave");
  if (call.kind == "tiled") {
    const auto box = call.numbers<std::uint32_t>("box");
    return cu.cuTensorMapEncodeTiled(&map, type, rank, address, dims.data(), strides.data(),
                                     box.data(), elements.data(), interleave, swizzle, l2, fill);
  }
  const auto lower = call.numbers<int>("lower");
  const auto upper = call.numbers<int>("upper");
  return cu.cuTensorMapEncodeIm2col(&map, type, rank, address, dims.data(), strides.data(),
                                    lower.data(), upper.data(),
                                    static_cast<std::uint32_t>(call.number("channels")),
                                    static_cast<std::uint32_t>(call.number("pixels")),
                                    elements.data(), interleave, swizzle, l2, fill);
}

std::string hex_of(const CUtensorMap& map) {
  std::string text;
  for (const unsigned char byte : reinterpret_cast<const unsigned char(&)[128]>(map)) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// The other way round, as a tensor copy reads it.
void expect_understood(const Recorded& call, const CUtensorMap& map) {
  const auto& object = reinterpret_cast<const std::array<std::byte, kTensorMapBytes>&>(map);
  const DecodedTensorMap decoded = decode_tensor_map(object);
  EXPECT_EQ(decoded.problem, "") << call.line;
  EXPECT_EQ(decoded.fields.rank, call.number("rank"));
  EXPECT_EQ(decoded.fields.address, call.number("address", 16));
  EXPECT_EQ(static_cast<std::uint64_t>(decoded.fields.element), call.number("dtype"));
  const auto dims = call.numbers<std::uint64_t>("dims");
  EXPECT_TRUE(std::equal(dims.begin(), dims.end(), decoded.fields.dims.begin())) << call.line;
  std::array<std::byte, kTensorMapBytes> again;
  encode(decoded.fields, again);
  EXPECT_EQ(again, object) << call.line;
}

/// The driver says why it refuses each.
class TensorMapGoldenTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    testing::internal::CaptureStderr();
  }
  void TearDown() override {
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::HasSubstr("sim: tensor map: "));
    DriverTest::TearDown();
  }
};

TEST_F(TensorMapGoldenTest, EveryCallEndsAsOnAnH200) {
  std::map<std::string, int> taken, refused;
  for (const Recorded& call : recorded_calls()) {
    CUtensorMap map;
    std::memset(&map, 0xa5, sizeof map);
    const CUtensorMap before = map;
    const CUresult result = repeat(cu, call, map);
    if (call.result.starts_with("refused ")) {
      ++refused[call.kind];
      EXPECT_EQ(static_cast<int>(result), std::stoi(call.result.substr(8))) << call.line;
      EXPECT_EQ(hex_of(map), hex_of(before)) << call.line;
    } else {
      ++taken[call.kind];
      EXPECT_EQ(result, CUresult{}) << call.line;
      EXPECT_EQ(hex_of(map), call.result) << call.line;
      expect_understood(call, map);
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(taken,
            (std::map<std::string, int>{{"tiled", 571}, {"im2col", 709}, {"im2col_wide", 309}}));
  EXPECT_EQ(refused,
            (std::map<std::string, int>{{"tiled", 5429}, {"im2col", 1957}, {"im2col_wide", 691}}));
}

}  // namespace
}  // namespace tilewright::sim::abi
