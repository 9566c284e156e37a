#include "layout/cases.h"

#include "base/error.h"
#include "layout/operations.h"
#include "layout/parse.h"
#include "layout/print.h"
#include "layout/unchecked.h"

#include <vector>

#include <fmt/format.h>

namespace tilewright {

namespace {

using nlohmann::json;

constexpr std::int64_t kMaxValues = std::int64_t{1} << 24;  // bounds the work of a hostile case

IntTuple tuple_from_json(const json& node, int level = 0) {
  require(level <= 16, ErrorKind::kParseError, "layout case: tuples nest deeper than 16 levels");
  if (node.is_number_integer()) return IntTuple(node.get<std::int64_t>());
  require(node.is_array(), ErrorKind::kParseError,
          "layout case: expected a whole number or an array of them, found {}", node.dump());
  IntTuple out;
  for (const json& child : node) push_mode(out, tuple_from_json(child, level + 1));
  return out;
}

json tuple_to_json(const IntTuple& tuple) {
  if (is_leaf(tuple)) return tuple.value[0];
  json out = json::array();
  for (int i = 0; i < rank(tuple); ++i) out.push_back(tuple_to_json(mode(tuple, i)));
  return out;
}

const json& field(const json& test_case, const char* name) {
  const auto found = test_case.find(name);
  require(found != test_case.end(), ErrorKind::kParseError, "layout case: field \"{}\" is missing",
          name);
  return *found;
}

// The operands of a case as text: a, then b (a layout or the text of a tiler) or max_idx.
std::vector<std::string> operands_of(const json& test_case) {
  std::vector<std::string> operands = {to_string(layout_from_json(field(test_case, "a")))};
  if (const auto b = test_case.find("b"); b != test_case.end()) {
    operands.push_back(b->is_string() ? b->get<std::string>() : to_string(layout_from_json(*b)));
  }
  if (const auto bound = test_case.find("max_idx"); bound != test_case.end())
    operands.push_back(bound->dump());
  return operands;
}

Layout run_operation(const std::string& op, const json& test_case) {
  const OperationResult result = run_layout_operation(op, operands_of(test_case));
  const auto* layout = std::get_if<ComposedLayout>(&result);
  require(layout != nullptr, ErrorKind::kParseError, "layout case: {} gives a number, not a layout",
          op);
  return layout->layout;
}

std::string compare_number(const json& test_case, const char* name, std::int64_t found) {
  const auto wanted = test_case.find(name);
  if (wanted == test_case.end() || *wanted == found) return {};
  return fmt::format("{} is {}, expected {}", name, found, wanted->dump());
}

std::string compare_values(const Layout& result, const json& values) {
  if (static_cast<std::int64_t>(values.size()) != size(result)) {
    return fmt::format("{} has size {}, expected {}", to_string(result), size(result),
                       values.size());
  }
  for (std::int64_t i = 0; i < size(result); ++i) {
    if (values[static_cast<std::size_t>(i)] != result(i)) {
      return fmt::format("{} maps {} to {}, expected {}", to_string(result), i, result(i),
                         values[static_cast<std::size_t>(i)].dump());
    }
  }
  return {};
}

std::string compare(const json& test_case, const Layout& result) {
  require(size(result) <= kMaxValues, ErrorKind::kParseError,
          "layout case: the result has {} offsets; at most {} are compared", size(result),
          kMaxValues);
  if (std::string text = compare_number(test_case, "size", size(result)); !text.empty())
    return text;
  if (std::string text = compare_number(test_case, "cosize", cosize(result)); !text.empty())
    return text;
  return compare_values(result, field(test_case, "values"));
}

// The same operation by CuTe's unchecked arithmetic. The zipped, tiled and flat forms of a division
// or product by one layout only regroup the logical form, which leaves the order of its offsets
// alone.
Layout unchecked_result(const std::string& op, const json& test_case) {
  const Layout a = layout_from_json(field(test_case, "a"));
  if (op == "complement") {
    return unchecked_complement(a, field(test_case, "max_idx").get<std::int64_t>());
  }
  const Layout b = layout_from_json(field(test_case, "b"));
  if (op == "composition") return unchecked_composition(a, b);
  return op.ends_with("_divide") ? unchecked_logical_divide(a, b) : unchecked_logical_product(a, b);
}

void run_case(const json& test_case, CaseResult& out) {
  out.op = field(test_case, "op").get<std::string>();
  require(find_layout_operation(out.op) != nullptr, ErrorKind::kParseError,
          "layout case: unknown operation \"{}\"", out.op);
  if (test_case.value("error", false)) {
    out.difference = "was accepted, expected an error";
    run_operation(out.op, test_case);
    return;
  }
  Layout result;
  try {
    result = run_operation(out.op, test_case);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInvalidArgument || !test_case.contains("values")) throw;
    out.is_outside_laws = true;
    result = unchecked_result(out.op, test_case);
  }
  out.difference = compare(test_case, result);
}

}  // namespace

Layout layout_from_json(const json& node) {
  if (node.is_string()) return parse_layout(node.get<std::string>());
  if (node.is_number_integer()) return make_layout(tuple_from_json(node));
  const IntTuple shape = tuple_from_json(field(node, "shape"));
  const auto stride = node.find("stride");
  return stride == node.end() ? make_layout(shape) : make_layout(shape, tuple_from_json(*stride));
}

json to_json(const Layout& layout) {
  json out = {{"text", to_string(layout)}, {"shape", tuple_to_json(shape(layout))}};
  if (!layout.is_coordinate()) out["stride"] = tuple_to_json(stride(layout));
  return out;
}

CaseResult run_layout_case(const json& test_case) {
  CaseResult out;
  try {
    require(test_case.is_object(), ErrorKind::kParseError,
            "layout case: expected an object, found {}", test_case.dump().substr(0, 40));
    run_case(test_case, out);
  } catch (const Error& error) {
    const bool refused = error.kind() == ErrorKind::kInvalidArgument;
    const bool wanted = test_case.is_object() && test_case.value("error", false);
    out.difference = refused && wanted ? "" : error.what();
  } catch (const json::exception& error) {
    out.difference = error.what();
  }
  return out;
}

}  // namespace tilewright
