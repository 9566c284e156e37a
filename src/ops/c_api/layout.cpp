#include "tilewright/tilewright.h"

#include "arch/fragments/named_handoff.h"
#include "arch/fragments/named_layout.h"
#include "base/error.h"
#include "layout/draw_svg.h"
#include "layout/operations.h"
#include "layout/print.h"
#include "ops/c_api/convert/versions.h"
#include "ops/c_api/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

namespace arch = tilewright::arch;

using nlohmann::json;
using tilewright::ErrorKind;
using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

namespace {

/// Text that stays valid until the thread's next call.
const char* keep(std::string text) {
  static thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

json describe(const tilewright::OperationResult& result) {
  if (const auto* const number = std::get_if<std::int64_t>(&result)) return {{"value", *number}};
  return arch::describe_layout(std::get<tilewright::ComposedLayout>(result), 0);
}

tilewright::Window window_of(const std::int32_t* window) {
  if (window == nullptr) return {};
  return {window[0], window[1], window[2], window[3]};
}

}  // namespace

tw_status tw_layout_evaluate(const char* operation, const char* const* operands,
                             std::size_t num_operands, const char** text) {
  return guarded([&] {
    require_address(operation, "tw_layout_evaluate", "operation");
    require_address(operands, "tw_layout_evaluate", "operands");
    require_address(text, "tw_layout_evaluate", "json");
    std::vector<std::string> words;
    for (std::size_t i = 0; i < num_operands; ++i) {
      require_address(operands[i], "tw_layout_evaluate", "an operand");
      words.emplace_back(operands[i]);
    }
    // Of a single layout the name may be misspelt, and the message has similar ones.
    const bool is_itself = std::string_view(operation) == "eval" && words.size() == 1;
    const auto result =
        is_itself ? tilewright::OperationResult(arch::read_layout(words.front()).layout)
                  : tilewright::run_layout_operation(operation, arch::resolve_names(words));
    *text = keep(describe(result).dump());
  });
}

tw_status tw_layout_values(const char* layout, std::int64_t begin, std::size_t count,
                           std::int64_t* values) {
  return guarded([&] {
    require_address(layout, "tw_layout_values", "layout");
    if (count == 0) return;
    require_address(values, "tw_layout_values", "values");
    const tilewright::ComposedLayout read = arch::read_layout(layout).layout;
    tilewright::require(!read.layout.is_coordinate(), ErrorKind::kInvalidArgument,
                        "tw_layout_values: {} is a coordinate layout and has no offsets", layout);
    const std::int64_t size = tilewright::size(read);
    tilewright::require(
        begin >= 0 && begin <= size && count <= static_cast<std::uint64_t>(size - begin),
        ErrorKind::kInvalidArgument,
        "tw_layout_values: begin = {}, count = {}; the size of {} is {}", begin, count, layout,
        size);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = read(begin + static_cast<std::int64_t>(i));
    }
  });
}

tw_status tw_layout_draw(const char* layout, const char* drawn_as, const std::int64_t* tile,
                         std::int32_t element_bits, const std::int32_t* window, const char** svg) {
  return guarded([&] {
    require_address(layout, "tw_layout_draw", "layout");
    require_address(svg, "tw_layout_draw", "svg");
    arch::DrawnAs as;
    if (drawn_as != nullptr) as.kind = drawn_as;
    if (tile != nullptr) {
      as.tile_rows = tile[0];
      as.tile_columns = tile[1];
    }
    const bool is_width = element_bits == 0 || element_bits == 4 || element_bits == 8 ||
                          element_bits == 16 || element_bits == 32;
    tilewright::require(is_width, ErrorKind::kInvalidArgument,
                        "tw_layout_draw: element_bits = {}; expected 4, 8, 16 or 32, or 0 for the "
                        "default",
                        element_bits);
    as.element_bits = element_bits;
    as.window = window_of(window);
    *svg = keep(tilewright::to_svg(arch::draw_layout(arch::read_layout(layout), as)));
  });
}

tw_status tw_layout_atoms(const char** text) {
  return guarded([&] {
    require_address(text, "tw_layout_atoms", "json");
    json list = json::array();
    for (const arch::NamedAtom& atom : arch::named_atoms()) {
      list.push_back(arch::describe_atom(atom));
    }
    *text = keep(list.dump());
  });
}

tw_status tw_layout_handoff(const char* from, const char* to, const char** text) {
  return guarded([&] {
    require_address(from, "tw_layout_handoff", "from");
    require_address(to, "tw_layout_handoff", "to");
    require_address(text, "tw_layout_handoff", "json");
    *text = keep(arch::describe_handoff(arch::read_atom(from), arch::read_atom(to)).dump());
  });
}

tw_status tw_layout_draw_handoff(const char* from, const char* to, const char** svg) {
  return guarded([&] {
    require_address(from, "tw_layout_draw_handoff", "from");
    require_address(to, "tw_layout_draw_handoff", "to");
    require_address(svg, "tw_layout_draw_handoff", "svg");
    const arch::NamedAtom &written = arch::read_atom(from), &read = arch::read_atom(to);
    for (const arch::NamedAtom* const atom : {&written, &read}) {
      tilewright::require(atom->kind == arch::AtomKind::kTensorMemory, ErrorKind::kInvalidArgument,
                          "tw_layout_draw_handoff: {} is {}; expected layouts of Tensor Memory "
                          "(tmem.C.*, tmem.A.*)",
                          atom->name, arch::to_string(atom->kind));
    }
    *svg = keep(arch::draw_tmem_handoff(written, read));
  });
}
