// Functions that device code calls and the machine provides: printf, assert, malloc, free.
#include "tilewright/error.h"

#include "sim/exec/control.h"
#include "sim/exec/turn_order.h"
#include "sim/state/code.h"
#include "sim/state/global_memory.h"
#include "sim/state/warp.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

template <class T>
T read_local(const Warp& warp, int lane, std::uint64_t offset) {
  T value{};
  std::memcpy(&value, warp.local + static_cast<std::size_t>(lane) * warp.local_bytes + offset,
              sizeof(T));
  return value;
}

/// Host bytes behind a generic address, nullptr if there are not so many.
const std::byte* readable(const Warp& warp, int lane, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t offset = address & ~kWindowMask;
  switch (address & kWindowMask) {
    case kLocalWindow:
      if (offset + bytes > warp.local_bytes) return nullptr;
      return warp.local + static_cast<std::size_t>(lane) * warp.local_bytes + offset;
    case kSharedWindow: {
      const std::uint64_t in_cta = offset & ((1U << kSharedRankShift) - 1);
      return in_cta + bytes > warp.shared_bytes ? nullptr : warp.shared + in_cta;
    }
    default:
      break;
  }
  const bool is_global = address >= warp.grid->arena_begin && bytes <= warp.grid->arena_end &&
                         address <= warp.grid->arena_end - bytes;
  return is_global ? reinterpret_cast<const std::byte*>(address) : nullptr;
}

std::string read_text(const Warp& warp, int lane, std::uint64_t address) {
  constexpr std::size_t kLongest = 4096;
  std::string text;
  while (text.size() < kLongest) {
    const std::byte* next = readable(warp, lane, address + text.size(), 1);
    if (next == nullptr || *next == std::byte{0}) break;
    text.push_back(static_cast<char>(*next));
  }
  return text;
}

/// The arguments of printf as nvcc packs them: each at a multiple of its size.
class PackedArguments {
 public:
  PackedArguments(const Warp& warp, int lane, std::uint64_t address)
      : warp_(warp), lane_(lane), address_(address) {}
  template <class T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    const std::byte* bytes = readable(warp_, lane_, address_ + at_, sizeof(T));
    if (bytes != nullptr) std::memcpy(&value, bytes, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  const Warp& warp_;
  int lane_;
  std::uint64_t address_;
  std::uint64_t at_ = 0;
};

template <class T>
std::string print_one(const std::string& spec, T value) {
  char buffer[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
#pragma GCC diagnostic pop
  return length < 0 ? ""
                    : std::string(buffer, std::min<std::size_t>(static_cast<std::size_t>(length),
                                                                sizeof buffer - 1));
}

/// One conversion, from % to its letter; length modifiers are ours to choose.
std::string print_conversion(const Warp& warp, int lane, const std::string& flags, int num_longs,
                             char letter, PackedArguments& arguments) {
  switch (letter) {
    case 'd':
    case 'i': {
      const long long value =
          num_longs > 0 ? arguments.next<std::int64_t>() : arguments.next<std::int32_t>();
      return print_one(flags + "ll" + letter, value);
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      const unsigned long long value =
          num_longs > 0 ? arguments.next<std::uint64_t>() : arguments.next<std::uint32_t>();
      return print_one(flags + "ll" + letter, value);
    }
    case 'c':
      return print_one(flags + letter, arguments.next<std::int32_t>());
    case 'p':
      return print_one(flags + letter, reinterpret_cast<void*>(arguments.next<std::uint64_t>()));
    case 's': {
      const std::string text = read_text(warp, lane, arguments.next<std::uint64_t>());
      return print_one(flags + letter, text.c_str());
    }
    default:
      return print_one(flags + letter, arguments.next<double>());
  }
}

std::string format_printf(const Warp& warp, int lane, const std::string& format,
                          std::uint64_t address) {
  PackedArguments arguments(warp, lane, address);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    if (format[i + 1] == '%') {
      out.push_back(format[++i]);
      continue;
    }
    std::string flags = "%";
    int num_longs = 0;
    for (++i; i < format.size() && std::strchr("-+ #0123456789.*lhzjtL", format[i]) != nullptr;
         ++i) {
      if (format[i] == '*') {
        flags += std::to_string(arguments.next<std::int32_t>());
      } else if (std::strchr("lzjt", format[i]) != nullptr) {
        ++num_longs;
      } else if (std::strchr("hL", format[i]) == nullptr && flags.size() < 32) {
        flags.push_back(format[i]);
      }
    }
    if (i == format.size()) break;
    if (std::strchr("diuxXocspfFeEgGaA", format[i]) == nullptr) {
      out += flags + format[i];
      continue;
    }
    out += print_conversion(warp, lane, flags, num_longs, format[i], arguments);
  }
  return out;
}

const BuiltinCall& call_of(const Insn& insn) {
  return *static_cast<const BuiltinCall*>(insn.extra);
}

template <class T>
void write_result(const Warp& warp, int lane, const Insn& insn, T value) {
  std::memcpy(warp.local + static_cast<std::size_t>(lane) * warp.local_bytes + call_of(insn).result,
              &value, sizeof value);
}

}  // namespace

