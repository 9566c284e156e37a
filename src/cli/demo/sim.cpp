#include "cli/demo/sim.h"

#include "sim/event/finding.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

constexpr const char* kReverse = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry reverse(.param .u64 out)
{
  .reg .b32 %t, %mine, %other, %value;
  .reg .b64 %at, %step;
  .shared .align 4 .b8 tile[512];
  mov.u32 %t, %tid.x;
  shl.b32 %other, %t, 2;
  mov.u32 %mine, tile;
  add.u32 %mine, %mine, %other;
  st.shared.u32 [%mine], %t;          // no bar.sync 0 before the load
  sub.u32 %other, 508, %other;
  mov.u32 %mine, tile;
  add.u32 %other, %mine, %other;
  ld.shared.u32 %value, [%other];
  ld.param.u64 %at, [out];
  mul.wide.u32 %step, %t, 4;
  add.u64 %at, %at, %step;
  st.global.u32 [%at], %value;
  ret;
}
)";

}  // namespace

nlohmann::json find_a_race() {
  sim::Options options;
  options.checks.race = true;
  options.checks.init = false;
  sim::Machine machine(*sim::find_device_model("h200"), options);
  machine.set_output([](std::string_view) {}, [](std::string_view) {});
  sim::Launch launch;
  launch.module = machine.load(sim::parse_module(kReverse, "reverse.ptx"));
  launch.kernel = "reverse";
  launch.block = {128, 1, 1};
  const std::uint64_t out = machine.memory().allocate(512, "the demo");
  launch.params.resize(sizeof out);
  std::memcpy(launch.params.data(), &out, sizeof out);
  machine.launch(launch);
  const std::vector<sim::Finding> findings = machine.findings().take_all();
  return {{"kernel", "reverse.ptx"},
          {"findings", findings.size()},
          {"text", findings.empty() ? "" : to_string(findings.front())}};
}

}  // namespace tilewright::cli
