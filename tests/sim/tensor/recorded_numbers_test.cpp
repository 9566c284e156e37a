// The numbers of tensor cores, bit for bit: recordings of an H200, and published results of a B200
// and an H200 (tests/golden/hardware/tensor_core).
#include "base/safetensors.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "tests/sim/insn/ptx_run.h"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using Words = std::vector<std::uint32_t>;

std::string path_of(const char* file) {
  return std::string(TILEWRIGHT_TEST_DATA) + "/hardware/tensor_core/" + file;
}

const DeviceModel& model_of(const char* name) {
  return *find_device_model(name);
}

template <class T>
std::vector<T> elements(const SafetensorsFile& file, const std::string& name) {
  const ConstTensorView view = file.tensor(name);
  std::size_t count = 1;
  for (const std::int64_t extent : view.shape) count *= static_cast<std::size_t>(extent);
  std::vector<T> out(count);
  std::memcpy(out.data(), view.data, out.size() * sizeof(T));
  return out;
}

/// A kernel of (in, out) that runs once for each of `ctas`.
struct KernelRun {
  std::string kernel;
  std::uint32_t threads = 32, ctas = 0;
};

Words run(Machine& machine, const std::shared_ptr<const LoadedModule>& module,
          const KernelRun& what, std::span<const std::byte> in, std::size_t num_out) {
  const std::uint64_t from = machine.memory().allocate(in.size(), "in");
  const std::uint64_t to = machine.memory().allocate(num_out * 4, "out");
  std::memcpy(reinterpret_cast<void*>(from), in.data(), in.size());
  Launch launch;
  launch.module = module;
  launch.kernel = what.kernel;
  launch.block.x = what.threads;
  launch.grid.x = what.ctas;
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &from, 8);
  std::memcpy(launch.params.data() + 8, &to, 8);
  const std::optional<Fault> fault = machine.launch(launch);
  EXPECT_FALSE(fault.has_value()) << fault->message;
  Words out(num_out);
  std::memcpy(out.data(), reinterpret_cast<const void*>(to), num_out * 4);
  machine.memory().free(from);
  machine.memory().free(to);
  return out;
}

void expect_equal(const Words& got, const Words& expected, const std::string& name) {
  ASSERT_EQ(got.size(), expected.size());
  std::size_t num_wrong = 0, first = 0;
  for (std::size_t i = got.size(); i-- > 0;) {
    if (got[i] == expected[i]) continue;
    ++num_wrong;
    first = i;
  }
  EXPECT_EQ(num_wrong, 0U) << fmt::format("{}: {} of {} words differ; word {} is {:#x}, not {:#x}",
                                          name, num_wrong, got.size(), first, got[first],
                                          expected[first]);
}

TEST(RecordedNumbers, AllFormsAreAsOnTheH200) {
  const SafetensorsFile file(path_of("h200.safetensors"));
  EXPECT_EQ(file.metadata().at("device"), "NVIDIA H200");
  Machine machine(model_of("h200"), {});
  const auto module = machine.load(parse_module(read_text(path_of("forms.ptx")), "forms.ptx"));
  int num_forms = 0;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.name.ends_with(".in")) continue;
    const std::string form = entry.name.substr(0, entry.name.size() - 3);
    const KernelRun what{form, form.starts_with("wgmma") ? 128U : 32U,
                         static_cast<std::uint32_t>(entry.shape[0])};
    const Words in = elements<std::uint32_t>(file, entry.name);
    const Words expected = elements<std::uint32_t>(file, form + ".out");
    expect_equal(run(machine, module, what, std::as_bytes(std::span(in)), expected.size()),
                 expected, form);
    ++num_forms;
  }
  EXPECT_EQ(num_forms, 69);
}

// ---- Published results --------------------------------------------------------------------------

