// From the bytes that a program hands over to PTX text. A fatbin holds one or several programs for
// several targets; the container is described nowhere, its fields are known by looking at many.
#include "base/error.h"
#include "sim/driver/module/ptx_folder.h"
#include "sim/driver/objects/module.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <dlfcn.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kElfMagic = 0x464c457f;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint32_t kWrapperMagic = 0x466243b1;

/// What nvcc puts around a fatbin in a program.
struct Wrapper {
  std::uint32_t magic, version;
  const std::byte* fatbin;
  const void* unused;
};

struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t payload_bytes;
};
static_assert(sizeof(FatbinHeader) == 16);

struct EntryHeader {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;  ///< padded
  std::uint32_t compressed_bytes, unused0;
  std::uint16_t minor, major;
  std::uint32_t target;  ///< 90
  std::uint32_t name_offset, name_bytes;
  std::uint64_t flags, unused1, text_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

constexpr std::uint16_t kPtxKind = 1, kCubinKind = 2;
constexpr std::uint64_t kIsLz4 = 0x2000;
constexpr std::uint64_t kIsZstd = 0x8000;
constexpr std::uint64_t kMaxTextBytes = 1 << 30;
constexpr std::uint64_t kMaxExpansion = 1 << 16;  ///< a small hostile file asks for little memory

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The block format of LZ4: runs of literals and references to what was written before.
std::optional<std::string> expand_lz4(std::string_view in, std::size_t out_bytes) {
  std::string out;
  out.reserve(out_bytes);
  std::size_t at = 0;
  const auto byte = [&]() -> std::size_t {
    return at < in.size() ? static_cast<unsigned char>(in[at++]) : 0;
  };
  const auto length = [&](std::size_t nibble) {
    std::size_t sum = nibble;
    for (std::size_t more = nibble == 15 ? 255 : 0; more == 255;) sum += more = byte();
    return sum;
  };
  while (at < in.size() && out.size() < out_bytes) {
    const std::size_t token = byte();
    const std::size_t num_literals = length(token >> 4);
    if (num_literals > in.size() - at || num_literals > out_bytes - out.size()) return std::nullopt;
    out += in.substr(at, num_literals);
    at += num_literals;
    if (at >= in.size() || out.size() == out_bytes) break;
    const std::size_t low = byte();
    const std::size_t distance = low + 256 * byte();
    const std::size_t num_repeated = length(token & 15) + 4;
    if (distance == 0 || distance > out.size() || num_repeated > out_bytes - out.size()) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < num_repeated; ++i) out += out[out.size() - distance];
  }
  return out.size() == out_bytes ? std::optional(out) : std::nullopt;
}

/// By the system's library, if it has one: nvcc 13 compresses so unless told otherwise.
std::optional<std::string> expand_zstd(std::string_view in, std::size_t out_bytes) {
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  using Decompress =
      std::size_t(void* to, std::size_t to_bytes, const void* from, std::size_t from_bytes);
  static auto* const decompress = reinterpret_cast<Decompress*>(dlsym(library, "ZSTD_decompress"));
  if (decompress == nullptr) return std::nullopt;
  std::string out(out_bytes, '\0');
  const std::size_t written = decompress(out.data(), out_bytes, in.data(), in.size());
  return written == out_bytes ? std::optional(out) : std::nullopt;
}

struct Entry {
  EntryHeader header{};
  std::string_view payload;
};

/// Bytes that can be read from an address on: to the end of the mapping that it is in. The driver's
/// interface has no length, and a header may claim more than there is.
std::uint64_t readable_bytes(const std::byte* from) {
  const auto address = reinterpret_cast<std::uint64_t>(from);
  std::ifstream maps("/proc/self/maps");
  std::uint64_t end = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uint64_t low = 0, high = 0;
    char dash = 0;
    std::string rights;
    fields >> std::hex >> low >> dash >> high >> rights;
    const bool goes_on = end == 0 ? low <= address && address < high : low == end;
    if (end != 0 && !goes_on) break;
    if (goes_on && rights.starts_with('r')) end = high;
  }
  return end == 0 ? ~std::uint64_t{0} : end - address;  // 0: the system does not tell
}

/// All entries; stops where the container stops making sense.
std::vector<Entry> entries_of(const std::byte* fatbin) {
  const auto header = read<FatbinHeader>(fatbin);
  std::vector<Entry> entries;
  const std::byte* at = fatbin + header.header_bytes;
  const std::uint64_t there = readable_bytes(fatbin);
  if (there <= header.header_bytes) return entries;
  std::uint64_t rest = std::min(header.payload_bytes, there - header.header_bytes);
  while (rest >= sizeof(EntryHeader)) {
    Entry entry{.header = read<EntryHeader>(at), .payload = {}};
    const std::uint64_t head = entry.header.header_bytes;
    const std::uint64_t body = entry.header.payload_bytes;
    if (head < sizeof(EntryHeader) || head > rest || body > rest - head) break;
    entry.payload = {reinterpret_cast<const char*>(at + head), body};
    entries.push_back(entry);
    at += head + body;
    rest -= head + body;
  }
  return entries;
}

/// The payload; none if it is compressed and cannot be expanded.
std::optional<std::string> expanded(const Entry& entry) {
  if ((entry.header.flags & (kIsLz4 | kIsZstd)) == 0) return std::string(entry.payload);
  if (entry.header.compressed_bytes > entry.payload.size() ||
      entry.header.text_bytes >
          std::min(kMaxTextBytes, kMaxExpansion * entry.header.compressed_bytes))
    return std::nullopt;
  const std::string_view packed = entry.payload.substr(0, entry.header.compressed_bytes);
  return (entry.header.flags & kIsLz4) != 0 ? expand_lz4(packed, entry.header.text_bytes)
                                            : expand_zstd(packed, entry.header.text_bytes);
}

