// tilewright: the command line.
#include "cli/tool/commands.h"
#include "cli/tool/interrupt.h"
#include "report/terminal.h"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  tilewright::cli::install_signal_handlers();
  const int status = tilewright::cli::run_command(argc, argv);
  const int lost = tilewright::cli::finish_output();
  if (lost == 0) return status;
  std::fprintf(stderr, "tilewright: cannot write to standard output: %s\n", std::strerror(lost));
  return status == 0 ? 1 : status;
}