/// A warp for each case, whose words are 8 of A's row 0, 8 of B's column 0 and one of C. With a
/// row's words w, lane l < 4 holds w[l] and w[4 + l].
std::string published_kernel(const std::string& shape, const std::string& type) {
  return fmt::format(R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry product(.param .u64 in, .param .u64 out) {{
  .reg .pred %p, %q;
  .reg .b32 %t, %x, %a0, %a2, %b0, %b1;
  .reg .f32 %c, %zero, %d<4>;
  .reg .b64 %i, %o, %w;
  ld.param.u64 %i, [in];
  ld.param.u64 %o, [out];
  mov.u32 %x, %ctaid.x;
  mad.wide.u32 %i, %x, 68, %i;
  mad.wide.u32 %o, %x, 4, %o;
  mov.u32 %t, %tid.x;
  mad.wide.u32 %w, %t, 4, %i;
  setp.lt.u32 %p, %t, 4;
  setp.eq.u32 %q, %t, 0;
  mov.u32 %a0, 0; mov.u32 %a2, 0; mov.u32 %b0, 0; mov.u32 %b1, 0;
  mov.f32 %zero, 0f00000000; mov.f32 %c, 0f00000000;
  @%p ld.global.b32 %a0, [%w];
  @%p ld.global.b32 %a2, [%w+16];
  @%p ld.global.b32 %b0, [%w+32];
  @%p ld.global.b32 %b1, [%w+48];
  @%q ld.global.f32 %c, [%i+64];
  mov.u32 %x, 0;
  mma.sync.aligned.m16n8{0}.row.col.f32.{1}.{1}.f32 {{%d0, %d1, %d2, %d3}},
    {{%a0, %x, %a2, %x}}, {{%b0, %b1}}, {{%c, %zero, %zero, %zero}};
  @%q st.global.f32 [%o], %d0;
  ret;
}}
)",
                     shape, type);
}

struct Published {
  const char* name;
  const char* shape;
  const char* type;
};

constexpr Published kPublished[] = {{"b200_e4m3", "k32", "e4m3"}, {"b200_e5m2", "k32", "e5m2"},
                                    {"b200_bf16", "k16", "bf16"}, {"b200_fp16", "k16", "f16"},
                                    {"b200_tf32", "k8", "tf32"},  {"h200_bf16", "k16", "bf16"},
                                    {"h200_fp16", "k16", "f16"},  {"h200_tf32", "k8", "tf32"}};

/// The words of the cases for published_kernel().
Words published_words(const SafetensorsFile& file, const std::string& name) {
  const Words c = elements<std::uint32_t>(file, name + ".c");
  Words words(c.size() * 17);
  const auto put = [&](const char* operand, std::size_t first) {
    const auto bytes = elements<std::uint8_t>(file, name + operand);
    const std::size_t row = bytes.size() / c.size();
    for (std::size_t i = 0; i < c.size(); ++i) {
      std::memcpy(&words[17 * i + first], &bytes[row * i], row);
    }
  };
  put(".a", 0);
  put(".b", 8);
  for (std::size_t i = 0; i < c.size(); ++i) words[17 * i + 16] = c[i];
  return words;
}

class PublishedNumbers : public testing::TestWithParam<const char*> {};

// Both chips gave the same wherever both were measured, so each model must give all of them.
TEST_P(PublishedNumbers, AreWhatTheDeviceModelGives) {
  const SafetensorsFile file(path_of("published.safetensors"));
  for (const Published& published : kPublished) {
    Machine machine(model_of(GetParam()), {});
    const auto module = machine.load(
        parse_module(published_kernel(published.shape, published.type), published.name));
    const std::string name = published.name;
    const Words in = published_words(file, name);
    const Words expected = elements<std::uint32_t>(file, name + ".d");
    EXPECT_EQ(expected.size(), 2000U);
    const KernelRun what{"product", 32, static_cast<std::uint32_t>(expected.size())};
    expect_equal(run(machine, module, what, std::as_bytes(std::span(in)), expected.size()),
                 expected, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Simulator, PublishedNumbers, testing::Values("h200", "b200"));

}  // namespace
}  // namespace tilewright::sim
