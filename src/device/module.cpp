#include "device/module.h"

#include "base/error.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tilewright::device {

using abi::CUjit_option;
using abi::CUresult;

namespace {

constexpr std::size_t kLogBytes = 16384;

/// Options for the driver's compiler. Numbers travel in the pointer itself.
class JitArguments {
 public:
  explicit JitArguments(const JitOptions& options) : log_(kLogBytes, '\0') {
    add(CUjit_option::kErrorLogBuffer, log_.data());
    add(CUjit_option::kErrorLogBufferSizeBytes, number(kLogBytes));
    add(CUjit_option::kOptimizationLevel, number(options.optimization_level));
    if (options.max_registers > 0) {
      add(CUjit_option::kMaxRegisters, number(options.max_registers));
    }
    if (options.has_line_info) add(CUjit_option::kGenerateLineInfo, number(1));
  }
  JitArguments(const JitArguments&) = delete;  // values_ point into log_
  JitArguments& operator=(const JitArguments&) = delete;

  unsigned count() const noexcept { return static_cast<unsigned>(keys_.size()); }
  CUjit_option* keys() noexcept { return keys_.data(); }
  void** values() noexcept { return values_.data(); }
  /// What the compiler complained about, without trailing white space.
  std::string log() const {
    const std::string text(log_.data());  // ends at the first NUL
    return text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
  }

 private:
  template <class Number>
  static void* number(Number value) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value));
  }
  void add(CUjit_option key, void* value) {
    keys_.push_back(key);
    values_.push_back(value);
  }

  std::string log_;
  std::vector<CUjit_option> keys_;
  std::vector<void*> values_;
};

std::shared_ptr<const LoadedModule> load(const Device& device, std::string_view name,
                                         const void* image, const JitOptions& options) {
  const auto current = device.make_current();
  JitArguments arguments(options);
  abi::CUmodule handle = nullptr;
  const CUresult result = device.cu().module_load_data_ex(&handle, image, arguments.count(),
                                                          arguments.keys(), arguments.values());
  if (result != CUresult::kSuccess) {
    const std::string log = arguments.log();
    device.raise(result, "cuModuleLoadDataEx",
                 fmt::format("module = {}{}{}", name, log.empty() ? "" : ", driver's log: ", log));
  }
  return std::make_shared<const LoadedModule>(device, handle);
}

template <class Number>
Number read_number(std::span<const std::byte> image, std::size_t offset) {
  Number value = 0;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

/// Bytes that the image must have according to its own header; 0 if it is no image. The driver is
/// not told the size and would read past the end of a file that was cut short.
std::uint64_t size_by_header(std::span<const std::byte> image) {
  constexpr std::uint32_t kElf = 0x464c457f;
  constexpr std::uint32_t kFatbin = 0xba55ed50;
  constexpr std::size_t kElfHeaderBytes = 64;
  constexpr std::size_t kFatbinHeaderBytes = 16;
  if (image.size() < kFatbinHeaderBytes) return 0;
  const auto magic = read_number<std::uint32_t>(image, 0);
  if (magic == kFatbin) {
    const auto payload_bytes = read_number<std::uint64_t>(image, 8);
    if (payload_bytes > image.size()) return payload_bytes;  // before a sum that could overflow
    return read_number<std::uint16_t>(image, 6) + payload_bytes;
  }
  if (magic != kElf) return 0;
  if (image.size() < kElfHeaderBytes) return kElfHeaderBytes;
  const auto section_table = read_number<std::uint64_t>(image, 40);
  if (section_table > image.size()) return section_table;
  const std::uint64_t section_bytes = read_number<std::uint16_t>(image, 58);
  const std::uint64_t num_sections = read_number<std::uint16_t>(image, 60);
  return std::max<std::uint64_t>(kElfHeaderBytes, section_table + section_bytes * num_sections);
}

}  // namespace

Module Module::from_ptx(const Device& device, std::string_view name, std::string_view text,
                        const JitOptions& options) {
  require(!text.empty(), ErrorKind::kInvalidArgument, "module {}: the PTX text is empty", name);
  // A NUL inside would hide the rest from the driver; one at the end is common in embedded text.
  const std::string terminated(text.substr(0, text.find_last_not_of('\0') + 1));
  require(terminated.find('\0') == std::string::npos, ErrorKind::kInvalidArgument,
          "module {}: the PTX text has a NUL character at byte {}; is it a cubin?", name,
          terminated.find('\0'));
  return {std::string(name), load(device, name, terminated.c_str(), options)};
}

Module Module::from_cubin(const Device& device, std::string_view name,
                          std::span<const std::byte> image) {
  const std::uint64_t size = size_by_header(image);
  require(
      size != 0, ErrorKind::kInvalidArgument,
      "module {}: {} bytes that begin neither as a cubin (ELF) nor as a fatbin; use from_ptx for "
      "PTX text",
      name, image.size());
  require(size <= image.size(), ErrorKind::kInvalidArgument,
          "module {}: the image has {} bytes, its header promises {}; it was cut short", name,
          image.size(), size);
  return {std::string(name), load(device, name, image.data(), {})};
}

ModuleGlobal Module::global(const std::string& name) const {
  const Device& device = loaded_->device();
  const auto current = device.make_current();
  ModuleGlobal found;
  device.check(device.cu().module_get_global(&found.address, &found.size_bytes, loaded_->get(),
                                             name.c_str()),
               "cuModuleGetGlobal", "variable = {}, module = {}", name, name_);
  return found;
}

}  // namespace tilewright::device
