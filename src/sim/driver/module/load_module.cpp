// PTX text becomes a module in a context; what is wrong with it goes to the caller's log.
#include "base/error.h"
#include "sim/driver/objects/module.h"
#include "sim/parse/parser.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kDynamicSharedWithoutOptIn = 48 << 10;

/// The line in "name:LINE:COLUMN: error: ...", as text; "" if the message has no place.
std::string_view line_in(std::string_view diagnostic) {
  const std::size_t end = diagnostic.find(": error:");
  if (end == std::string_view::npos) return {};
  const std::size_t column = diagnostic.rfind(':', end - 1);
  if (column == std::string_view::npos || column == 0) return {};
  const std::size_t line = diagnostic.rfind(':', column - 1);
  if (line == std::string_view::npos) return {};
  return diagnostic.substr(line + 1, column - line - 1);
}

/// As compilers of PTX begin it, because programs look for "line N".
std::string log_line(std::string_view diagnostic) {
  const std::string_view line = line_in(diagnostic);
  return line.empty() ? fmt::format("{}\n", diagnostic)
                      : fmt::format("ptx input, line {}; {}\n", line, diagnostic);
}

/// Errors   Failure after writing the log: the device does not run what the module is for
void require_target(const sim::Module& module, const DeviceModel& model,
                    const JitOptions& options) {
  const int capability = model.compute_capability;
  if (module.runs_on(capability)) return;
  options.log_error(
      fmt::format("{}: .target {} does not run on {}, which has compute capability {}.{}\n",
                  module.name, module.target_name(), model.name, capability / 10, capability % 10));
  refuse(CUresult::kNoBinaryForGpu);
}

std::shared_ptr<FunctionObject> make_function(ModuleObject& module, const KernelInfo& info) {
  auto function = std::make_shared<FunctionObject>();
  function->module = &module;
  function->info = info;
  const std::uint32_t used = std::min(info.static_shared_bytes, kDynamicSharedWithoutOptIn);
  function->max_dynamic_shared_bytes = kDynamicSharedWithoutOptIn - used;
  for (int i = 0; i < 3; ++i) {
    function->cluster[i] = static_cast<int>(info.bounds.required_cluster[i]);
  }
  return function;
}

/// Kernels that cannot run are named in the log. Errors   Failure if no kernel can
void note_problems(const std::vector<KernelInfo>& kernels, const JitOptions& options) {
  std::size_t num_unusable = 0;
  for (const KernelInfo& kernel : kernels) {
    if (kernel.problem.empty()) continue;
    ++num_unusable;
    options.log_error(log_line(kernel.problem));
  }
  const bool is_any_usable = num_unusable < kernels.size() || kernels.empty();
  if (!is_any_usable) refuse(CUresult::kInvalidPtx);
}

std::shared_ptr<const LoadedModule> translate(Context& context, ModuleText text,
                                              const JitOptions& options) {
  try {
    sim::Module module = parse_module(std::move(text.ptx), text.name);
    if (!text.cubin.empty()) {
      module.cubin = std::make_shared<const std::string>(std::move(text.cubin));
    }
    require_target(module, context.device.model, options);
    return context.device.machine().load(std::move(module));
  } catch (const Error& error) {
    options.log_error(log_line(error.what()));
    switch (error.kind()) {
      case ErrorKind::kUnsupported:
        refuse(CUresult::kNoBinaryForGpu);
      case ErrorKind::kParseError:
      case ErrorKind::kInvalidArgument:
        refuse(CUresult::kInvalidPtx);
      default:
        throw;
    }
  }
}

/// Writes the text to the folder that the user wants it in. Returns the path, by which messages
/// name the module from then on, or the name as it is
std::string keep_text(const std::string& ptx, const std::string& name) {
  const std::string& folder = Driver::get().options().dump_folder;
  if (folder.empty()) return name;
  const std::filesystem::path path =
      std::filesystem::path(folder) / std::filesystem::path(name).filename();
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::ofstream file(path, std::ios::binary);
  file << ptx;
  file.close();
  if (file) return path.string();
  say(
      fmt::format("TILEWRIGHT_SIM_DUMP: {} cannot be written; the folder must exist or be one that "
                  "can be made",
                  path.string()));
  return name;
}

}  // namespace

std::shared_ptr<ModuleObject> load_module(Context& context, ModuleText given,
                                          const JitOptions& options) {
  ModuleText text = replace_module(std::move(given), Driver::get().options().replacements);
  auto module = std::make_shared<ModuleObject>();
  module->context = &context;
  text.name = keep_text(text.ptx, text.name);
  module->loaded = translate(context, std::move(text), options);
  const std::vector<KernelInfo> kernels = module->loaded->kernels();
  note_problems(kernels, options);
  for (const KernelInfo& kernel : kernels) {
    module->functions[kernel.name] = make_function(*module, kernel);
  }
  for (const VariableInfo& variable : module->loaded->variables()) {
    module->variables[variable.name] = variable;
  }
  return module;
}

std::string next_module_name() {
  static std::atomic<int> number = 0;
  return fmt::format("module{}.ptx", ++number);
}

}  // namespace tilewright::sim
