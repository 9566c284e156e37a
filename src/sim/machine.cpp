#include "sim/machine.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "sim/check/checkers.h"
#include "sim/check/order/dependent_launch.h"
#include "sim/event/finding.h"
#include "sim/event/observer_list.h"
#include "sim/exec/engine.h"
#include "sim/loaded_module.h"
#include "sim/parse/diagnostic.h"
#include "sim/report/finding_json.h"
#include "sim/report/launch_progress.h"
#include "sim/report/launch_times.h"
#include "sim/report/prediction_text.h"
#include "sim/report/report_writer.h"
#include "sim/report/timeline_svg.h"
#include "sim/report/usage_observer.h"
#include "sim/state/byte_shadow.h"
#include "sim/state/occupancy.h"
#include "sim/time/l2_contents.h"
#include "sim/time/launch_time.h"
#include "sim/time/time_observer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

void refuse_target(const Module& module, const DeviceModel& model) {
  require(module.runs_on(model.compute_capability), ErrorKind::kUnsupported,
          "{}: .target {} does not run on compute capability {}.{} ({}); compile for sm_{}a",
          module.name, module.target_name(), model.compute_capability / 10,
          model.compute_capability % 10, model.name, model.compute_capability);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The message of a launch that went on to its end with findings.
std::string first_finding(const std::vector<Finding>& findings, const std::string& kernel) {
  if (!findings.empty()) return to_string(findings.front());
  return fmt::format("{}: the same findings as before", kernel);
}

/// Instructions are compiled for AVX2 (cmake/simulator.cmake); this file is not.
void refuse_old_processor() {
#if defined(__x86_64__)
  require(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), ErrorKind::kUnsupported,
          "the simulator needs a processor with AVX2 and FMA, and this one has not both; use a "
          "machine of 2013 or later");
#endif
}

void check_limit(std::uint64_t value, std::uint64_t limit, std::string_view what) {
  require(value <= limit, ErrorKind::kInvalidArgument, "launch: {} = {}; at most {} on this device",
          what, value, limit);
}

/// Also bounds the products that are formed of these extents later.
void check_grid(const Launch& launch, const DeviceModel& model) {
  constexpr std::uint64_t kMostX = 0x7fffffff, kMostYz = 65535;
  const Dim3 &grid = launch.grid, &cluster = launch.cluster;
  check_limit(grid.x, kMostX, "grid.x");
  check_limit(grid.y, kMostYz, "grid.y");
  check_limit(grid.z, kMostYz, "grid.z");
  for (const std::uint32_t extent : {cluster.x, cluster.y, cluster.z}) {
    check_limit(extent, model.max_cluster_optin, "blocks of a cluster in one direction");
  }
  check_limit(cluster.count(), model.max_cluster_optin, "blocks of a cluster");
  require(cluster.count() != 0 && grid.x % cluster.x == 0 && grid.y % cluster.y == 0 &&
              grid.z % cluster.z == 0,
          ErrorKind::kInvalidArgument,
          "launch: grid ({},{},{}) is no multiple of the cluster ({},{},{})", grid.x, grid.y,
          grid.z, cluster.x, cluster.y, cluster.z);
}

void check_block(const Launch& launch, const LaunchBounds& bounds) {
  check_limit(launch.block.x, 1024, "block.x");
  check_limit(launch.block.y, 1024, "block.y");
  check_limit(launch.block.z, 64, "block.z");
  check_limit(launch.block.count(), 1024, "threads of a block");
  require(launch.block.count() != 0 && launch.grid.count() != 0, ErrorKind::kInvalidArgument,
          "launch: grid ({},{},{}) of blocks ({},{},{}); no extent may be 0", launch.grid.x,
          launch.grid.y, launch.grid.z, launch.block.x, launch.block.y, launch.block.z);
  const auto& most = bounds.max_threads;
  if (most[0] != 0) {
    const std::uint64_t threads =
        std::uint64_t{most[0]} * std::max(1U, most[1]) * std::max(1U, most[2]);
    check_limit(launch.block.count(), threads, "threads of a block (.maxntid)");
  }
  const auto& exact = bounds.required_threads;
  require(
      exact[0] == 0 || (launch.block.x == exact[0] && launch.block.y == std::max(1U, exact[1]) &&
                        launch.block.z == std::max(1U, exact[2])),
      ErrorKind::kInvalidArgument, "launch: block ({},{},{}); the kernel requires ({},{},{})",
      launch.block.x, launch.block.y, launch.block.z, exact[0], std::max(1U, exact[1]),
      std::max(1U, exact[2]));
}

/// Clusters of a launch that are written down for a prediction, if all run.
constexpr std::uint64_t kMostTraced = 16;
/// Of a sample that had little to do: clusters, and warp instructions for each of those wanted
constexpr std::uint64_t kMostSampled = 4096;
constexpr std::uint64_t kLittleWork = 100'000;

