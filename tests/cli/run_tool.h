// Running the tool as a shell would.
#pragma once

#include "base/file.h"
#include "base/json.h"
#include "tests/base/scoped_folder.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include <sys/wait.h>

namespace tilewright {

struct Outcome {
  int status = -1;
  std::string out, err;
  nlohmann::json parsed() const { return parse_json(out, "output"); }
};

/// Runs the tool with arguments as a shell would split them, standard error apart.
inline Outcome run_tool(const std::string& arguments, const std::string& variables = "") {
  const ScopedFolder folder;
  const std::string err_path = folder / "stderr";
  const std::string command = "TILEWRIGHT_DEVICE= NO_COLOR=1 " + variables + " " +
                              std::string(TILEWRIGHT_TOOL) + " " + arguments + " 2>" + err_path;
  Outcome result;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) result.out += buffer.data();
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.err = std::string(MappedFile(err_path).text());
  return result;
}

}  // namespace tilewright
