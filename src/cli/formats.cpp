// tilewright formats: number formats as tables, values rounded into them.

#include "base/error.h"
#include "cli/tool/command.h"
#include "formats/block_format.h"
#include "formats/minifloat.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// A number as JSON can hold it: NaN and infinities as text.
json number_json(double x) {
  return std::isfinite(x) ? json(x) : json(fmt::format("{}", x));
}

std::string bits_text(const FormatSpec& format, uint32_t code) {
  std::string out;
  const auto field = [&](int high, int low) {
    if (high < low) return;
    if (!out.empty()) out += ' ';
    for (int bit = high; bit >= low; --bit) out += (code >> bit & 1) != 0 ? '1' : '0';
  };
  const int m = format.mantissa_bits, e = format.exponent_bits;
  if (format.is_signed) field(m + e, m + e);
  field(m + e - 1, m);
  field(m - 1, 0);
  return out;
}

const char* specials_text(const FormatSpec& format) {
  switch (format.specials) {
    case Specials::kIeee:
      return "inf, NaN";
    case Specials::kNanOnly:
      return "NaN";
    case Specials::kNone:
      return "none";
  }
  return "?";
}

json format_to_json(const FormatSpec& format) {
  return {{"name", format.name},
          {"bits", format.bits()},
          {"sign_bits", format.is_signed ? 1 : 0},
          {"exponent_bits", format.exponent_bits},
          {"mantissa_bits", format.mantissa_bits},
          {"bias", format.bias},
          {"max", max_finite(format)},
          {"min_normal", min_normal(format)},
          {"min_subnormal", min_subnormal(format)},
          {"has_infinity", format.has_infinity()},
          {"has_nan", format.has_nan()}};
}

const char* rule_text(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::kAmax:
      return "amax / max";
    case ScaleRule::kCeilPow2:
      return "2^ceil(log2(amax / max))";
    case ScaleRule::kFloorPow2:
      return "2^(floor(log2 amax) - floor(log2 max))";
  }
  return "?";
}

double bits_per_value(const BlockFormat& format) {
  const double block = static_cast<double>(format.block_rows) * format.block_cols;
  return format.element.bits() + 8 * scale_bytes(format) / block;
}

json format_to_json(const BlockFormat& format) {
  return {{"name", format.name},
          {"element", format.element.name},
          {"scale", format.scale.name},
          {"scale_rule", rule_text(format.rule)},
          {"block_rows", format.block_rows},
          {"block_cols", format.block_cols},
          {"has_tensor_scale", format.has_tensor_scale},
          {"bits_per_value", bits_per_value(format)}};
}

// ---- show
// -------------------------------------------------------------------------------------------------

void show_all(const Context& context) {
  if (context.json) {
    json formats = json::array(), blocks = json::array();
    for (const FormatSpec& format : kFormats) formats.push_back(format_to_json(format));
    for (const BlockFormat& format : kBlockFormats) blocks.push_back(format_to_json(format));
    print_json({{"formats", formats}, {"block_formats", blocks}});
    return;
  }
  Table table({"format", "bits", "sign", "exponent", "mantissa", "bias", "max", "min normal",
               "min subnormal", "specials"});
  for (const FormatSpec& format : kFormats) {
    table.add({format.name, std::to_string(format.bits()), format.is_signed ? "1" : "0",
               std::to_string(format.exponent_bits), std::to_string(format.mantissa_bits),
               std::to_string(format.bias), fmt::format("{:.6g}", max_finite(format)),
               fmt::format("{:.6g}", min_normal(format)),
               format.has_subnormals() ? fmt::format("{:.6g}", min_subnormal(format)) : "-",
               specials_text(format)});
  }
  Table blocks({"block format", "element", "scale", "block", "bits a value", "scale of a block",
                "tensor scale"});
  for (const BlockFormat& format : kBlockFormats) {
    blocks.add({format.name, format.element.name, format.scale.name,
                fmt::format("{} x {}", format.block_rows, format.block_cols),
                fmt::format("{:.4g}", bits_per_value(format)), rule_text(format.rule),
                format.has_tensor_scale ? "fp32" : "-"});
  }
  print(table.text(context.style()) + "\n" + blocks.text(context.style()));
}

void show_one(const std::string& name, const Context& context) {
  if (const BlockFormat* block = find_block_format(name)) {
    const json facts = format_to_json(*block);
    if (context.json) return print_json(facts);
    std::string out = context.style().bold(block->name) + "\n";
    for (const auto& [key, value] : facts.items()) {
      if (key != "name")
        out += fmt::format("  {:18}{}\n", key,
                           value.is_string() ? value.get<std::string>() : value.dump());
    }
    return print(out);
  }
  const FormatSpec& format = format_by_name(name);
  if (context.json) return print_json(format_to_json(format));
  const Style style = context.style();
  const auto line = [&](const char* what, double value, uint32_t code) {
    return fmt::format("  {:18}{:<24.9g}{:>10}  {}\n", what, value,
                       fmt::format("0x{:0{}x}", code, (format.bits() + 3) / 4),
                       bits_text(format, code));
  };
  std::string out = fmt::format("{}: {} sign, {} exponent and {} mantissa bits, bias {}\n",
                                style.bold(format.name), format.is_signed ? 1 : 0,
                                format.exponent_bits, format.mantissa_bits, format.bias);
  out += line("largest", max_finite(format), max_finite_code(format));
  out += line("one", 1, encode(format, 1));
  out += line("next above one", 1 + spacing(format, 1), encode(format, 1 + spacing(format, 1)));
  out += line("smallest normal", min_normal(format), encode(format, min_normal(format)));
  if (format.has_subnormals())
    out += line("smallest", min_subnormal(format), encode(format, min_subnormal(format)));
  if (format.has_infinity())
    out += line("infinity", decode(format, infinity_code(format)), infinity_code(format));
  if (format.has_nan()) out += line("NaN", decode(format, nan_code(format)), nan_code(format));
  print(out);
}

