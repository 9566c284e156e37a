#include "layout/operations.h"

#include "base/error.h"
#include "base/similar.h"
#include "layout/parse.h"
#include "layout/recast.h"
#include "layout/slice.h"

#include <algorithm>
#include <charconv>

namespace tilewright {

namespace {

using Operands = std::span<const std::string>;

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), ErrorKind::kParseError,
          "layout operation: expected a whole number, found \"{}\"", text);
  return value;
}

// A layout behind a swizzle or an offset, where an operation knows what to do with one.
ComposedLayout composed(const std::string& text) {
  return parse_composed_layout(text);
}
Layout plain(const std::string& text) {
  return parse_layout(text);
}

template <Layout (*Function)(const Layout&)>
OperationResult unary(Operands of) {
  return ComposedLayout(Function(plain(of[0])));
}
template <Layout (*Function)(const Layout&, const Tiler&)>
OperationResult by_tiler(Operands of) {
  return ComposedLayout(Function(plain(of[0]), parse_tiler(of[1])));
}
template <Layout (*Function)(const Layout&, const Layout&)>
OperationResult by_layout(Operands of) {
  return ComposedLayout(Function(plain(of[0]), plain(of[1])));
}
template <Layout (*Function)(const Layout&, std::int64_t)>
OperationResult by_number(Operands of) {
  return ComposedLayout(Function(plain(of[0]), number(of[1])));
}

OperationResult compose(Operands of) {
  return composition(composed(of[0]), parse_tiler(of[1]));
}
OperationResult coalesce_any(Operands of) {
  return coalesce(composed(of[0]));
}
OperationResult coalesce_by(Operands of) {
  return ComposedLayout(coalesce(plain(of[0]), parse_int_tuple(of[1])));
}
OperationResult flatten_any(Operands of) {
  const ComposedLayout a = composed(of[0]);
  return ComposedLayout(a.swizzle, a.offset, flatten(a.layout));
}
OperationResult select_modes(Operands of) {
  const Layout a = plain(of[0]);
  const IntTuple modes = parse_int_tuple(of[1]);
  Layout out;
  for (int i = 0; i < modes.profile.num_leaves; ++i)
    push_mode(out, mode(a, static_cast<int>(modes.value[i])));
  return ComposedLayout(is_leaf(modes) ? unwrap(out) : out);
}
OperationResult group_modes(Operands of) {
  return ComposedLayout(
      group(plain(of[0]), static_cast<int>(number(of[1])), static_cast<int>(number(of[2]))));
}
OperationResult append_mode(Operands of) {
  return ComposedLayout(append(plain(of[0]), plain(of[1])));
}
OperationResult prepend_mode(Operands of) {
  return ComposedLayout(prepend(plain(of[0]), plain(of[1])));
}
OperationResult slice_at(Operands of) {
  return slice(parse_int_tuple(of[1]), composed(of[0]));
}
OperationResult local_tile_at(Operands of) {
  return local_tile(composed(of[0]), parse_tiler(of[1]), parse_int_tuple(of[2]));
}
OperationResult local_partition_of(Operands of) {
  return local_partition(composed(of[0]), plain(of[1]), number(of[2]));
}
OperationResult tile_to(Operands of) {
  return ComposedLayout(
      tile_to_shape(plain(of[0]), parse_int_tuple(of[1]), parse_int_tuple(of[2])));
}
OperationResult recast_bits(Operands of) {
  const std::int64_t old_bits = number(of[1]), new_bits = number(of[2]);
  require(old_bits > 0 && new_bits > 0, ErrorKind::kInvalidArgument,
          "recast: element widths {} and {} bits; both must be positive", old_bits, new_bits);
  return recast(composed(of[0]), old_bits, new_bits);
}
OperationResult identity(Operands of) {
  return ComposedLayout(make_identity_layout(parse_int_tuple(of[0])));
}
OperationResult ordered(Operands of) {
  return ComposedLayout(make_ordered_layout(parse_int_tuple(of[0]), parse_int_tuple(of[1])));
}
OperationResult with_other_shape(Operands of) {
  return ComposedLayout(with_shape(plain(of[0]), parse_int_tuple(of[1])));
}
OperationResult common_vector(Operands of) {
  return max_common_vector(plain(of[0]), plain(of[1]));
}
OperationResult offset_at(Operands of) {
  const ComposedLayout a = composed(of[0]);
  const IntTuple at = coordinate(a, parse_int_tuple(of[1]));
  require(is_leaf(at), ErrorKind::kInvalidArgument,
          "offset: {} is a coordinate layout and has no offsets; use slice", of[0]);
  return at.value[0];
}

