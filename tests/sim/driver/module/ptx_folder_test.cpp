// Machine code whose PTX lies in a folder: the file with the same kernels is run.
#include "tests/base/scoped_env.h"
#include "tests/base/scoped_folder.h"
#include "tests/sim/driver/driver_fixture.h"

#include <cstring>
#include <fstream>
#include <vector>

namespace tilewright::sim::abi {
namespace {

constexpr std::size_t kHeaderBytes = 64, kSectionBytes = 64;

template <class T>
void put(std::vector<char>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// An ELF file with sections .text.NAME and nothing in them.
std::vector<char> make_cubin(const std::vector<std::string>& kernels) {
  std::string names(1, '\0');
  std::vector<std::uint32_t> name_at{0};
  for (const std::string& kernel : kernels) {
    name_at.push_back(static_cast<std::uint32_t>(names.size()));
    names += ".text." + kernel + '\0';
  }
  const std::size_t sections_at = (kHeaderBytes + names.size() + 7) / 8 * 8;
  const std::size_t num_sections = kernels.size() + 2;
  std::vector<char> elf(sections_at + num_sections * kSectionBytes);
  std::memcpy(elf.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  put<std::uint64_t>(elf, 40, sections_at);
  put<std::uint16_t>(elf, 58, kSectionBytes);
  put<std::uint16_t>(elf, 60, static_cast<std::uint16_t>(num_sections));
  put<std::uint16_t>(elf, 62, static_cast<std::uint16_t>(num_sections - 1));
  std::memcpy(elf.data() + kHeaderBytes, names.data(), names.size());
  for (std::size_t i = 0; i < kernels.size(); ++i)
    put<std::uint32_t>(elf, sections_at + (i + 1) * kSectionBytes, name_at[i + 1]);
  const std::size_t last = sections_at + (num_sections - 1) * kSectionBytes;
  put<std::uint64_t>(elf, last + 24, kHeaderBytes);
  put<std::uint64_t>(elf, last + 32, names.size());
  return elf;
}

std::string ptx_of(const std::vector<std::string>& kernels) {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
  for (const std::string& kernel : kernels) text += ".visible .entry " + kernel + "() { ret; }\n";
  return text;
}

class PtxFolder : public DriverTest {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  CUresult load(const std::vector<char>& image) {
    testing::internal::CaptureStderr();
    const CUresult result = cu.cuModuleLoadData(&module_, image.data());
    said_ = testing::internal::GetCapturedStderr();
    return result;
  }

  ScopedFolder folder_;
  CUmodule module_ = nullptr;
  std::string said_;
};

TEST_F(PtxFolder, WithoutItMachineCodeIsRefusedAndTheVariableNamed) {
  EXPECT_EQ(load(make_cubin({"first"})), CUresult::kNoBinaryForGpu);
  EXPECT_THAT(said_, testing::HasSubstr("TILEWRIGHT_SIM_PTX"));
}

TEST_F(PtxFolder, TheFileWithAllKernelsIsRun) {
  write("one.ptx", ptx_of({"first"}));
  write("longer.ptx", ptx_of({"first", "second_and_more"}));
  write("both.ptx", ptx_of({"second", "first"}));
  const ScopedEnv variable("TILEWRIGHT_SIM_PTX", folder_.path().c_str());
  ASSERT_OK(load(make_cubin({"first", "second"})));
  CUfunction function = nullptr;
  EXPECT_OK(cu.cuModuleGetFunction(&function, module_, "second"));
  EXPECT_OK(cu.cuModuleUnload(module_));
  EXPECT_EQ(load(make_cubin({"first", "third"})), CUresult::kNoBinaryForGpu);
}

TEST_F(PtxFolder, DamagedMachineCodeIsRefused) {
  write("one.ptx", ptx_of({"first"}));
  const ScopedEnv variable("TILEWRIGHT_SIM_PTX", folder_.path().c_str());
  const std::vector<char> right = make_cubin({"first"});
  for (std::size_t at = 16; at < right.size(); ++at) {
    for (const char change : {'\x7f', '\xff'}) {
      std::vector<char> damaged = right;
      damaged[at] = change;
      damaged.resize(1 << 16);  // a bare image has no length: what its header claims must be there
      const bool is_length = at >= 32 && at < 64;
      if (is_length) continue;
      const CUresult result = load(damaged);
      if (result != CUresult::kSuccess) continue;
      EXPECT_OK(cu.cuModuleUnload(module_));
    }
  }
}

}  // namespace
}  // namespace tilewright::sim::abi
