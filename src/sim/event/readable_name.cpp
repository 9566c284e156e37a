// Names of kernels for messages: those of templates have thousands of characters.
#include "sim/event/finding.h"

#include <cstdlib>
#include <memory>

#include <cxxabi.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMostColumns = 80;

void remove_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.erase(at, what.size());
  }
}

/// "void f<int>(char)" has its name from 5 to 11.
std::string_view name_in(std::string_view text) {
  int depth = 0;
  std::size_t begin = 0, end = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && c == '(' && i != 0) {
      end = i;
      break;
    }
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if ((c == '>' || c == ')' || c == '}' || c == ']') && depth > 0) --depth;
    if (depth == 0 && c == ' ') begin = i + 1;
  }
  return text.substr(begin, end - begin);
}

std::string decoded(std::string_view kernel) {
  if (!kernel.starts_with("_Z")) return std::string(kernel);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(kernel).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return std::string(kernel);
  std::string all = text.get();
  remove_all(all, "(anonymous namespace)::");
  return std::string(name_in(all));
}

}  // namespace

std::string readable_name(std::string_view kernel) {
  std::string out = decoded(kernel);
  if (out.size() > kMostColumns) out = out.substr(0, kMostColumns - 3) + "...";
  return out;
}

}  // namespace tilewright::sim
