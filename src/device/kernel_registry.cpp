#include "device/kernel_registry.h"

#include "base/env.h"
#include "base/error.h"
#include "base/similar.h"
#include "device/module.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

namespace tilewright::device {
namespace {

constexpr std::string_view kDirective = ".entry";
constexpr std::string_view kBlank = " \t\r\n";
constexpr std::string_view kNameEnd = " \t\r\n(";

/// The characters of a list by their code: find_first_of calls a function for each of the text.
class CharSet {
 public:
  constexpr explicit CharSet(std::string_view chars) {
    for (const char c : chars) has_[static_cast<unsigned char>(c)] = true;
  }
  /// Where the first of them stands from there on; the text's size if none does.
  std::size_t find_in(std::string_view text, std::size_t at) const {
    while (at < text.size() && !has_[static_cast<unsigned char>(text[at])]) ++at;
    return at;
  }

 private:
  std::array<bool, 256> has_{};
};

/// A definition or declaration of an entry, with its linkage.
struct Entry {
  std::size_t begin = 0, end = 0;
  std::string_view name;
};

/// Where the comment or string that begins at `at` ends; `at` if none does.
std::size_t skip_unread(std::string_view text, std::size_t at) {
  const auto behind = [&](std::string_view end, std::size_t from) {
    const std::size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  if (text[at] == '"') return behind("\"", at + 1);
  if (text.substr(at, 2) == "//") return behind("\n", at);
  if (text.substr(at, 2) == "/*") return behind("*/", at + 2);
  return at;
}

/// Behind the body that follows, or behind the semicolon of a declaration without one.
std::size_t end_of_entry(std::string_view text, std::size_t at) {
  int depth = 0;
  constexpr CharSet kStops("{};\"/");
  while ((at = kStops.find_in(text, at)) < text.size()) {
    if (const std::size_t skipped = skip_unread(text, at); skipped != at) {
      at = skipped;
      continue;
    }
    const char c = text[at++];
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return at;
    if (c == ';' && depth == 0) return at;
  }
  return text.size();
}

/// Where the linkage before a directive begins, or the directive itself.
std::size_t with_linkage(std::string_view text, std::size_t directive) {
  const std::string_view before =
      text.substr(0, text.substr(0, directive).find_last_not_of(kBlank) + 1);
  for (const std::string_view linkage : {".visible", ".extern", ".weak"}) {
    if (before.ends_with(linkage)) return before.size() - linkage.size();
  }
  return directive;
}

/// The entry whose directive stands at `directive`.
Entry entry_at(std::string_view text, std::size_t directive) {
  Entry entry;
  entry.begin = with_linkage(text, directive);
  const std::size_t name = text.find_first_not_of(kBlank, directive + kDirective.size());
  if (name == std::string_view::npos) return {entry.begin, text.size(), {}};
  entry.name = text.substr(name, text.find_first_of(kNameEnd, name) - name);
  entry.end = end_of_entry(text, name);
  return entry;
}

/// All of them, in order. Comments and strings between them are passed over.
std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> found;
  std::size_t at = 0;
  constexpr CharSet kStops(".\"/");
  while ((at = kStops.find_in(text, at)) < text.size()) {
    if (const std::size_t skipped = skip_unread(text, at); skipped != at) {
      at = skipped;
    } else if (text.substr(at, kDirective.size()) == kDirective) {
      found.push_back(entry_at(text, at));
      at = found.back().end;
    } else {
      ++at;
    }
  }
  return found;
}

/// Context, image, and the entry if it is loaded alone.
using ModuleKey = std::tuple<abi::CUcontext, const char*, std::string>;

/// What load_kernel has loaded. A module holds its device's context, so that no other one can have
/// its handle meanwhile.
struct LoadedModules {
  std::mutex mutex;
  std::map<ModuleKey, Module::Memory> memories;
  std::vector<Module> kept;
  int num_keepers = 0;
};

LoadedModules& loaded_modules() {
  static LoadedModules modules;
  return modules;
}

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kHeaderBytes = 16, kEntryBytes = 64;

/// Fields of a container that is described nowhere.
class FatbinWriter {
 public:
  template <class T>
  void add(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void add(std::string_view text, std::size_t padded) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + padded);
    if (!text.empty()) std::memcpy(bytes_.data() + at, text.data(), text.size());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

constexpr std::size_t padded_to(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void add_fatbin_entry(FatbinWriter& to, std::uint16_t kind, std::string_view payload,
                      std::size_t padded, int capability) {
  to.add(kind);
  to.add(std::uint16_t{0x101});
  to.add(std::uint32_t{kEntryBytes});
  to.add(std::uint64_t{padded});
  to.add(std::uint64_t{0});  // not compressed
  to.add(std::uint16_t{0});
  to.add(std::uint16_t{0});
  to.add(static_cast<std::uint32_t>(capability));
  to.add(std::uint64_t{0});  // no name
  to.add(std::uint64_t{0x11});
  to.add(std::uint64_t{0});
  to.add(std::uint64_t{0});
  to.add(payload, padded);
}

/// A fatbin as nvcc writes it for code=[sm_90a,compute_90a], uncompressed. `capability`: 90 for
/// sm_90a.
std::vector<std::byte> make_fatbin(std::string_view ptx, std::string_view cubin, int capability) {
  constexpr std::uint16_t kPtx = 1, kCubin = 2;
  // The text ends with a zero.
  const std::size_t ptx_bytes = padded_to(ptx.size() + 1, kAlignment);
  const std::size_t cubin_bytes = padded_to(cubin.size(), kAlignment);
  FatbinWriter to;
  to.add(std::uint32_t{0xba55ed50});
  to.add(std::uint16_t{1});
  to.add(std::uint16_t{kHeaderBytes});
  to.add(std::uint64_t{2 * kEntryBytes + ptx_bytes + cubin_bytes});
  add_fatbin_entry(to, kPtx, ptx, ptx_bytes, capability);
  add_fatbin_entry(to, kCubin, cubin, cubin_bytes, capability);
  return to.take();
}

/// The simulator translates PTX whenever a module is loaded: of up to 23 entries of a file, up to
/// 12 MB of text, it is given the one that is wanted. Where it predicts times it goes by machine
/// code, too.
Module load_image(const Device& device, const KernelImage& image) {
  const bool is_timed = env_text("TILEWRIGHT_SIM_TIME") == "1";
  if (device.is_simulated() && (!is_timed || image.cubin.packed.empty())) {
    return Module::from_ptx(device, image.source, only_entry(image.ptx.unpack(), image.name));
  }
  const std::string cubin = image.cubin.unpack();
  if (device.is_simulated()) {
    const std::string ptx = only_entry(image.ptx.unpack(), image.name);
    const int capability = device.info().compute_capability;
    return Module::from_cubin(device, image.source, make_fatbin(ptx, cubin, capability));
  }
  return Module::from_cubin(device, image.source, std::as_bytes(std::span(cubin)));
}

}  // namespace

std::string only_entry(std::string text, std::string_view name) {
  const std::vector<Entry> entries = entries_of(text);
  bool is_there = false;
  for (const Entry& entry : entries) is_there = is_there || entry.name == name;
  if (!is_there) return text;
  std::string kept;
  std::size_t done = 0;
  for (const Entry& entry : entries) {
    if (entry.name == name) continue;
    kept.append(text, done, entry.begin - done);
    for (std::size_t i = entry.begin; i < entry.end; ++i) {
      if (text[i] == '\n') kept += '\n';
    }
    done = entry.end;
  }
  kept.append(text, done);
  return kept;
}

std::string PackedBytes::unpack() const {
  std::string out(size_bytes, '\0');
  uLongf written = size_bytes;
  const int status = uncompress(reinterpret_cast<Bytef*>(out.data()), &written,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  require(status == Z_OK && written == size_bytes, ErrorKind::kInternal,
          "an embedded image of {} bytes does not unpack: zlib's status {}, {} bytes of {}",
          packed.size(), status, written, size_bytes);
  return out;
}

const KernelImage& find_kernel(std::string_view name, std::string_view target) {
  std::vector<std::string_view> targets, names;
  for (const KernelImage& image : kernel_images()) {
    if (image.name == name && image.target == target) return image;
    if (image.name == name) targets.push_back(image.target);
    names.push_back(image.name);
  }
  require(!names.empty(), ErrorKind::kUnsupported,
          "kernel {}: this library was built without kernels; build with -DTILEWRIGHT_KERNELS=ON",
          name);
  require(targets.empty(), ErrorKind::kUnsupported,
          "kernel {} is not built for {}; it exists for {}", name, target,
          fmt::join(targets, ", "));
  fail(ErrorKind::kUnsupported, "kernel {} does not exist ({}); `tilewright kernels` lists all",
       name, similar_names(name, names));
}

std::string kernel_target(const Device& device) {
  const int capability = device.info().compute_capability;
  const std::string_view target = kernel_target(capability);
  require(!target.empty(), ErrorKind::kUnsupported,
          "{}: kernels exist for compute capability 9.0, 10.0 and 10.3, this is {}.{}",
          device.label(), capability / 10, capability % 10);
  return std::string(target);
}

Kernel load_kernel(const Device& device, std::string_view name) {
  const KernelImage& image = find_kernel(name, kernel_target(device));
  LoadedModules& modules = loaded_modules();
  const std::scoped_lock lock(modules.mutex);
  const std::string entry(device.is_simulated() ? name : "");
  Module::Memory& memory = modules.memories[{device.context(), image.ptx.packed.data(), entry}];
  std::optional<Module> module = Module::recall(image.source, memory);
  if (!module) {
    module = load_image(device, image);
    memory = module->remember();
    if (modules.num_keepers > 0) modules.kept.push_back(*module);
  }
  return module->kernel(std::string(name));
}

KeptModules::KeptModules() {
  LoadedModules& modules = loaded_modules();
  const std::scoped_lock lock(modules.mutex);
  ++modules.num_keepers;
}

KeptModules::~KeptModules() {
  LoadedModules& modules = loaded_modules();
  std::vector<Module> unloaded;  // without the lock
  const std::scoped_lock lock(modules.mutex);
  if (--modules.num_keepers == 0) unloaded.swap(modules.kept);
}

}  // namespace tilewright::device
