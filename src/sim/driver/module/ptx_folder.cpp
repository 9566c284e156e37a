#include "sim/driver/module/ptx_folder.h"

#include "base/env.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

namespace tilewright::sim {

namespace {

namespace fs = std::filesystem;

// The parts of ELF64 that are needed; numbers are little-endian, as on all hosts of CUDA.
struct ElfHeader {
  unsigned char ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_offset, section_offset;
  std::uint32_t flags;
  std::uint16_t header_bytes, program_bytes, num_programs, section_bytes, num_sections, names;
};
static_assert(sizeof(ElfHeader) == 64);

struct ElfSection {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, bytes;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_bytes;
};
static_assert(sizeof(ElfSection) == 64);

constexpr char kElfIdent[] = {0x7f, 'E', 'L', 'F', 2};
constexpr std::uint64_t kLargestElf = std::uint64_t{1} << 32;

// Reads at an offset; false if that is not all inside.
template <class T>
bool read_at(std::string_view bytes, std::uint64_t offset, T& out) {
  if (offset > bytes.size() || sizeof out > bytes.size() - offset) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return true;
}

std::string_view text_at(std::string_view bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const std::string_view rest = bytes.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

bool is_elf64(std::string_view bytes) {
  return bytes.size() >= sizeof(ElfHeader) &&
         std::memcmp(bytes.data(), kElfIdent, sizeof kElfIdent) == 0;
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

bool defines(std::string_view ptx, const std::string& kernel) {
  for (std::size_t at = ptx.find(kernel); at != ptx.npos; at = ptx.find(kernel, at + 1)) {
    const std::size_t end = at + kernel.size();
    if (end < ptx.size() && is_name_character(ptx[end])) continue;
    const std::size_t word = ptx.find_last_not_of(" \t\r\n", at == 0 ? 0 : at - 1);
    constexpr std::string_view kEntry = ".entry";
    if (word != ptx.npos && word + 1 >= kEntry.size() && word + 1 < at &&
        ptx.substr(word + 1 - kEntry.size(), kEntry.size()) == kEntry)
      return true;
  }
  return false;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// How long an ELF image is, by its own headers; 0 if it is none.
std::size_t elf_bytes(const void* image) {
  ElfHeader header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.ident, kElfIdent, sizeof kElfIdent) != 0) return 0;
  const std::uint64_t sections =
      header.section_offset + std::uint64_t{header.num_sections} * header.section_bytes;
  const std::uint64_t programs =
      header.program_offset + std::uint64_t{header.num_programs} * header.program_bytes;
  const std::uint64_t bytes = std::max(sections, programs);
  return bytes < kLargestElf ? static_cast<std::size_t>(bytes) : 0;
}

std::string ptx_folder() {
  return env_text(kPtxFolderVariable);
}

}  // namespace

std::vector<std::string> kernels_of_cubin(std::string_view elf) {
  std::vector<std::string> kernels;
  ElfHeader header;
  if (!is_elf64(elf) || !read_at(elf, 0, header) || header.section_bytes < sizeof(ElfSection))
    return kernels;
  const auto section_at = [&](std::uint64_t index, ElfSection& out) {
    return header.section_offset < elf.size() &&
           read_at(elf, header.section_offset + index * header.section_bytes, out);
  };
  ElfSection names;
  if (!section_at(header.names, names) || names.offset > elf.size()) return kernels;
  const std::string_view strings = elf.substr(names.offset, names.bytes);
  for (std::uint64_t i = 0; i < header.num_sections; ++i) {
    ElfSection section;
    if (!section_at(i, section)) return {};
    constexpr std::string_view kPrefix = ".text.";
    const std::string_view name = text_at(strings, section.name);
    if (name.starts_with(kPrefix)) kernels.emplace_back(name.substr(kPrefix.size()));
  }
  return kernels;
}

std::optional<std::string> find_kept_ptx(std::string_view elf) {
  const std::string folder = ptx_folder();
  if (folder.empty()) return std::nullopt;
  const std::vector<std::string> kernels = kernels_of_cubin(elf);
  if (kernels.empty()) return std::nullopt;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
           folder, fs::directory_options::skip_permission_denied, error))
    if (entry.path().extension() == ".ptx") files.emplace_back(entry.last_write_time(error), entry);
  std::ranges::sort(files, std::greater{});
  for (const auto& [time, path] : files) {
    std::string text = read_text(path);
    const auto is_defined = [&](const std::string& kernel) { return defines(text, kernel); };
    if (std::ranges::all_of(kernels, is_defined)) return text;
  }
  return std::nullopt;
}

std::optional<std::string> find_kept_ptx(const void* image) {
  if (ptx_folder().empty()) return std::nullopt;
  return find_kept_ptx(std::string_view(static_cast<const char*>(image), elf_bytes(image)));
}

}  // namespace tilewright::sim
