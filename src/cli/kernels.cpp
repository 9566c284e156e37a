// tilewright kernels: what is embedded, and what ptxas said of it.

#include "base/error.h"
#include "base/file.h"
#include "cli/tool/command.h"
#include "device/kernel_registry.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using device::KernelImage;

struct KernelsArguments {
  std::string filter, ptx;
};

nlohmann::json image_to_json(const KernelImage& image) {
  const device::KernelFacts& facts = image.facts;
  return {{"name", image.name},
          {"source", image.source},
          {"target", image.target},
          {"registers", facts.registers},
          {"shared_bytes", facts.shared_bytes},
          {"stack_bytes", facts.stack_bytes},
          {"spill_store_bytes", facts.spill_store_bytes},
          {"spill_load_bytes", facts.spill_load_bytes},
          {"barriers", facts.barriers},
          {"uses_tensor_cores", facts.uses_tensor_cores},
          {"ptx_bytes", image.ptx.size_bytes},
          {"cubin_bytes", image.cubin.size_bytes}};
}

void run_kernels(const KernelsArguments& args, const Context& context) {
  if (!args.ptx.empty()) {
    for (const KernelImage& image : device::kernel_images()) {
      const bool is_wanted =
          image.name == args.ptx || fmt::format("{}.{}", image.name, image.target) == args.ptx;
      if (!is_wanted) continue;
      print(image.ptx.unpack());
      return;
    }
    device::find_kernel(args.ptx, "any target");  // throws: names what there is
  }
  Table table(
      {"kernel", "target", "registers", "shared", "stack", "spills", "tensor cores", "source"});
  nlohmann::json list = nlohmann::json::array();
  for (const KernelImage& image : device::kernel_images()) {
    if (image.name.find(args.filter) == std::string_view::npos) continue;
    const device::KernelFacts& facts = image.facts;
    table.add({std::string(image.name), std::string(image.target), std::to_string(facts.registers),
               std::to_string(facts.shared_bytes), std::to_string(facts.stack_bytes),
               std::to_string(facts.spill_store_bytes + facts.spill_load_bytes),
               facts.uses_tensor_cores ? "yes" : "no",
               fmt::format("src/kernels/{}.cu", image.source)});
    list.push_back(image_to_json(image));
  }
  if (context.json) {
    print_json({{"toolkit", device::kernel_toolkit()}, {"kernels", list}});
    return;
  }
  require(!list.empty(), ErrorKind::kInvalidArgument,
          "no embedded kernel has \"{}\" in its name; {} are embedded", args.filter,
          device::kernel_images().size());
  print(table.text(context.style()));
  print(context.style().faint(
      fmt::format("\n{} kernels, compiled with nvcc {}; registers per thread, bytes of shared "
                  "memory and stack\n",
                  list.size(), device::kernel_toolkit())));
}

}  // namespace

void add_kernels(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("kernels", "list the embedded kernels and their resources");
  auto args = std::make_shared<KernelsArguments>();
  command->add_option("filter", args->filter, "only names with this text");
  command->add_option("--ptx", args->ptx, "print the PTX of a kernel, NAME or NAME.TARGET")
      ->type_name("NAME");
  command->callback([args, &context] { run_kernels(*args, context); });
}

}  // namespace tilewright::cli
