#include "sim/time/machine_code.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kInsnBytes = 16;
constexpr std::string_view kLineSection = ".nv_debug_line_sass";

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::kParseError, "cubin: " + fmt::format(text, std::forward<Args>(args)...));
}

using CubinBytes = std::span<const std::byte>;

/// A part of the bytes, read from its beginning on. All reads are checked.
class ByteCursor {
 public:
  ByteCursor(CubinBytes bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  std::size_t at() const noexcept { return at_; }
  bool is_at_end() const noexcept { return at_ >= bytes_.size(); }
  void go_to(std::size_t offset) {
    if (offset > bytes_.size()) fail_short(offset);
    at_ = offset;
  }
  template <class T>
  T read() {
    if (sizeof(T) > bytes_.size() - at_) fail_short(at_ + sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t unsigned_leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t signed_leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if (byte >= 0x80) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  std::string_view text() {
    const char* const from = reinterpret_cast<const char*>(bytes_.data()) + at_;
    const std::string_view rest(from, bytes_.size() - at_);
    const std::size_t length = rest.find('\0');
    if (length == std::string_view::npos) fail_short(bytes_.size() + 1);
    at_ += length + 1;
    return rest.substr(0, length);
  }

 private:
  [[noreturn]] void fail_short(std::size_t needed) const {
    reject("{} ends after {} bytes, {} are needed", what_, bytes_.size(), needed);
  }

  CubinBytes bytes_;
  std::string_view what_;
  std::size_t at_ = 0;
};

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0, link = 0;
  CubinBytes bytes;  ///< nothing of a section that takes no place in the file
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t type = 0;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
};

struct LineRow {
  std::uint64_t address = 0;
  std::uint32_t line = 0;
};

class Elf {
 public:
  explicit Elf(CubinBytes bytes) : bytes_(bytes) {
    ByteCursor header(bytes, "the file");
    if (header.read<std::uint32_t>() != 0x464c457f) reject("it does not begin as an ELF file does");
    if (header.read<std::uint8_t>() != 2) reject("it is no 64-bit ELF file");
    header.go_to(0x12);
    constexpr std::uint16_t kCuda = 190;
    const auto machine = header.read<std::uint16_t>();
    if (machine != kCuda) reject("it is for machine {}; {} is a GPU", machine, kCuda);
    header.go_to(0x28);
    const auto table = header.read<std::uint64_t>();
    header.go_to(0x3a);
    const auto entry_bytes = header.read<std::uint16_t>(), count = header.read<std::uint16_t>(),
               names = header.read<std::uint16_t>();
    if (entry_bytes < 64) reject("entries of its section table have {} bytes, not 64", entry_bytes);
    read_sections(table, entry_bytes, count, names);
    read_symbols();
  }

  const ElfSection* find(std::string_view name) const {
    const auto found = std::ranges::find(sections_, name, &ElfSection::name);
    return found == sections_.end() ? nullptr : &*found;
  }
  std::uint16_t index_of(const ElfSection& section) const {
    return static_cast<std::uint16_t>(&section - sections_.data());
  }
  const std::vector<ElfSymbol>& symbols() const noexcept { return symbols_; }

 private:
  CubinBytes part(std::uint64_t offset, std::uint64_t size, std::string_view what) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      reject("{} is said to be {} bytes at {}, of a file of {}", what, size, offset, bytes_.size());
    }
    return bytes_.subspan(offset, size);
  }