/// `sample`: of its options
MoreOfSample more_of(const Grid& grid, std::uint32_t sample) {
  if (grid.sample.empty()) return {};
  const std::uint64_t all = grid.launch->grid.count() / grid.launch->cluster.count();
  return {more_clusters(all, grid.sample.size(), std::min(all, kMostSampled)),
          kLittleWork * sample};
}

bool multiplies(const KernelCode& code) {
  return std::ranges::any_of(code.insns,
                             [](const Insn& insn) { return (insn.flags & kTensor) != 0; });
}

/// The kernel of a launch that it can run.
const KernelCode& find_code(const Launch& launch, const DeviceModel& model) {
  const auto* module = dynamic_cast<const Loaded*>(launch.module.get());
  require(module != nullptr, ErrorKind::kInvalidArgument, "launch: no module");
  const KernelCode* code = module->find(launch.kernel);
  require(code != nullptr, ErrorKind::kInvalidArgument, "launch: no kernel {} in {}", launch.kernel,
          module->syntax().name);
  const KernelInfo& info = code->info;
  require(info.problem.empty(), ErrorKind::kUnsupported, "{}", info.problem);
  check_block(launch, info.bounds);
  check_limit(std::uint64_t{info.static_shared_bytes} + launch.dynamic_shared_bytes,
              model.shared_bytes_per_cta_optin, "shared memory of a block in bytes");
  check_grid(launch, model);
  require(launch.params.size() >= info.param_bytes, ErrorKind::kInvalidArgument,
          "launch: {} bytes of parameters; {} takes {}", launch.params.size(), launch.kernel,
          info.param_bytes);
  return *code;
}

}  // namespace

struct Machine::State {
  State(const DeviceModel& device, Options how)
      : model(with_sms(device, how.num_sms)),
        options(std::move(how)),
        memory(device.global_bytes) {}

  /// Bytes of global memory are followed from now on; those that are in use count as defined.
  void follow_bytes();
  void keep_report();
  /// Ready for a launch. Returns its address
  std::uint64_t clear_workspace();
  /// Without machine and observers.
  Grid make_grid(const Launch& launch, const KernelCode& code);
  /// Lets only a sample of its clusters run, if that is wanted and they do not need each other.
  void sample(Grid& grid) const;
  /// From what the observer saw. Errors   ParseError, InvalidArgument of the options
  Prediction predict(const Grid& grid, TimeObserver& seen);
  /// Runs it and reports new findings, which are a fault unless they are only to be reported.
  std::optional<Fault> run(Grid& grid);

  const DeviceModel model;
  Options options;
  GlobalMemory memory;
  std::mutex launch_mutex;
  std::uint64_t num_launches = 0;
  /// The driver's workspace of a cooperative launch: its size, and the word by which CTAs count
  /// themselves in grid.sync() of cooperative_groups.
  alignas(64) std::array<std::uint32_t, 16> workspace{};
  bool is_workspace_known = false;
  Findings findings;
  LaunchHistory history;
  std::unique_ptr<ByteShadow> defined;  ///< bytes of global memory; only with the init check
  bool is_host_known = false;           ///< the host says what it writes
  Observer* observer = nullptr;         ///< of the user
  std::unique_ptr<ReportWriter> usage;  ///< only if there is to be a report
  std::optional<LaunchTimes> times;     ///< only if they are wanted
  std::optional<LaunchProgress> progress;
  L2Contents l2_contents;      ///< of predictions
  PredictionList predictions;  ///< only if there is no report to be in
  std::function<void(std::string_view)> print = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  };
  std::function<void(std::string_view)> report = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
};

void Machine::State::follow_bytes() {
  if (defined == nullptr) {
    defined = std::make_unique<ByteShadow>(memory.begin(), memory.end());
    memory.set_free_listener([shadow = defined.get()](std::uint64_t address, std::uint64_t bytes) {
      shadow->forget(address, bytes);
    });
  }
  for (const GlobalMemory::Allocation& each : memory.live())
    defined->set(each.address, each.size_bytes, true);
}

void Machine::State::keep_report() {
  if (options.report_path.empty()) return usage.reset();
  if (usage == nullptr) usage = std::make_unique<ReportWriter>(model, options.report_path);
}

std::uint64_t Machine::State::clear_workspace() {
  workspace = {sizeof workspace};
  const auto address = reinterpret_cast<std::uint64_t>(workspace.data());
  if (!is_workspace_known) {
    memory.add_host_range(address, sizeof workspace, "the workspace of cooperative launches");
    is_workspace_known = true;
  }
  return address;
}

