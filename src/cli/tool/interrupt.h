// What the tool does before a signal ends it.
#pragma once

namespace tilewright::cli {

/// From now on SIGINT, SIGTERM and SIGHUP remove unfinished files (base/temporary_path.h) before
/// they end the process as they would have; one that is ignored stays ignored. A file that another
/// program shortens while it is mapped ends the process with a sentence and status 1. Writing
/// beyond the limit of file sizes is an error and no signal.
void install_signal_handlers();

}  // namespace tilewright::cli
