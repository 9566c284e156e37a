// Layout cases in JSON: an operation, its operands, and the offsets that must come out.
//
//   {"op": "composition", "a": {"shape": [4,8], "stride": [8,1]}, "b": {"shape": 4, "stride": 2},
//    "result": {"shape": 4, "stride": 16}, "values": [0, 16, 32, 48]}
//
// `values` are the offsets of the result over its linear index, its form may differ from `result`.
// `op` is any operation of operations.h on a layout and at most one more operand: `b` (a layout, or
// a tiler as text) or `max_idx` (a number). `size` and `cosize` are compared where given. A case
// with "error": true must be refused.
#pragma once

#include "layout/layout.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tilewright {

/// Outcome of one case; `difference` is empty if it passed.
struct CaseResult {
  std::string op;
  std::string difference;
  /// The operands break a law of the operation, which the library therefore refuses; the expected
  /// offsets are those of CuTe's unchecked arithmetic, and were compared with that.
  bool is_outside_laws = false;
  bool passed() const { return difference.empty(); }
};

/// A layout from {"shape": ..., "stride": ...}, from text, or from a number. Throws ParseError.
Layout layout_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Layout& layout);

/// Runs one case. A malformed case counts as failed, with the reason.
CaseResult run_layout_case(const nlohmann::json& test_case);

}  // namespace tilewright
