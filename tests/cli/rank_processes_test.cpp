// Processes that `--gpus N` starts: what they are told, and how they end together.
#include "base/error.h"
#include "cli/generate/ranks.h"
#include "cli/tool/interrupt.h"
#include "comm/rendezvous.h"
#include "tests/base/scoped_folder.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tilewright::cli {
namespace {

using testing::HasSubstr;

// What is left of `size` processes that each run `body` with their rank and end with its result.
struct Ended {
  int status = 0;
  std::string error = {};
  double seconds = 0;
};

Ended run_processes(int size, const std::function<int(const comm::Launch&)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  Ended ended;
  try {
    Context context;
    if (start_rank_processes(size, context)) ::_exit(body(comm::read_launch()));
    ended.status = context.exit_status;
  } catch (const Error& error) {
    ended.error = error.what();
  }
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ended;
}

TEST(RankProcesses, FindEachOther) {
  const ScopedFolder folder;
  const Ended ended = run_processes(3, [&](const comm::Launch& launch) {
    comm::Rendezvous all(launch, std::chrono::seconds(20));
    all.barrier();
    std::ofstream(folder / std::to_string(launch.rank)) << launch.size << launch.local_rank;
    return 0;
  });
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.error, "");
  EXPECT_THAT(folder.names(), testing::ElementsAre("0", "1", "2"));
}

// The others notice at once, by their connections.
TEST(RankProcesses, OneThatIsKilledEndsAll) {
  const ScopedFolder folder;
  const Ended ended = run_processes(3, [&](const comm::Launch& launch) {
    comm::Rendezvous all(launch, std::chrono::seconds(60));
    all.barrier();
    if (launch.rank == 1) ::raise(SIGKILL);
    try {
      all.barrier();
    } catch (const Error& error) {
      std::ofstream(folder / std::to_string(launch.rank)) << error.what();
    }
    return 1;
  });
  const bool is_told = ended.error == "ranks: rank 1 of 3 was ended by signal 9 (Killed)";
  EXPECT_TRUE(is_told || ended.status == 1) << ended.error;  // whichever is seen to end first
  EXPECT_LT(ended.seconds, 5);
  for (const char* rank : {"0", "2"}) {
    std::string text;
    std::ifstream file(folder / rank);
    std::getline(file, text);
    EXPECT_EQ(text, "ranks: rank 1 of 3 has ended without a word");
  }
}

// The process that has started them outlives the signal that it ends the others with.
TEST(RankProcesses, OneThatIsKilledEndsThoseThatSleep) {
  install_signal_handlers();
  const Ended ended = run_processes(2, [](const comm::Launch& launch) {
    if (launch.rank == 1) ::raise(SIGKILL);
    std::this_thread::sleep_for(std::chrono::minutes(5));
    return 0;
  });
  EXPECT_EQ(ended.error, "ranks: rank 1 of 2 was ended by signal 9 (Killed)");
  EXPECT_LT(ended.seconds, 8);
}

// One that waits for nobody is ended, too.
TEST(RankProcesses, OneThatFailsEndsThoseThatSleep) {
  const Ended ended = run_processes(2, [](const comm::Launch& launch) {
    if (launch.rank == 0) std::this_thread::sleep_for(std::chrono::minutes(5));
    return 3;
  });
  EXPECT_EQ(ended.status, 3);
  EXPECT_LT(ended.seconds, 8);
}

}  // namespace
}  // namespace tilewright::cli
