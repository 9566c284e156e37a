#include "sim/driver/objects/state.h"

#include "base/env.h"
#include "base/error.h"
#include "base/quote.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/module.h"
#include "sim/driver/objects/stream.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tilewright::sim {

namespace {

constexpr std::size_t kStackBytes = 1024;
constexpr std::size_t kPrintfBytes = 8650752;
constexpr std::size_t kHeapBytes = 8388608;
constexpr std::size_t kPendingLaunches = 2048;
constexpr std::size_t kFetchBytes = 64;

std::array<std::size_t, 10> default_limits(const DeviceModel& model) {
  return {kStackBytes,
          kPrintfBytes,
          kHeapBytes,
          0,
          kPendingLaunches,
          kFetchBytes,
          0,
          model.shared_bytes_per_cta_optin,
          0,
          0};
}

/// The models that TILEWRIGHT_SIM_DEVICE names, in its order: "b200", "b200,h200"; all if it is not
/// set.
std::vector<const DeviceModel*> chosen_models() {
  std::vector<const DeviceModel*> chosen;
  const std::string variable = env_text("TILEWRIGHT_SIM_DEVICE");
  std::string_view keys = variable;
  std::string known;
  for (const DeviceModel& model : device_models()) {
    if (keys.empty()) chosen.push_back(&model);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", model.key);
  }
  while (!keys.empty()) {
    const std::string_view key = keys.substr(0, keys.find(','));
    keys.remove_prefix(std::min(key.size() + 1, keys.size()));
    const DeviceModel* const model = find_device_model(key);
    require(model != nullptr, ErrorKind::kInvalidArgument,
            "TILEWRIGHT_SIM_DEVICE = {}; expected one of {}, or several with commas between",
            quote(variable), known);
    chosen.push_back(model);
  }
  return chosen;
}

}  // namespace

Context::Context(Device& device_) : device(device_), id(Driver::get().next_id()) {
  clear();
}

Context::~Context() = default;

void Context::clear() {
  const std::lock_guard lock(mutex_);
  fault_.reset();
  is_reported_ = false;
  cache_config = abi::CUfunc_cache::kNone;
  shared_config = abi::CUsharedconfig::kDefaultBankSize;
  limits = default_limits(device.model);
  per_thread_streams_.clear();
  legacy_stream = std::make_shared<Stream>(*this);
}

std::shared_ptr<Stream> Context::per_thread_stream() {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Stream>& stream = per_thread_streams_[std::this_thread::get_id()];
  if (stream == nullptr) stream = std::make_shared<Stream>(*this);
  return stream;
}

void Context::break_with(CUresult fault) {
  const std::lock_guard lock(mutex_);
  if (!fault_) fault_ = fault;
}

bool Context::is_silently_broken() const {
  const std::lock_guard lock(mutex_);
  if (fault_ && is_reported_) refuse(*fault_);
  return fault_.has_value();
}

void Context::report_fault() {
  const std::lock_guard lock(mutex_);
  if (!fault_) return;
  is_reported_ = true;
  refuse(*fault_);
}

void Context::synchronize() {
  if (Machine* const machine = device.existing_machine()) machine->forget_launches();
  report_fault();
}

Device::Device(int ordinal_, const DeviceModel& model_, const Options& options)
    : ordinal(ordinal_),
      model(with_sms(model_, options.num_sms)),
      default_pool(std::make_shared<MemoryPool>()),
      current_pool(default_pool),
      options_(options) {
  default_pool->device = this;
  default_pool->is_default = true;
  primary = std::make_shared<Context>(*this);
  primary->is_primary = true;
}

