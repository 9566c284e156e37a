#include "cli/tool/interrupt.h"

#include "base/temporary_path.h"

#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>

#include <unistd.h>

namespace tilewright::cli {

namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

int pipe_of_signals[2] = {-1, -1};

// Removing files is not for a signal handler: it tells a thread of the signal.
void tell_thread(int signal) {
  const int saved = errno;
  const auto number = static_cast<unsigned char>(signal);
  static_cast<void>(!::write(pipe_of_signals[1], &number, 1));
  errno = saved;
}

void wait_for_signal() {
  unsigned char signal = 0;
  while (::read(pipe_of_signals[0], &signal, 1) != 1)
    if (errno != EINTR) return;
  remove_temporary_paths();
  ::signal(signal, SIG_DFL);
  ::kill(::getpid(), signal);
}

[[noreturn]] void say_file_was_cut(int) {
  constexpr std::string_view kText =
      "tilewright: an input file became shorter while it was read; run the command again once "
      "the file is complete\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(1);
}

}  // namespace

void install_signal_handlers() {
  std::signal(SIGBUS, say_file_was_cut);
  std::signal(SIGXFSZ, SIG_IGN);  // writing says so: EFBIG
  if (::pipe(pipe_of_signals) != 0) return;
  for (const int signal : kEndingSignals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = tell_thread;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
  std::thread(wait_for_signal).detach();
}

}  // namespace tilewright::cli