Step call_vprintf(Warp& warp, const Insn& insn, std::uint32_t active) {
  await_turn(*warp.cta->cluster);
  const BuiltinCall& call = call_of(insn);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    const std::string format =
        read_text(warp, lane, read_local<std::uint64_t>(warp, lane, call.arguments[0]));
    const std::string text =
        format_printf(warp, lane, format, read_local<std::uint64_t>(warp, lane, call.arguments[1]));
    if (warp.grid->print) warp.grid->print(text);
    write_result(warp, lane, insn, static_cast<std::int32_t>(text.size()));
  }
  return Step::kNext;
}

// __assertfail(message, file, line, function, size of a character)
Step call_assertfail(Warp& warp, const Insn& insn, std::uint32_t active) {
  const BuiltinCall& call = call_of(insn);
  const int lane = std::countr_zero(active);
  const auto text = [&](std::size_t i) {
    return read_text(warp, lane, read_local<std::uint64_t>(warp, lane, call.arguments[i]));
  };
  fault(FaultKind::kAssert, active,
        fmt::format("{}:{}: {}: assertion `{}' failed", text(1),
                    read_local<std::uint32_t>(warp, lane, call.arguments[2]), text(3), text(0)));
}

namespace {

constexpr const char* kKernelHeap = "malloc of a kernel";

/// The host's allocations are not the kernel's to free.
void require_of_kernel(const Warp& warp, std::uint64_t address, int lane) {
  const auto holder = warp.grid->memory->find(address);
  const bool is_start = holder && holder->address == address;
  if (is_start && !holder->is_freed && holder->origin == kKernelHeap) return;
  const std::string is =
      !holder ? "no allocation is there"
              : fmt::format("{} the {} bytes made by {}{}",
                            is_start ? "it is the start of" : "it is inside", holder->size_bytes,
                            holder->origin, holder->is_freed ? ", which were freed" : "");
  fault(FaultKind::kIllegalAddress, 1U << lane,
        fmt::format("free of {:#x} by lane {}: {}; free takes what malloc gave to a kernel",
                    address, lane, is));
}

}  // namespace

Step call_malloc(Warp& warp, const Insn& insn, std::uint32_t active) {
  await_turn(*warp.cta->cluster);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    const auto bytes = read_local<std::uint64_t>(warp, lane, call_of(insn).arguments[0]);
    std::uint64_t address = 0;
    try {
      if (bytes != 0) address = warp.grid->memory->allocate(bytes, kKernelHeap);
    } catch (const Error&) {
      address = 0;  // as malloc says it
    }
    write_result(warp, lane, insn, address);
  }
  return Step::kNext;
}

Step call_free(Warp& warp, const Insn& insn, std::uint32_t active) {
  await_turn(*warp.cta->cluster);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    const auto address = read_local<std::uint64_t>(warp, lane, call_of(insn).arguments[0]);
    if (address == 0) continue;
    require_of_kernel(warp, address, lane);
    try {
      warp.grid->memory->free(address);
    } catch (const Error& error) {  // another CTA was faster
      fault(FaultKind::kIllegalAddress, 1U << lane, fmt::format("free: {}", error.what()));
    }
  }
  return Step::kNext;
}

}  // namespace tilewright::sim
