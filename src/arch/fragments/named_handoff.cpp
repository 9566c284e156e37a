#include "arch/fragments/named_handoff.h"

#include "base/error.h"
#include "layout/draw_svg.h"
#include "layout/register_handoff.h"
#include "layout/tmem_handoff.h"

#include <nlohmann/json.hpp>

namespace tilewright::arch {

namespace {

using nlohmann::json;

json register_handoff(const NamedAtom& from, const NamedAtom& to) {
  const std::int64_t m = from.tile.value[0], n = from.tile.value[1], k = to.tile.value[1];
  require(to.tile.value[0] == m, ErrorKind::kInvalidArgument,
          "handoff: {} has {} rows, {} has {}; they must agree", from.name, m, to.name,
          to.tile.value[0]);
  const RegisterHandoff handoff =
      analyze_register_handoff(from.layout.layout, to.layout.layout, m, n, k);
  return {{"from", from.name},
          {"to", to.name},
          {"verdict", to_string(handoff.verdict)},
          {"source_value", handoff.source_value},
          {"key_of_slot", handoff.key_of_slot},
          {"key_period", handoff.key_period},
          {"values_to_move", handoff.moves.size()},
          {"exchange_group", handoff.exchange_group},
          {"explanation", handoff.explain()}};
}

json tmem_handoff(const NamedAtom& from, const NamedAtom& to) {
  constexpr std::size_t kMostExamples = 64;
  const TmemHandoff handoff =
      analyze_tmem_handoff(from.layout.layout, to.layout.layout, to.element_bits);
  json examples = json::array();
  for (const TmemMismatch& at : handoff.examples) {
    examples.push_back({{"row", at.row},
                        {"column", at.column},
                        {"lane", at.lane},
                        {"cell", at.cell},
                        {"read_row", at.read_row},
                        {"read_k", at.read_k}});
    if (examples.size() == kMostExamples) break;
  }
  return {{"from", from.name},
          {"to", to.name},
          {"verdict", to_string(handoff.verdict)},
          {"elements", handoff.elements},
          {"misplaced", handoff.misplaced},
          {"columns_written", handoff.columns_written},
          {"columns_read", handoff.columns_read},
          {"examples", examples},
          {"explanation", handoff.explain()}};
}

}  // namespace

json describe_handoff(const NamedAtom& from, const NamedAtom& to) {
  const auto both = [&](AtomKind kind) { return from.kind == kind && to.kind == kind; };
  if (both(AtomKind::kThreadValue)) return register_handoff(from, to);
  require(both(AtomKind::kTensorMemory), ErrorKind::kInvalidArgument,
          "handoff: {} is {}, {} is {}; expected two fragments (mma.*, wgmma.*) or two layouts of "
          "Tensor Memory "
          "(tmem.C.*, tmem.A.*)",
          from.name, to_string(from.kind), to.name, to_string(to.kind));
  return tmem_handoff(from, to);
}

std::string draw_tmem_handoff(const NamedAtom& from, const NamedAtom& to) {
  const Window window = {0, 8, 0, 16};
  Drawing written = draw_tmem(from.layout.layout, {from.element_bits, 128, "m", "n", true}, window);
  Drawing read = draw_tmem(to.layout.layout, {to.element_bits, 128, "m", "k", true}, window);
  written.name = "as written: " + from.name;
  written.caption = "Row m, column n of the accumulator. A colour is a column.";
  read.name = "as read: " + to.name;
  read.caption =
      "Row m, elements k of the operand, in the same lanes and columns. Where the colours differ, "
      "the MMA multiplies something else than what was meant.";
  return to_svg({written, read}, from.name + " handed to " + to.name);
}

}  // namespace tilewright::arch
