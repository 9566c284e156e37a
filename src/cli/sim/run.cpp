// tilewright sim run: one launch of one kernel, described in JSON.

#include "base/error.h"
#include "base/json.h"
#include "cli/sim/launch.h"
#include "cli/sim/options.h"
#include "cli/tool/command.h"
#include "sim/event/finding.h"
#include "sim/parse/parser.h"
#include "sim/trace/trace_observer.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct RunArguments {
  SimFlags flags;
  std::string file, launch;
  std::optional<std::string> trace;
  std::vector<std::string> breakpoints;
};

/// What came out, for text and JSON alike.
struct RunResult {
  std::string kernel;
  double host_seconds = 0;
  std::optional<sim::Fault> fault;
  std::vector<sim::Finding> findings;
  std::string printed;
  nlohmann::json buffers = nlohmann::json::array();
  bool has_difference = false;
};

const sim::KernelInfo& choose_kernel(const std::vector<sim::KernelInfo>& kernels,
                                     const std::string& name, const std::string& file) {
  std::string names;
  for (const sim::KernelInfo& kernel : kernels) {
    if (kernel.name == name) return kernel;
    names += " " + kernel.name;
  }
  require(name.empty(), ErrorKind::kInvalidArgument, "{} has no kernel {}; it has:{}", file, name,
          names.empty() ? " none" : names);
  require(kernels.size() == 1, ErrorKind::kInvalidArgument,
          "{} has {} kernels; name one with \"kernel\":{}", file, kernels.size(), names);
  return kernels.front();
}

std::optional<sim::TraceObserver> make_tracer(const RunArguments& args, bool is_json) {
  if (!args.trace && args.breakpoints.empty()) return std::nullopt;
  sim::TraceOptions options;
  if (args.trace) options.traces.push_back(sim::parse_trace(*args.trace));
  for (const std::string& text : args.breakpoints) {
    options.breakpoints.push_back(sim::parse_breakpoint(text));
  }
  std::FILE* const out = is_json ? stderr : stdout;
  return std::optional<sim::TraceObserver>(
      std::in_place, std::move(options),
      [out](std::string_view text) { std::fwrite(text.data(), 1, text.size(), out); });
}

std::vector<PlacedBuffer> place_buffers(sim::Machine& machine, const LaunchSpec& spec) {
  std::vector<PlacedBuffer> placed;
  for (const BufferSpec& buffer : spec.buffers) {
    const auto bytes = buffer.data.bytes();
    const std::uint64_t address = machine.memory().allocate(std::max<std::size_t>(1, bytes.size()),
                                                            fmt::format("buffer {}", buffer.name));
    if (!buffer.is_poison) {
      std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
      machine.mark_defined(address, bytes.size());
    }
    placed.push_back({address, &buffer});
  }
  return placed;
}

/// Writes and compares what the buffers hold now.
void collect_buffers(const std::vector<PlacedBuffer>& placed, RunResult& result) {
  for (const PlacedBuffer& buffer : placed) {
    const BufferSpec& spec = *buffer.spec;
    const ConstTensorView view = contiguous_view(reinterpret_cast<const void*>(buffer.address),
                                                 spec.data.dtype(), spec.data.shape());
    nlohmann::json entry = {
        {"name", spec.name}, {"dtype", to_string(view.dtype)}, {"shape", view.shape}};
    if (!spec.output.empty()) {
      write_buffer(spec.output, spec.name, view);
      entry["output"] = spec.output;
    }
    if (spec.expect) {
      const Difference difference = compare(view, *spec.expect);
      result.has_difference |= difference.num_wrong != 0;
      entry["wrong"] = difference.num_wrong;
      entry["compared"] = difference.num_elems;
      entry["max_abs_error"] = difference.max_abs;
      if (difference.num_wrong != 0) entry["first_wrong"] = difference.first;
    }
    result.buffers.push_back(std::move(entry));
  }
}

std::string buffers_text(const RunResult& result, const Style& style) {
  std::string out;
  for (const nlohmann::json& buffer : result.buffers) {
    const std::string name = buffer["name"];
    if (buffer.contains("output")) {
      out += fmt::format("  {}  written to {}\n", name, buffer["output"].get<std::string>());
    }
    if (!buffer.contains("wrong")) continue;
    const auto wrong = buffer["wrong"].get<std::uint64_t>();
    out +=
        fmt::format("  {}  {} of {} elements as expected, largest error {:.3g}", name,
                    buffer["compared"].get<std::uint64_t>() - wrong,
                    buffer["compared"].get<std::uint64_t>(), buffer["max_abs_error"].get<double>());
    if (wrong != 0) {
      out += "\n    " + style.bad(fmt::format("first difference: {}{}", name,
                                              buffer["first_wrong"].get<std::string>()));
    }
    out += "\n";
  }
  return out;
}