Machine& Device::machine() {
  const std::lock_guard lock(machine_mutex_);
  if (machine_ == nullptr) {
    machine_ = std::make_unique<Machine>(model, options_);
    machine_->set_report_output([](std::string_view text) {
      if (!keep_message(text)) std::fwrite(text.data(), 1, text.size(), stderr);
    });
    machine_->mark_defined(0, 0);  // whatever the host writes will be said, from the start
    for (const Block& block : Driver::get().blocks.of_host()) {
      machine_->memory().add_host_range(block.address, block.size_bytes, "host memory");
    }
    ready_machine_ = machine_.get();
  }
  return *machine_;
}

bool Device::close() noexcept {
  // A launch that another thread still waits for keeps its machine.
  const std::unique_lock launching(launch_mutex, std::try_to_lock);
  if (!launching.owns_lock()) return true;
  const std::lock_guard lock(machine_mutex_);
  ready_machine_ = nullptr;
  const bool is_complete = machine_ == nullptr || machine_->finish_report();
  machine_.reset();
  return is_complete;
}

Driver& Driver::get() {
  static Driver& driver = *new Driver;
  return driver;
}

void Driver::initialize() {
  const std::lock_guard lock(mutex_);
  expect(!is_closed_, CUresult::kDeinitialized);
  if (is_initialized_) return;
  options_ = Options::from_environment();
  int ordinal = 0;
  for (const DeviceModel* model : chosen_models()) {
    devices_.push_back(std::make_unique<Device>(ordinal++, *model, options_));
    contexts.add(devices_.back()->primary);
    pools.add(devices_.back()->default_pool);
  }
  ::on_exit(end_process, nullptr);  // the library stays loaded
  is_initialized_ = true;
}

void Driver::end_process(int status, void*) noexcept {
  const bool is_complete = get().close();
  if (!is_complete && status == 0) std::exit(1);  // glibc goes on with the handlers that are left
}

bool Driver::close() noexcept {
  is_closed_ = true;
  bool is_complete = true;
  for (const auto& each : devices_) is_complete = each->close() && is_complete;
  return is_complete;
}

Device& Driver::device(abi::CUdevice ordinal) {
  expect(ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices_.size(),
         CUresult::kInvalidDevice);
  return *devices_[static_cast<std::size_t>(ordinal)];
}

std::vector<std::shared_ptr<Context>>& context_stack() {
  thread_local std::vector<std::shared_ptr<Context>> stack;
  return stack;
}

Context& current_context() {
  const auto& stack = context_stack();
  expect(!stack.empty(), CUresult::kInvalidContext);
  expect(stack.back()->is_active, CUresult::kContextIsDestroyed);
  return *stack.back();
}

Context& usable_context() {
  Context& context = current_context();
  context.report_fault();
  return context;
}

void announce_host_range(const Block& block) {
  for (const auto& device : Driver::get().devices()) {
    Machine* const machine = device->existing_machine();
    if (machine == nullptr) continue;
    machine->memory().add_host_range(block.address, block.size_bytes, "host memory");
  }
}

void withdraw_host_range(std::uint64_t address) {
  for (const auto& device : Driver::get().devices()) {
    Machine* const machine = device->existing_machine();
    if (machine != nullptr) machine->memory().remove_host_range(address);
  }
}

void release_block(const Block& block) noexcept {
  if (block.kind == Block::Kind::kDevice) {
    answer([&] { block.device->machine().memory().free(block.address); });  // says what is wrong
    return;
  }
  withdraw_host_range(block.address);
  if (block.kind != Block::Kind::kRegistered) std::free(reinterpret_cast<void*>(block.address));
}

void tear_down(Context& context) {
  Driver& driver = Driver::get();
  const auto belongs = [&context](const auto& object) { return object.context == &context; };
  driver.graph_execs.take_if(belongs);
  driver.streams.take_if([&](const Stream& stream) { return &stream.context == &context; });
  driver.events.take_if(belongs);
  driver.functions.take_if(
      [&](const FunctionObject& function) { return function.module->context == &context; });
  driver.modules.take_if(belongs);
  for (const Block& block : driver.blocks.take_of(context)) release_block(block);
}

}  // namespace tilewright::sim