// ---- table
// ------------------------------------------------------------------------------------------------

void print_codes(const std::string& name, const Context& context) {
  const FormatSpec& format = format_by_name(name);
  require(format.bits() <= 8, ErrorKind::kInvalidArgument,
          "formats table: {} has {} bits and {} codes; tables are printed up to 8 bits. `formats "
          "show {}` names the "
          "landmarks, `formats round {} X` a single value",
          format.name, format.bits(), format.num_codes(), format.name, format.name);
  json list = json::array();
  Table table({"code", "bits", "value"});
  for (uint32_t code = 0; code < format.num_codes(); ++code) {
    const double value = decode(format, code);
    table.add(
        {fmt::format("0x{:02x}", code), bits_text(format, code), fmt::format("{:.9g}", value)});
    list.push_back({{"code", code}, {"value", number_json(value)}});
  }
  if (context.json) {
    print_json({{"format", format_to_json(format)}, {"codes", list}});
  } else {
    print(table.text(context.style()));
  }
}

// ---- round
// ------------------------------------------------------------------------------------------------

struct RoundArguments {
  std::string format;
  std::vector<std::string> values;
  bool no_saturation = false;
};

struct NamedRounding {
  Rounding rounding;
  const char* name;
};
constexpr NamedRounding kRoundings[] = {{Rounding::kNearestEven, "nearest even"},
                                        {Rounding::kNearestAway, "nearest away"},
                                        {Rounding::kTowardZero, "toward zero"},
                                        {Rounding::kUp, "up"},
                                        {Rounding::kDown, "down"}};

double read_value(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::out_of_range&) {
    used = 0;
  } catch (const std::invalid_argument&) {
    used = 0;
  }
  require(used == text.size() && used > 0, ErrorKind::kInvalidArgument,
          "formats round: \"{}\" is no number a double can hold; expected e.g. 0.1, -3e4, "
          "0x1.8p-3, inf or nan",
          text);
  return value;
}

void round_values(const RoundArguments& args, const Context& context) {
  const FormatSpec& format = format_by_name(args.format);
  const Saturation saturation = args.no_saturation ? Saturation::kNone : Saturation::kSaturate;
  json list = json::array();
  Table table({"value", "rounding", "code", "bits", "result", "relative error"});
  for (const std::string& text : args.values) {
    const double value = read_value(text);
    for (const NamedRounding& mode : kRoundings) {
      const uint32_t code =
          encode(format, value, {.rounding = mode.rounding, .saturation = saturation});
      const double result = decode(format, code);
      const bool has_error = std::isfinite(value) && std::isfinite(result) && value != 0;
      const double error = has_error ? (result - value) / value : 0;
      table.add({text, mode.name, fmt::format("0x{:0{}x}", code, (format.bits() + 3) / 4),
                 bits_text(format, code), fmt::format("{:.9g}", result),
                 has_error ? fmt::format("{:+.3g}", error) : "-"});
      list.push_back({{"value", number_json(value)},
                      {"rounding", mode.name},
                      {"code", code},
                      {"result", number_json(result)},
                      {"relative_error", has_error ? json(error) : json()}});
    }
  }
  if (context.json) {
    print_json({{"format", format.name}, {"saturating", !args.no_saturation}, {"results", list}});
  } else {
    print(table.text(context.style()));
  }
}

}  // namespace

void add_formats(CLI::App& app, Context& context) {
  CLI::App* formats = app.add_subcommand("formats", "inspect number formats");
  formats->require_subcommand(1);

  CLI::App* show = formats->add_subcommand("show", "the properties of one format, or of all");
  auto shown = std::make_shared<std::string>();
  show->add_option("format", *shown, "a number or block format, e.g. e4m3 or nvfp4; none: all");
  show->callback([shown, &context] {
    if (shown->empty()) {
      show_all(context);
    } else {
      show_one(*shown, context);
    }
  });

  CLI::App* table =
      formats->add_subcommand("table", "every encoding of a format of at most 8 bits");
  auto listed = std::make_shared<std::string>();
  table->add_option("format", *listed, "e2m1, e2m3, e3m2, e4m3, e5m2, ue8m0 or ue4m3")->required();
  table->callback([listed, &context] { print_codes(*listed, context); });

  CLI::App* round =
      formats->add_subcommand("round", "round values to a format, in every direction");
  auto args = std::make_shared<RoundArguments>();
  round->add_option("format", args->format, "a number format")->required();
  round->add_option("values", args->values, "numbers; write -- before negative ones")->required();
  round->add_flag("--no-saturation", args->no_saturation,
                  "overflow gives infinity or NaN where the format has it");
  round->footer("Example: tilewright formats round e4m3 0.3 500");
  round->callback([args, &context] { round_values(*args, context); });
}

}  // namespace tilewright::cli