void print_result(const RunResult& result, const LaunchSpec& spec, const sim::DeviceModel& model,
                  const Context& context) {
  const Style style = context.style();
  const auto dim = [](const sim::Dim3& d) { return fmt::format("({},{},{})", d.x, d.y, d.z); };
  std::string out = fmt::format("{}  grid {} block {}", style.bold(result.kernel), dim(spec.grid),
                                dim(spec.block));
  if (spec.cluster.count() > 1) out += " cluster " + dim(spec.cluster);
  out += fmt::format(" on {}\n", model.name);
  out += buffers_text(result, style);
  out += fmt::format("  {:.3f} ms of host time; it says nothing about a GPU\n",
                     result.host_seconds * 1e3);
  // The machine has printed the findings already, and what stops a kernel is one of them.
  if (!result.findings.empty()) {
    out += style.bad(fmt::format("{}{} finding{}, printed to standard error",
                                 result.fault ? "stopped: " : "", result.findings.size(),
                                 result.findings.size() == 1 ? "" : "s")) +
           "\n";
  } else if (result.fault) {
    out += style.bad("stopped") + "\n" + result.fault->message + "\n";
  } else if (result.has_difference) {
    out += style.bad("differs") + "\n";
  } else {
    out += style.good("ok") + "\n";
  }
  print(out);
}

nlohmann::json result_json(const RunResult& result, const sim::DeviceModel& model) {
  nlohmann::json findings = nlohmann::json::array();
  for (const sim::Finding& finding : result.findings) {
    findings.push_back({{"check", finding.check},
                        {"what", finding.what},
                        {"missing", finding.missing},
                        {"count", finding.count},
                        {"text", sim::to_string(finding)}});
  }
  return {{"kernel", result.kernel},
          {"device", model.key},
          {"host_seconds", result.host_seconds},
          {"fault", result.fault ? nlohmann::json(result.fault->message) : nlohmann::json()},
          {"findings", std::move(findings)},
          {"printed", result.printed},
          {"buffers", result.buffers}};
}

void run_launch(const RunArguments& args, Context& context) {
  const nlohmann::json root = read_json(args.launch);
  const JsonNode node(root, args.launch);
  const LaunchSpec spec = parse_launch(node);
  const sim::DeviceModel& model = sim_device(context);
  sim::Machine machine(model, sim_options(args.flags));
  const auto module = machine.load(sim::parse_module(sim::read_ptx(args.file), args.file));
  const auto kernels = module->kernels();
  const sim::KernelInfo& kernel = choose_kernel(kernels, spec.kernel, args.file);
  require(kernel.problem.empty(), ErrorKind::kUnsupported, "{}", kernel.problem);
  const auto placed = place_buffers(machine, spec);
  sim::Launch launch;
  launch.module = module;
  launch.kernel = kernel.name;
  launch.grid = spec.grid, launch.block = spec.block, launch.cluster = spec.cluster;
  launch.dynamic_shared_bytes = spec.dynamic_shared_bytes;
  launch.is_cooperative = spec.is_cooperative;
  launch.params = parse_params(node, kernel, placed);

  RunResult result;
  result.kernel = kernel.name;
  const bool is_json = context.json;
  machine.set_output(
      [&result, is_json](std::string_view text) {
        is_json ? void(result.printed += text) : print(std::string(text));
      },
      [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  auto tracer = make_tracer(args, is_json);
  if (tracer) machine.set_observer(&*tracer);
  const auto begin = std::chrono::steady_clock::now();
  result.fault = machine.launch(launch);
  result.host_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.findings = machine.findings().take_all();
  collect_buffers(placed, result);
  const bool is_bad = result.fault || result.has_difference ||
                      (!result.findings.empty() && !machine.options().report_only);
  context.exit_status = is_bad ? 1 : 0;
  if (is_json) {
    print_json(result_json(result, model));
  } else {
    print_result(result, spec, model, context);
  }
  std::fflush(stdout);  // before the report, which goes to standard error
  if (!machine.finish_report()) context.exit_status = 1;
}

}  // namespace

void add_sim_run(CLI::App& sim, Context& context) {
  CLI::App* command = sim.add_subcommand(
      "run", "launch one kernel of a PTX file with inputs and expected outputs from JSON");
  auto args = std::make_shared<RunArguments>();
  command->add_option("file", args->file, "the PTX text")
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("FILE.ptx");
  command
      ->add_option("--launch", args->launch,
                   "grid, block, parameters, buffers: see docs/03-simulator.md")
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("SPEC.json");
  add_sim_flags(*command, args->flags);
  command
      ->add_option_function<std::string>(
          "--trace", [args](const std::string& text) { args->trace = text; },
          "show every instruction, of one warp of one CTA if they are given, as in --trace=0:2,0,0")
      ->expected(0, 1)
      ->option_text("[=WARP[:CTA]]");
  command
      ->add_option("--break", args->breakpoints,
                   "show registers, accumulators and mbarriers at a line of PTX, as in --break "
                   "41:0:2,0,0")
      ->option_text("LINE[:WARP[:CTA]] ...");
  command->footer("Exit status: 0, or 1 after a fault, a finding or a difference.");
  command->callback([args, &context] { run_launch(*args, context); });
}

}  // namespace tilewright::cli