Grid Machine::State::make_grid(const Launch& launch, const KernelCode& code) {
  Grid grid;
  grid.memory = &memory;
  grid.code = &code;
  grid.launch = &launch;
  grid.options = options;
  grid.arena_begin = memory.begin();
  grid.arena_end = memory.end();
  grid.params = launch.params;
  grid.params.resize(grid.params.size() + 64);  // a wide load at the end stays inside
  grid.id = ++num_launches;
  grid.print = print;
  if (launch.is_cooperative) grid.workspace_address = clear_workspace();
  return grid;
}

void Machine::State::sample(Grid& grid) const {
  const std::uint64_t all = grid.launch->grid.count() / grid.launch->cluster.count();
  const bool is_whole = grid.code->claims_clusters || grid.launch->is_cooperative;
  if (!options.has_time || options.time_sample == 0 || options.time_sample >= all || is_whole) {
    return;
  }
  if (options.samples_products_alone && !multiplies(*grid.code)) return;
  // CTAs that are there at once draw their work or share it evenly: fewer show how it goes.
  const bool is_resident = all <= model.num_sms / grid.launch->cluster.count();
  const std::uint64_t most =
      is_resident ? std::max(2U, options.time_sample / 3) : options.time_sample;
  grid.sample = sample_clusters(all, most);
  grid.stands_for = all / grid.sample.size();
}

Prediction Machine::State::predict(const Grid& grid, TimeObserver& seen) {
  LaunchTrace trace = seen.take();
  trace.num_clusters = grid.num_clusters;
  const TimeParameters parameters = with_ideal_units(time_parameters(model), options.ideal_units);
  l2_contents.mark(trace, parameters.l2_bytes);
  Prediction prediction = predict_launch(*grid.code, *grid.launch, model, parameters, trace);
  l2_contents.add(trace);
  if (!grid.sample.empty()) {
    prediction.num_left_out =
        prediction.num_ctas - grid.sample.size() * grid.launch->cluster.count();
  }
  if (options.timeline_path.ends_with(".svg")) {
    write_file(options.timeline_path, timeline_svg(grid.code->info.name, prediction));
  } else if (!options.timeline_path.empty()) {
    write_json(options.timeline_path, timeline_json(grid.code->info.name, prediction));
  }
  return prediction;
}

std::optional<Fault> Machine::State::run(Grid& grid) {
  const std::size_t num_known = findings.size();
  const std::uint64_t num_before = findings.total(), num_left_out = findings.num_left_out();
  std::optional<Fault> fault = run_grid(grid);
  const std::vector<Finding> added = findings.take_from(num_known);
  for (const Finding& finding : added) report(fmt::format("sim: {}\n", to_string(finding)));
  const std::string kernel = readable_name(grid.code->info.name);
  if (const std::uint64_t more = findings.num_left_out(); more != num_left_out) {
    report(fmt::format("sim: {}: {} findings of other causes are not shown; {} are the most\n",
                       kernel, more - num_left_out, grid.options.max_findings));
  }
  if (!fault && !grid.options.report_only && findings.total() != num_before) {
    fault = Fault{FaultKind::kFinding, first_finding(added, kernel), !added.empty()};
  }
  return fault;
}

Machine::Machine(const DeviceModel& model, Options options) {
  refuse_old_processor();
  state_ = std::make_unique<State>(model, std::move(options));
  state_->findings.set_limit(state_->options.max_findings);
  if (state_->options.checks.init) state_->follow_bytes();
  if (state_->options.has_times) state_->times.emplace();
  if (state_->options.has_progress) state_->progress.emplace(seconds_now());
  state_->keep_report();
}

Machine::~Machine() {
  if (state_->times) state_->report(state_->times->text());
  if (const std::string text = state_->predictions.text(); !text.empty()) state_->report(text);
  finish_report();
}

bool Machine::finish_report() noexcept {
  return !state_->usage || state_->usage->finish(state_->report);
}

const DeviceModel& Machine::model() const noexcept {
  return state_->model;
}
const Options& Machine::options() const noexcept {
  return state_->options;
}
GlobalMemory& Machine::memory() noexcept {
  return state_->memory;
}

std::string Machine::take_report() {
  const std::scoped_lock lock(state_->launch_mutex);
  if (!state_->usage) return {};
  return format_json(report_json(state_->usage->take(), state_->model));
}

void Machine::set_output(std::function<void(std::string_view)> print,
                         std::function<void(std::string_view)> report) {
  state_->print = std::move(print);
  state_->report = std::move(report);
}

void Machine::set_report_output(std::function<void(std::string_view)> report) {
  state_->report = std::move(report);
}

void Machine::set_observer(Observer* observer) {
  state_->observer = observer;
}

