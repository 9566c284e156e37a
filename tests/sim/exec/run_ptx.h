// Running a few lines of PTX on the simulated H200.
#pragma once

#include "base/error.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tilewright::sim {

/// A kernel `test(out, in, n)` around a body; %out and %in are addresses, %i the thread's number in
/// the grid, %t in its CTA, %mine the address of out[i] (32-bit).
inline std::string kernel_with(const std::string& body, const std::string& before = "") {
  return ".version 8.7\n.target sm_90a\n.address_size 64\n" + before + R"(
.visible .entry test(.param .u64 p_out, .param .u64 p_in, .param .u32 p_n)
{
  .reg .b32 %i, %t, %n, %block, %size, %x, %y, %z;
  .reg .b64 %out, %in, %mine, %step, %address;
  .reg .pred %p, %q;
  ld.param.u64 %out, [p_out];
  ld.param.u64 %in, [p_in];
  ld.param.u32 %n, [p_n];
  mov.u32 %t, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mad.lo.u32 %i, %block, %size, %t;
  mul.wide.u32 %step, %i, 4;
  add.u64 %mine, %out, %step;
)" + body +
         "\n}\n";
}

struct RunResult {
  std::vector<std::uint32_t> out;
  std::string fault;  ///< "" if it ended well
  FaultKind kind = FaultKind::kInternal;
  std::string printed;
};

struct RunSetup {
  Dim3 grid, block{32, 1, 1}, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t n = 0;
  std::vector<std::uint32_t> in = std::vector<std::uint32_t>(64);
  Options options;
  std::string kernel = "test";
};

/// One word of output a thread, filled with 0xdeadbeef before.
inline RunResult run_ptx(const std::string& text, const RunSetup& setup = {}) {
  RunResult result;
  Machine machine(device_models()[0], setup.options);
  machine.set_output([&](std::string_view printed) { result.printed += printed; },
                     [](std::string_view) {});
  Launch launch;
  launch.module = machine.load(parse_module(text, "test.ptx"));
  launch.kernel = setup.kernel;
  launch.grid = setup.grid;
  launch.block = setup.block;
  launch.cluster = setup.cluster;
  launch.dynamic_shared_bytes = setup.dynamic_shared_bytes;
  result.out.assign(setup.grid.count() * setup.block.count(), 0xdeadbeef);
  const std::uint64_t out = machine.memory().allocate(4 * result.out.size(), "out");
  const std::uint64_t in = machine.memory().allocate(4 * setup.in.size(), "in");
  std::memcpy(reinterpret_cast<void*>(out), result.out.data(), 4 * result.out.size());
  std::memcpy(reinterpret_cast<void*>(in), setup.in.data(), 4 * setup.in.size());
  launch.params.resize(24);
  std::memcpy(launch.params.data(), &out, 8);
  std::memcpy(launch.params.data() + 8, &in, 8);
  std::memcpy(launch.params.data() + 16, &setup.n, 4);
  if (const auto fault = machine.launch(launch)) {
    result.fault = fault->message;
    result.kind = fault->kind;
  }
  std::memcpy(result.out.data(), reinterpret_cast<const void*>(out), 4 * result.out.size());
  return result;
}

}  // namespace tilewright::sim
