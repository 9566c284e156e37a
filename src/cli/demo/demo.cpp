// tilewright demo: what `./run` shows. It grows with the project.

#include "tilewright/kernels.h"

#include "base/json.h"
#include "cli/demo/gallery.h"
#include "cli/demo/sim.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "formats/block_scale.h"
#include "layout/banks.h"
#include "layout/cases.h"
#include "layout/parse.h"
#include "layout/register_handoff.h"
#include "layout/tmem_handoff.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct DemoArguments {
  std::string out = "build/demo";
  bool pictures_only = false;
};

// The reference cases of the algebra, counted.
json check_algebra() {
  int passed = 0, failed = 0;
  for (const json& test_case : read_json(TILEWRIGHT_GOLDEN_LAYOUTS)) {
    (run_layout_case(test_case).passed() ? passed : failed) += 1;
  }
  return {{"passed", passed}, {"failed", failed}};
}

json analyze_handoffs() {
  const auto layout = [](const char* name) { return arch::find_atom(name)->layout.layout; };
  const auto registers = [&](const char* to, std::int64_t k) {
    return analyze_register_handoff(layout("wgmma.m64n64.C"), layout(to), 64, 64, k).verdict;
  };
  const TmemHandoff tmem =
      analyze_tmem_handoff(layout("tmem.C.m128.n64"), layout("tmem.A.m128.k64.16bit"), 16);
  return {{{"from", "wgmma accumulator"},
           {"to", "bf16 A in registers"},
           {"verdict", to_string(registers("wgmma.m64k16.A", 16))}},
          {{"from", "wgmma accumulator"},
           {"to", "fp8 A in registers"},
           {"verdict", to_string(registers("wgmma.m64k32.A", 32))}},
          {{"from", "tcgen05 accumulator"},
           {"to", "bf16 A in Tensor Memory"},
           {"verdict", to_string(tmem.verdict)}}};
}

json count_conflicts() {
  json out = json::array();
  for (const auto& [name, text] :
       {std::pair{"rows of 128 bytes", "(32,8):(64,1)"},
        std::pair{"the same, swizzled", "Sw<3,3,3> o 0 o (32,8):(64,1)"}}) {
    const BankReport report = count_bank_conflicts(parse_composed_layout(text), 16, 8);
    out.push_back({{"access", name}, {"passes", report.wavefronts}, {"ideal", report.ideal}});
  }
  return out;
}

// What block formats cost on normally distributed values.
json measure_formats() {
  constexpr std::int64_t kRows = 256, kColumns = 1024;
  std::mt19937 rng(20);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) value = normal(rng);
  json out = json::array();
  for (const char* name : {"fp8_1x128", "fp8_64_pow2", "mxfp8", "mxfp4", "nvfp4"}) {
    const BlockFormat& format = block_format_by_name(name);
    const std::vector<float> back = dequantize(format, quantize(format, values, kRows, kColumns));
    double error = 0, norm = 0, dot = 0, back_norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i], y = back[i];
      error += (y - x) * (y - x);
      norm += x * x;
      back_norm += y * y;
      dot += x * y;
    }
    const double block = static_cast<double>(format.block_rows) * format.block_cols;
    out.push_back({{"format", name},
                   {"bits_per_value", format.element.bits() + 8.0 * scale_bytes(format) / block},
                   {"relative_rms", std::sqrt(error / norm)},
                   {"cosine", dot / std::sqrt(norm * back_norm)}});
  }
  return out;
}

void print_tour(const json& report, const Style& style, TextColor color) {
  const auto heading = [&](const char* text) { print("\n" + style.bold(text) + "\n"); };
  heading("A swizzled tile of shared memory (8 rows of 64 bf16, 128 B swizzle)");
  Drawing tile = arch::draw_atom(*arch::find_atom("smem.K.128B.16bit"), {0, 8, 0, 8});
  tile.caption.clear();
  print(to_text(tile, color));

  heading("Bank conflicts when 32 lanes read the same 16-byte chunk of 32 rows");
  Table banks({"access", "passes", "without conflicts"});
  for (const json& row : report["banks"])
    banks.add({row["access"], row["passes"].dump(), row["ideal"].dump()});
  print(banks.text(style));

  heading("Can the accumulator be read as the next operand?");
  Table handoffs({"from", "to", "verdict"});
  for (const json& row : report["handoffs"]) handoffs.add({row["from"], row["to"], row["verdict"]});
  print(handoffs.text(style));

  heading("Block formats on N(0,1) values");
  Table formats({"format", "bits a value", "relative rms error", "cosine"});
  for (const json& row : report["formats"]) {
    formats.add({row["format"], fmt::format("{:.3f}", row["bits_per_value"].get<double>()),
                 fmt::format("{:.4f}", row["relative_rms"].get<double>()),
                 fmt::format("{:.6f}", row["cosine"].get<double>())});
  }
  print(formats.text(style));

  heading("Layout algebra against reference data");
  const bool all_passed = report["algebra"]["failed"] == 0;
  const std::string verdict =
      fmt::format("{} passed, {} failed", report["algebra"]["passed"].dump(),
                  report["algebra"]["failed"].dump());
  print((all_passed ? style.good(verdict) : style.bad(verdict)) + "\n");

  heading("A kernel without its barrier, on the simulated H200");
  print(report["simulator"]["text"].get<std::string>() + "\n");

  print(fmt::format("\n{} kernels embedded (nvcc {}); {} pictures in {}\n",
                    report["kernels"].dump(), report["toolkit"].get<std::string>(),
                    gallery().size(), report["pictures"].get<std::string>()));
  print(
      style.faint("Next: ./run layout draw wgmma.m64n64.C --rows 16 --cols 32   ./run sim isa "
                  "  ./run --help\n"));
}

void run_demo(const DemoArguments& args, Context& context) {
  const std::string index = write_gallery(args.out, !args.pictures_only);
  if (args.pictures_only)
    return print(fmt::format("wrote {} pictures to {}\n", gallery().size(), args.out));
  const json report = {{"banks", count_conflicts()},   {"handoffs", analyze_handoffs()},
                       {"formats", measure_formats()}, {"simulator", find_a_race()},
                       {"algebra", check_algebra()},   {"kernels", embedded_kernels().size()},
                       {"toolkit", kernel_compiler()}, {"pictures", index}};
  const bool is_race_found = report["simulator"]["findings"] != 0;
  context.exit_status = report["algebra"]["failed"] == 0 && is_race_found ? 0 : 1;
  if (context.json) {
    print_json(report);
  } else {
    print_tour(report, context.style(), context.text_color());
  }
}

}  // namespace

void add_demo(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "demo", "a tour: layouts, hand-offs, formats, a simulated kernel, pictures");
  auto args = std::make_shared<DemoArguments>();
  command->add_option("--out", args->out, "folder for the pictures")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_flag("--pictures-only", args->pictures_only, "write the SVG files and nothing else");
  command->callback([args, &context] { run_demo(*args, context); });
}

}  // namespace tilewright::cli