  void read_sections(std::uint64_t table, std::uint16_t entry_bytes, std::uint16_t count,
                     std::uint16_t names) {
    const CubinBytes all = part(table, std::uint64_t{entry_bytes} * count, "its section table");
    std::vector<std::uint32_t> name_offsets;
    for (std::size_t i = 0; i < count; ++i) {
      ByteCursor from(all.subspan(i * entry_bytes, entry_bytes), "a section's entry");
      constexpr std::uint32_t kNoBits = 8;
      ElfSection& section = sections_.emplace_back();
      name_offsets.push_back(from.read<std::uint32_t>());
      section.type = from.read<std::uint32_t>();
      from.go_to(0x18);
      const auto offset = from.read<std::uint64_t>(), size = from.read<std::uint64_t>();
      section.link = from.read<std::uint32_t>();
      if (section.type != kNoBits && section.type != 0) {
        section.bytes = part(offset, size, "a section");
      }
    }
    if (names >= sections_.size()) reject("it has no section of names");
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      ByteCursor from(sections_[names].bytes, "the section of names");
      from.go_to(name_offsets[i]);
      sections_[i].name = from.text();
    }
  }

  void read_symbols() {
    constexpr std::uint32_t kSymbolTable = 2;
    const auto table = std::ranges::find(sections_, kSymbolTable, &ElfSection::type);
    if (table == sections_.end()) return;
    if (table->link >= sections_.size()) reject("its symbols have no names");
    ByteCursor from(table->bytes, "the symbol table");
    while (!from.is_at_end()) {
      ElfSymbol& symbol = symbols_.emplace_back();
      ByteCursor name(sections_[table->link].bytes, "the names of symbols");
      name.go_to(from.read<std::uint32_t>());
      symbol.name = name.text();
      symbol.type = from.read<std::uint8_t>() & 15;
      from.read<std::uint8_t>();
      symbol.section = from.read<std::uint16_t>();
      symbol.value = from.read<std::uint64_t>();
      from.read<std::uint64_t>();
    }
  }

  CubinBytes bytes_;
  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
};

/// The kernel whose address the line program sets at that place of the section: the address itself
/// is a relocation.
std::optional<std::string_view> relocated(const Elf& elf, std::uint64_t place) {
  const ElfSection* const section = elf.find(fmt::format(".rela{}", kLineSection));
  if (section == nullptr) return std::nullopt;
  ByteCursor from(section->bytes, "the relocations of lines");
  while (!from.is_at_end()) {
    const auto offset = from.read<std::uint64_t>(), info = from.read<std::uint64_t>();
    from.read<std::uint64_t>();
    if (offset != place) continue;
    if (info >> 32 >= elf.symbols().size()) reject("a relocation names symbol {}", info >> 32);
    return elf.symbols()[info >> 32].name;
  }
  return std::nullopt;
}

/// The state machine of DWARF 2, of which a unit's program makes rows: a line is that of all
/// addresses up to the next row.
class LineProgram {
 public:
  LineProgram(const Elf& elf, CubinBytes section, std::string_view kernel)
      : elf_(elf), from_(section, "the line table"), kernel_(kernel) {}

  /// Rows of the kernel in ascending order.
  std::vector<LineRow> run() {
    while (!from_.is_at_end()) run_unit();
    std::ranges::stable_sort(rows_, {}, &LineRow::address);
    return std::move(rows_);
  }

 private:
  void run_unit() {
    const auto unit_bytes = from_.read<std::uint32_t>();
    const std::size_t end = from_.at() + unit_bytes;
    const auto version = from_.read<std::uint16_t>();
    if (version != 2) reject("its line table has version {}; 2 is known", version);
    const auto header_bytes = from_.read<std::uint32_t>();
    const std::size_t program = from_.at() + header_bytes;
    step_ = from_.read<std::uint8_t>();
    from_.read<std::uint8_t>();
    line_base_ = from_.read<std::int8_t>();
    line_range_ = from_.read<std::uint8_t>();
    first_special_ = from_.read<std::uint8_t>();
    if (line_range_ == 0 || first_special_ == 0) reject("its line table has a range of 0");
    operands_.clear();
    for (int i = 1; i < first_special_; ++i) operands_.push_back(from_.read<std::uint8_t>());
    from_.go_to(program);
    restart();
    while (from_.at() < end) run_opcode(from_.read<std::uint8_t>());
    from_.go_to(end);
  }

  void restart() {
    row_ = {0, 1};
    is_wanted_ = false;
  }
  void add_row() {
    if (is_wanted_) rows_.push_back(row_);
  }
  void advance(std::uint64_t steps) { row_.address += steps * step_; }
  void add_lines(std::int64_t count) { row_.line = static_cast<std::uint32_t>(row_.line + count); }