/// Errors   Failure after saying why
std::string text_of(const Entry& entry) {
  std::optional<std::string> text = expanded(entry);
  if (!text) {
    say("the PTX in a fatbin is compressed and cannot be expanded (with Zstandard, libzstd.so.1 is "
        "needed). Compile with nvcc --compress-mode=none");
    refuse(CUresult::kInvalidImage);
  }
  text->resize(std::min(text->find('\0'), text->size()));
  return *text;
}

/// The target that a PTX text names: 90 and 'a' for sm_90a.
struct Target {
  int number = 0;
  char suffix = '\0';
};

Target target_of(std::string_view text) {
  const std::size_t directive = text.find(".target");
  const std::size_t name =
      directive == std::string_view::npos ? directive : text.find("sm_", directive);
  Target target;
  if (name == std::string_view::npos) return target;
  std::size_t at = name + 3;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && target.number < 10000) {
    target.number = 10 * target.number + (text[at++] - '0');
  }
  if (at < text.size() && (text[at] == 'a' || text[at] == 'f')) target.suffix = text[at];
  return target;
}

/// Higher is better; 0 if the device cannot run it.
int fitness(const Target& target, int capability) {
  if (!target_runs_on(target.number, target.suffix, capability)) return 0;
  return 4 * target.number + (target.suffix == 'a' ? 2 : target.suffix == 'f' ? 1 : 0);
}

std::optional<std::string> find_kept_ptx_of(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (entry.header.kind == kPtxKind) continue;
    const std::optional<std::string> elf = expanded(entry);
    if (!elf) continue;
    if (std::optional<std::string> kept = find_kept_ptx(*elf)) return kept;
  }
  return std::nullopt;
}

std::string best_of(const std::byte* fatbin, const DeviceModel& model) {
  std::string best, seen;
  int best_fitness = 0;
  for (const Entry& entry : entries_of(fatbin)) {
    seen +=
        fmt::format("{}{} for {}", seen.empty() ? "" : ", ",
                    entry.header.kind == kPtxKind ? "PTX" : "machine code", entry.header.target);
    if (entry.header.kind != kPtxKind) continue;
    if (static_cast<int>(entry.header.target) > model.compute_capability) continue;
    std::string text = text_of(entry);
    const int its_fitness = fitness(target_of(text), model.compute_capability);
    if (its_fitness <= best_fitness) continue;
    best_fitness = its_fitness;
    best = std::move(text);
  }
  if (best_fitness > 0) return best;
  if (std::optional<std::string> kept = find_kept_ptx_of(entries_of(fatbin))) return *kept;
  say(fmt::format(
      "a fatbin holds no PTX that runs on compute capability {}.{}, only: {}. The "
      "simulator runs PTX: compile with -gencode arch=compute_{}a,code=compute_{}a, or keep the "
      "compiler's PTX and name its folder in {}",
      model.compute_capability / 10, model.compute_capability % 10, seen.empty() ? "nothing" : seen,
      model.compute_capability, model.compute_capability, kPtxFolderVariable));
  refuse(CUresult::kNoBinaryForGpu);
}

}  // namespace

std::string ptx_of(const void* image, const DeviceModel& model) {
  expect(image != nullptr);
  const auto* bytes = static_cast<const std::byte*>(image);
  // Text may be shorter than a magic number.
  const auto* const text = static_cast<const char*>(image);
  const std::size_t length = strnlen(text, sizeof(std::uint32_t));
  std::uint32_t magic = length == sizeof magic ? read<std::uint32_t>(bytes) : 0;
  if (magic == kWrapperMagic) {
    bytes = read<Wrapper>(bytes).fatbin;
    expect(bytes != nullptr, CUresult::kInvalidImage);
    magic = read<std::uint32_t>(bytes);
  }
  if (magic == kFatbinMagic) return best_of(bytes, model);
  if (magic == kElfMagic) {
    if (std::optional<std::string> kept = find_kept_ptx(image)) return *kept;
    say(fmt::format(
        "this is machine code (a cubin); the simulator runs PTX. Compile with -ptx, or "
        "with -gencode arch=compute_{}a,code=compute_{}a to have PTX in the program, or "
        "keep the compiler's PTX and name its folder in {}",
        model.compute_capability, model.compute_capability, kPtxFolderVariable));
    refuse(CUresult::kNoBinaryForGpu);
  }
  expect(length > 0, CUresult::kInvalidImage);
  return text;
}

std::string cubin_of(const void* image, const DeviceModel& model) {
  const auto* bytes = static_cast<const std::byte*>(image);
  const std::size_t length = strnlen(static_cast<const char*>(image), sizeof(std::uint32_t));
  if (length < sizeof(std::uint32_t)) return {};
  if (read<std::uint32_t>(bytes) == kWrapperMagic) bytes = read<Wrapper>(bytes).fatbin;
  if (bytes == nullptr || read<std::uint32_t>(bytes) != kFatbinMagic) return {};
  for (const Entry& entry : entries_of(bytes)) {
    const bool is_for_device = static_cast<int>(entry.header.target) == model.compute_capability;
    if (entry.header.kind != kCubinKind || !is_for_device) continue;
    if (std::optional<std::string> cubin = expanded(entry)) return *cubin;
  }
  return {};
}

std::string read_image_file(const char* path) {
  expect(path != nullptr);
  std::ifstream file(path, std::ios::binary);
  expect(file.is_open(), CUresult::kFileNotFound);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  expect(!file.bad(), CUresult::kFileNotFound);
  return bytes;
}

}  // namespace tilewright::sim
