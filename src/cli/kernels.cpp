// tilewright kernels: what is embedded, and what ptxas said of it.

#include "tilewright/kernels.h"

#include "base/error.h"
#include "base/file.h"
#include "cli/tool/command.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct KernelsArguments {
  std::string filter, ptx;
};

nlohmann::json kernel_to_json(const EmbeddedKernel& kernel) {
  return {{"name", kernel.name},
          {"source", kernel.source},
          {"target", kernel.target},
          {"registers", kernel.registers},
          {"shared_bytes", kernel.shared_bytes},
          {"stack_bytes", kernel.stack_bytes},
          {"spill_store_bytes", kernel.spill_store_bytes},
          {"spill_load_bytes", kernel.spill_load_bytes},
          {"barriers", kernel.barriers},
          {"uses_tensor_cores", kernel.uses_tensor_cores},
          {"ptx_bytes", kernel.ptx_bytes},
          {"cubin_bytes", kernel.cubin_bytes}};
}

void run_kernels(const KernelsArguments& args, const Context& context) {
  if (!args.ptx.empty()) {
    for (const EmbeddedKernel& kernel : embedded_kernels()) {
      const bool is_wanted =
          kernel.name == args.ptx || fmt::format("{}.{}", kernel.name, kernel.target) == args.ptx;
      if (!is_wanted) continue;
      print(kernel.ptx());
      return;
    }
    find_kernel(args.ptx, "any target");  // throws: names what there is
  }
  Table table(
      {"kernel", "target", "registers", "shared", "stack", "spills", "tensor cores", "source"});
  nlohmann::json list = nlohmann::json::array();
  for (const EmbeddedKernel& kernel : embedded_kernels()) {
    if (kernel.name.find(args.filter) == std::string_view::npos) continue;
    table.add(
        {std::string(kernel.name), std::string(kernel.target), std::to_string(kernel.registers),
         std::to_string(kernel.shared_bytes), std::to_string(kernel.stack_bytes),
         std::to_string(kernel.spill_store_bytes + kernel.spill_load_bytes),
         kernel.uses_tensor_cores ? "yes" : "no", fmt::format("src/kernels/{}.cu", kernel.source)});
    list.push_back(kernel_to_json(kernel));
  }
  if (context.json) {
    print_json({{"toolkit", kernel_compiler()}, {"kernels", list}});
    return;
  }
  require(!list.empty(), ErrorKind::kInvalidArgument,
          "no embedded kernel has \"{}\" in its name; {} are embedded", args.filter,
          embedded_kernels().size());
  print(table.text(context.style()));
  print(context.style().faint(
      fmt::format("\n{} kernels, compiled with nvcc {}; registers per thread, bytes of shared "
                  "memory and stack\n",
                  list.size(), kernel_compiler())));
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