constexpr LayoutOperation kOperations[] = {
    {"eval", "A", "the layout itself",
     [](Operands of) -> OperationResult { return composed(of[0]); }},
    {"offset", "A CRD", "offset of a coordinate", offset_at},
    {"slice", "A CRD", "the free modes `_` at a coordinate, and where they begin", slice_at},
    {"select", "A MODES", "the named modes", select_modes},
    {"group", "A BEGIN END", "modes BEGIN to END-1 as one mode", group_modes},
    {"flatten", "A", "all leaves in one flat tuple", flatten_any},
    {"append", "A B", "one more mode at the end", append_mode},
    {"prepend", "A B", "one more mode at the front", prepend_mode},
    {"coalesce", "A", "the simplest layout with the same offsets", coalesce_any},
    {"coalesce_by", "A PROFILE", "coalesced mode by mode", coalesce_by},
    {"filter", "A", "without what visits no new offset", unary<filter>},
    {"composition", "A TILER", "A after the tiler: R(i) = A(TILER(i)), by mode for <..>", compose},
    {"with_shape", "A SHAPE", "A under another shape of the same size", with_other_shape},
    {"complement", "A BOUND", "the offsets below BOUND that A leaves out", by_number<complement>},
    {"left_inverse", "A", "R(A(i)) = i", unary<left_inverse>},
    {"right_inverse", "A", "A(R(i)) = i", unary<right_inverse>},
    {"logical_divide", "A TILER", "((tile, rest) per mode)", by_tiler<logical_divide>},
    {"zipped_divide", "A TILER", "((tiles), (rests))", by_tiler<zipped_divide>},
    {"tiled_divide", "A TILER", "((tiles), rest, rest, ...)", by_tiler<tiled_divide>},
    {"flat_divide", "A TILER", "(tile, tile, ..., rest, rest, ...)", by_tiler<flat_divide>},
    {"logical_product", "A TILER", "A repeated as the tiler says: (A, repetition)",
     by_tiler<logical_product>},
    {"zipped_product", "A TILER", "((blocks), (repetitions))", by_tiler<zipped_product>},
    {"tiled_product", "A TILER", "((blocks), repetition, repetition, ...)",
     by_tiler<tiled_product>},
    {"flat_product", "A TILER", "(block, ..., repetition, ...)", by_tiler<flat_product>},
    {"blocked_product", "A B", "blocks of A side by side", by_layout<blocked_product>},
    {"raked_product", "A B", "blocks of A interleaved", by_layout<raked_product>},
    {"tile_to_shape", "A SHAPE ORDER", "copies of A over a shape, mode of order 0 first", tile_to},
    {"local_tile", "A TILER CRD", "tile number CRD of A", local_tile_at},
    {"local_partition", "A THREADS INDEX", "what one thread holds of A", local_partition_of},
    {"upcast", "A N", "offsets in units of N elements", by_number<upcast>},
    {"downcast", "A N", "offsets in units of an N-th of an element", by_number<downcast>},
    {"recast", "A OLD_BITS NEW_BITS", "the same bytes as other elements", recast_bits},
    {"ordered", "SHAPE ORDER", "compact layout, modes contiguous in the given order", ordered},
    {"identity", "SHAPE", "the layout of coordinates", identity},
    {"max_common_vector", "A B", "elements contiguous in both", common_vector},
};

}  // namespace

int LayoutOperation::num_operands() const {
  return 1 + static_cast<int>(std::ranges::count(std::string_view(operands), ' '));
}

std::span<const LayoutOperation> layout_operations() {
  return kOperations;
}

const LayoutOperation* find_layout_operation(std::string_view name) {
  const auto* found = std::ranges::find(kOperations, name, &LayoutOperation::name);
  return found == std::end(kOperations) ? nullptr : found;
}

OperationResult run_layout_operation(std::string_view name, Operands operands) {
  const LayoutOperation* operation = find_layout_operation(name);
  if (operation == nullptr) {
    std::vector<std::string_view> names;
    for (const LayoutOperation& known : kOperations) names.emplace_back(known.name);
    fail(ErrorKind::kInvalidArgument, "layout operation \"{}\" does not exist ({})", name,
         similar_names(name, names));
  }
  require(static_cast<int>(operands.size()) == operation->num_operands(),
          ErrorKind::kInvalidArgument, "{}: {} operands given, expected {}: {} {}", name,
          operands.size(), operation->num_operands(), name, operation->operands);
  return operation->run(operands);
}

}  // namespace tilewright
