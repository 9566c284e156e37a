#include "report/plot_image.h"

#include "base/markup.h"
#include "report/page_style.h"

#include <map>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

// --name:value; of the page's style: first those for light, then those for dark.
std::map<std::string, std::string> read_palette(std::string_view css) {
  std::map<std::string, std::string> palette;
  for (std::size_t at = css.find("--"); at != css.npos; at = css.find("--", at)) {
    const std::size_t colon = css.find(':', at), end = css.find(';', at);
    if (colon >= end || end == css.npos) break;
    palette[std::string(css.substr(at, colon - at))] = css.substr(colon + 1, end - colon - 1);
    at = end;
  }
  return palette;
}

// Values in place of var(--name), which not every program that draws SVG knows.
std::string resolve(std::string css, const std::map<std::string, std::string>& palette) {
  constexpr std::string_view kBegin = "var(";
  for (std::size_t at = css.find(kBegin); at != css.npos; at = css.find(kBegin, at)) {
    const std::size_t end = css.find(')', at);
    css.replace(at, end + 1 - at, palette.at(css.substr(at + 4, end - at - 4)));
  }
  return css;
}

std::string image_colors(const std::map<std::string, std::string>& palette) {
  std::string css =
      ".page{fill:var(--card)} text{fill:var(--ink)} .tick,.unit,.note{fill:var(--soft)}\n"
      ".grid{stroke:var(--line)} .ceiling{stroke:var(--soft)}\n";
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(
        ".s{0} path{{stroke:var(--c{0})}}\n"
        ".s{0} circle,.s{0} .name,.f{0},.t{0}{{fill:var(--c{0})}}\n",
        i);
  return resolve(std::move(css), palette);
}

std::string image_style() {
  const std::string_view css = kLadderCss;
  const std::size_t dark = css.find("@media (prefers-color-scheme: dark)"),
                    rest = css.find("\n* {");
  return "text{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px}\n"
         ".heading{font-size:16px;font-weight:600} .label{font-weight:600;font-size:13px}\n"
         ".tick,.unit{font-size:11px} .note{font-size:12.5px} .name{font-weight:600}\n"
         ".ceiling{stroke-dasharray:2 4} .peer path{stroke-dasharray:6 4}\n"
         "path{fill:none;stroke-width:2.2;stroke-linejoin:round}\n" +
         image_colors(read_palette(css.substr(0, dark))) +
         "@media (prefers-color-scheme: dark){\n" +
         image_colors(read_palette(css.substr(dark, rest - dark))) + "}\n";
}

}  // namespace

std::string plot_image(const std::string& plot, const std::string& heading) {
  constexpr std::string_view kBegin = "<svg viewBox='0 0 ";
  constexpr int kMargin = 20, kHeading = 34;
  const std::size_t size_end = plot.find('\'', kBegin.size()), begin = plot.find('>') + 1;
  const std::string size = plot.substr(kBegin.size(), size_end - kBegin.size());
  const std::size_t space = size.find(' ');
  const double width = std::stod(size.substr(0, space)) + 2 * kMargin;
  const double height = std::stod(size.substr(space + 1)) + 2 * kMargin + kHeading;
  std::string body = plot.substr(begin);
  for (std::size_t at = body.find("><"); at != body.npos; at = body.find("><", at))
    body.insert(at + 1, "\n");  // a line for each element, so that changes can be read
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='{2} {3} {0} {1}' "
      "role='img'>\n<style>\n{4}</style>\n"
      "<rect class='page' x='{2}' y='{3}' width='{0}' height='{1}'/>\n"
      "<text class='heading' x='0' y='{5}'>{6}</text>\n{7}\n",
      width, height, -kMargin, -kMargin - kHeading, image_style(), -kHeading / 2,
      escape_markup(heading), body);
}

}  // namespace tilewright::cli
