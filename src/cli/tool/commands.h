// The command line as a whole: all subcommands, options that each of them has, and errors.
#pragma once

namespace tilewright::cli {

/// Runs what the command line asks for.
/// Returns  the exit status: 0; 1 if the command found something wrong or failed, and printed the
///          error; 2 after a wrong command line
int run_command(int argc, char** argv);

}  // namespace tilewright::cli
