#include "report/log_page.h"

#include "base/markup.h"
#include "report/page_style.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

std::string log_page(const nlohmann::json& log, const LogPage& page) {
  std::string html = fmt::format(
      "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width,initial-scale=1'><title>{}</title>"
      "<style>{}{}</style></head><body><main><h1>{}</h1>",
      page.window_title, kLadderCss, page.css, page.title);
  html +=
      fmt::format("<p class='sub'>{} \u00b7 {} \u00b7 commit {}{}</p><p>{}</p>",
                  escape_markup(log.at("device").value("name", "")),
                  escape_markup(log.value("started", "")), escape_markup(log.value("commit", "")),
                  log.value("dirty", false) ? " with changes" : "", page.introduction);
  return html + page.body +
         fmt::format(
             "<footer>Cache: {}. Made by <code>{}</code> from its log alone.</footer>"
             "</main></body></html>\n",
             escape_markup(log.value("cache", "")), escape_markup(log.value("command", "")));
}

}  // namespace tilewright::cli