std::shared_ptr<const LoadedModule> Machine::load(Module module) {
  refuse_target(module, model());
  const double begin = processor_seconds();
  auto loaded = std::make_shared<Loaded>(std::move(module), state_->memory,
                                         model().compute_capability, state_->options.fuse_mul_add);
  if (state_->defined) {
    for (const VariableInfo& variable : loaded->variables()) {
      state_->defined->set(variable.address, variable.size_bytes, true);
    }
  }
  if (state_->times) {
    const std::lock_guard lock(state_->launch_mutex);
    state_->times->add_load(processor_seconds() - begin);
  }
  return loaded;
}

const Findings& Machine::findings() const noexcept {
  return state_->findings;
}

std::string Machine::take_findings() {
  const std::scoped_lock lock(state_->launch_mutex);
  const std::string text =
      format_json(findings_json(state_->findings.take_from(0)), JsonStrings::kReplaceInvalid);
  state_->findings.clear();
  return text;
}

void Machine::set_options(const Options& options) {
  const std::scoped_lock lock(state_->launch_mutex);
  Options& own = state_->options;
  const bool begins_init = options.checks.init && !own.checks.init;
  if (own.checks != options.checks) state_->history.clear();
  own.checks = options.checks;
  own.report_only = options.report_only;
  own.report_path = options.report_path;
  own.seed = options.seed;
  own.async_timing = options.async_timing;
  own.is_exact_mma = options.is_exact_mma;
  own.max_findings = options.max_findings;
  own.time_sample = options.time_sample;
  own.samples_products_alone = options.samples_products_alone;
  state_->findings.set_limit(own.max_findings);
  if (begins_init) state_->follow_bytes();
  state_->keep_report();
}

void Machine::forget_launches() {
  if (!state_->options.checks.race) return;
  const std::scoped_lock lock(state_->launch_mutex);
  state_->history.clear();
}

void Machine::mark_defined(std::uint64_t address, std::uint64_t bytes) {
  state_->is_host_known = true;
  if (state_->defined) state_->defined->set(address, bytes, true);
}

void Machine::mark_copied(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  state_->is_host_known = true;
  if (state_->defined) state_->defined->copy(to, from, bytes);
}

void Machine::mark_undefined(std::uint64_t address, std::uint64_t bytes) {
  state_->is_host_known = true;
  if (state_->defined) state_->defined->set(address, bytes, false);
}

std::uint32_t Machine::max_active_ctas_per_sm(const KernelInfo& kernel, std::uint32_t threads,
                                              std::uint32_t dynamic_shared_bytes) const {
  return sim::max_active_ctas_per_sm(model(), kernel, threads, dynamic_shared_bytes);
}

std::optional<Fault> Machine::launch(const Launch& launch) {
  const KernelCode& code = find_code(launch, model());
  const std::lock_guard lock(state_->launch_mutex);
  Grid grid = state_->make_grid(launch, code);
  grid.device = &state_->model;
  const CheckerSet checkers = make_observer(
      grid.options, code, state_->findings, state_->is_host_known ? state_->defined.get() : nullptr,
      {grid.options.checks.race ? &state_->history : nullptr, launch.is_dependent});
  grid.definedness = checkers.definedness;
  grid.findings = &state_->findings;
  ObserverList observers;
  if (checkers.observer != nullptr) observers.add(checkers.observer);
  if (state_->observer != nullptr) observers.add(state_->observer);
  std::optional<UsageObserver> usage;
  if (state_->usage) observers.add(&usage.emplace(code));
  std::optional<TimeObserver> tracer;
  if (state_->options.has_time) {
    state_->sample(grid);
    const std::uint64_t all = launch.grid.count() / launch.cluster.count();
    observers.add(&tracer.emplace(
        code, state_->memory, grid.sample.empty() ? sample_clusters(all, kMostTraced) : grid.sample,
        more_of(grid, state_->options.time_sample)));
  }
  grid.observer = observers.get();
  const double begin = processor_seconds();
  std::optional<Fault> fault = state_->run(grid);
  if (state_->times) state_->times->add_launch(code.info.name, processor_seconds() - begin);
  if (state_->progress) {
    const std::string line = state_->progress->launched(code.info.name, seconds_now());
    if (!line.empty()) state_->report(line);
  }
  std::optional<Prediction> prediction;
  if (tracer && !fault) {
    const double end = processor_seconds();
    prediction = state_->predict(grid, *tracer);
    if (state_->times) state_->times->add_prediction(processor_seconds() - end);
  }
  if (prediction && !usage) state_->predictions.add(code.info.name, *prediction);
  if (usage) {
    KernelUsage used = usage->result(model(), launch);
    if (fault) used.faults.push_back(fault->message);
    used.prediction = std::move(prediction);
    state_->usage->add(used);
  }
  return fault;
}

}  // namespace tilewright::sim
