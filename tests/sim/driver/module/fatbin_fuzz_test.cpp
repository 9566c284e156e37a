// Thousands of damaged fatbins: their PTX is found or they are refused.
#include "base/file.h"
#include "tests/base/mutator.h"
#include "tests/sim/driver/driver_fixture.h"

#include <cstring>

namespace tilewright::sim::abi {
namespace {

constexpr int kNumFiles = 3000;
constexpr std::uint16_t kHeaderBytes = 16;

/// The driver gets an address without a size, so that it must believe the first header.
void make_header_true(std::string& file) {
  file.resize(std::max<std::size_t>(file.size(), kHeaderBytes));
  const std::uint32_t magic = 0xba55ed50;
  const std::uint64_t payload_bytes = file.size() - kHeaderBytes;
  std::memcpy(file.data(), &magic, sizeof magic);
  std::memcpy(file.data() + 6, &kHeaderBytes, sizeof kHeaderBytes);
  std::memcpy(file.data() + 8, &payload_bytes, sizeof payload_bytes);
}

class FatbinFuzz : public DriverTest {};

TEST_F(FatbinFuzz, DamagedFatbinsAreReadOrRefused) {
  std::vector<std::string> files;
  for (const char* name : {"none", "speed", "size", "default"}) {
    const std::string path = std::string(TILEWRIGHT_TEST_DATA) + "/fatbin/ptx_" + name + ".fatbin";
    files.emplace_back(MappedFile(path).text());
  }
  Mutator mutator(13, {std::string("\x01\0\x01\x01", 4), std::string("\0\x20\0\0", 4),
                       std::string("\0\x80\0\0", 4), "\xff\xff\xff\xff", ".target sm_90a"});
  testing::internal::CaptureStderr();  // each is refused with a sentence
  int num_loaded = 0;
  for (int i = 0; i < kNumFiles; ++i) {
    std::string file = mutator.mutate(mutator.one_of(files));
    make_header_true(file);
    const std::vector<char> image(file.begin(), file.end());  // no byte more, for the sanitizer
    CUmodule module = nullptr;
    if (cu.cuModuleLoadData(&module, image.data()) != CUresult::kSuccess) continue;
    ++num_loaded;
    EXPECT_OK(cu.cuModuleUnload(module));
  }
  testing::internal::GetCapturedStderr();
  EXPECT_GT(num_loaded, kNumFiles / 100);
  EXPECT_LT(num_loaded, kNumFiles * 99 / 100);
}

}  // namespace
}  // namespace tilewright::sim::abi