  void run_opcode(std::uint8_t opcode) {
    if (opcode >= first_special_) {
      const int special = opcode - first_special_;
      advance(static_cast<std::uint64_t>(special / line_range_));
      add_lines(line_base_ + special % line_range_);
      return add_row();
    }
    switch (opcode) {
      case 0:
        return run_extended();
      case 1:
        return add_row();
      case 2:
        return advance(from_.unsigned_leb());
      case 3:
        return add_lines(from_.signed_leb());
      case 8:
        return advance(static_cast<std::uint64_t>((255 - first_special_) / line_range_));
      case 9:
        row_.address += from_.read<std::uint16_t>();
        return;
      default:
        for (int i = 0; i < operands_[opcode - 1U]; ++i) from_.unsigned_leb();
    }
  }

  void run_extended() {
    const std::uint64_t bytes = from_.unsigned_leb();
    const std::size_t begin = from_.at();
    if (bytes == 0) return;
    const auto opcode = from_.read<std::uint8_t>();
    if (opcode == 1) restart();
    if (opcode == 2) {
      is_wanted_ = relocated(elf_, from_.at()) == kernel_;
      row_.address = 0;
    }
    from_.go_to(begin + bytes);
  }

  const Elf& elf_;
  ByteCursor from_;
  std::string_view kernel_;
  std::vector<LineRow> rows_;
  LineRow row_;
  bool is_wanted_ = false;
  std::uint8_t step_ = 1, line_range_ = 1, first_special_ = 1;
  std::int8_t line_base_ = 0;
  std::vector<std::uint8_t> operands_;
};

std::uint8_t field(std::uint64_t word, unsigned first, unsigned count) {
  return static_cast<std::uint8_t>(word >> first & ((1U << count) - 1));
}

MachineInsn decode_insn(std::uint64_t low, std::uint64_t high) {
  MachineInsn insn;
  insn.opcode = static_cast<std::uint16_t>(low & 0x1ff);
  constexpr std::uint16_t kMembar = 0x192;
  constexpr std::uint8_t kGpu = 2;  // 0: of the CTA, 3: of the system
  insn.is_wide_fence = insn.opcode == kMembar && field(high, 12, 3) >= kGpu;
  insn.stall = field(high, 41, 4);
  insn.yields = field(high, 45, 1) == 0;
  insn.write_counter = field(high, 46, 3);
  insn.read_counter = field(high, 49, 3);
  insn.wait_mask = field(high, 52, 6);
  return insn;
}

/// Where functions begin that the kernel calls, behind it in its section.
std::uint64_t end_of_kernel(const Elf& elf, const ElfSection& text) {
  std::uint64_t end = text.bytes.size();
  for (const ElfSymbol& symbol : elf.symbols()) {
    constexpr std::uint8_t kFunction = 2;
    if (symbol.type == kFunction && symbol.section == elf.index_of(text) && symbol.value > 0) {
      end = std::min(end, symbol.value);
    }
  }
  return end;
}

}  // namespace

std::vector<MachineInsn> read_machine_code(CubinBytes cubin, std::string_view kernel) {
  const Elf elf(cubin);
  const ElfSection* const text = elf.find(fmt::format(".text.{}", kernel));
  if (text == nullptr) reject("it has no kernel {}", kernel);
  const ElfSection* const line_section = elf.find(kLineSection);
  if (line_section == nullptr) reject("it has no lines of PTX; compile with -lineinfo");
  const std::vector<LineRow> rows = LineProgram(elf, line_section->bytes, kernel).run();
  if (rows.empty()) reject("it has no lines of PTX for {}; compile with -lineinfo", kernel);
  std::vector<MachineInsn> insns;
  ByteCursor from(text->bytes, "the machine code");
  std::size_t row = 0;
  for (const std::uint64_t end = end_of_kernel(elf, *text); from.at() + kInsnBytes <= end;) {
    while (row + 1 < rows.size() && rows[row + 1].address <= from.at()) ++row;
    const std::uint32_t line = rows[row].address <= from.at() ? rows[row].line : 0;
    const auto low = from.read<std::uint64_t>(), high = from.read<std::uint64_t>();
    insns.push_back(decode_insn(low, high));
    insns.back().line = line;
  }
  return insns;
}

}  // namespace tilewright::sim
