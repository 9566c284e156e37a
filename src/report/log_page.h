// The frame of a page that is made from the log of a benchmark.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::cli {

struct LogPage {
  std::string window_title, title;  ///< HTML
  std::string css;                  ///< behind the ladder's
  std::string introduction;         ///< HTML of a paragraph
  std::string body;                 ///< HTML
};

/// A page that needs nothing else: title, device, time and commit of the log, introduction, body,
/// and the command that made it.
std::string log_page(const nlohmann::json& log, const LogPage& page);

}  // namespace tilewright::cli
