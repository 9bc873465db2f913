// The launcher with shell scripts in place of mpirun, and with mpirun itself.
#include "launch/exec.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "launch/choose_launcher.h"
#include "support/error_text.h"

namespace redco {
namespace {

using testing::HasSubstr;

class Exec : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGINT, SIG_DFL);  // a shell's background jobs ignore it, and exec_under_mpirun would keep that
    path_ = std::filesystem::temp_directory_path() / fmt::format("redco-exec-{}", getpid());
    std::filesystem::create_directories(path_);
    fd_ = open((path_ / "stderr").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  void TearDown() override {
    close(fd_);
    std::filesystem::remove_all(path_);
  }
  // Runs a script in place of mpirun.
  int bash(const std::string& script, bool save = false, double fault_timeout = 0) {
    Mpirun m;
    m.path = path_ / "mpirun";
    std::ofstream(m.path) << "#!/bin/bash\n" << script;
    std::filesystem::permissions(m.path, std::filesystem::perms::owner_all);
    m.own_environment = {{"REDCO_EXEC_TEST", "42"}};
    m.dropped = {"REDCO_EXEC_DROPPED"};
    outcome_ = exec_under_mpirun(m, {.fault_timeout = fault_timeout,
                                     .save_on_signal = save,
                                     .stderr_fd = fd_,
                                     .ends_for_restart = [this] { return restarts_; },
                                     .root = root_});
    return outcome_.code;
  }
  // The same for a script that reports as rank 0. `asked` waits for the next request to save and end.
  int reporting(const std::string& script, double fault_timeout = 0, bool save = false) {
    return bash(
        "IFS=, read key server timeout in_rank end <<<\"$REDCO_WATCH\"\n"
        "exec 9<>/dev/tcp/${end%:*}/${end##*:}\n"
        "say() { printf '%s\\n' \"$*\" >&9; }\n"
        "asked() { while read -ru 9 line; do [[ $line == stop* ]] && break; done; }\n"
        "say redco-watch $key 0 $$ node7; read -u 9 welcome\n" +
            script,
        save, fault_timeout);
  }
  // Sends signals to this process, pause_ms apart, as soon as the script has created the file `ready`.
  std::thread later(std::vector<int> signals, int pause_ms = 600) {
    return std::thread([this, signals, pause_ms] {
      while (!std::filesystem::exists(path_ / "ready"))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      for (int s : signals) {
        kill(getpid(), s);
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
      }
    });
  }
  std::string errors() {
    std::ifstream in(path_ / "stderr");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static i64 lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
  std::string ready() { return "touch " + (path_ / "ready").string() + "\n"; }
  std::filesystem::path path_;
  std::string root_;
  bool restarts_ = false;
  Outcome outcome_;  // of the last bash()
  int fd_ = -1;
};

TEST_F(Exec, ExitCodesAndStderrPassThrough) {
  EXPECT_EQ(bash("exit 0"), 0);
  EXPECT_EQ(bash("echo 'redco: bad file' >&2; exit 3"), 3);
  EXPECT_EQ(errors(), "redco: bad file\n");
  setenv("REDCO_EXEC_DROPPED", "1", 1);
  EXPECT_EQ(bash("[ $REDCO_EXEC_TEST = 42 ] && [ -z $REDCO_EXEC_DROPPED ] || exit 1"), 0);
  unsetenv("REDCO_EXEC_DROPPED");
  EXPECT_EQ(bash("read x && exit 1; exit 0"), 0);  // stdin is empty
}

// A session that a killed mpirun left has the name of another, if a host gives its process id again.
TEST_F(Exec, EachStartHasItsOwnFolderOfSessions) {
  EXPECT_EQ(bash("mkdir -p $PRTE_MCA_prte_tmpdir_base/prterun.a.21.0; echo $PRTE_MCA_prte_tmpdir_base >&2"),
            0);
  const std::string first = errors();
  EXPECT_FALSE(std::filesystem::exists(first.substr(0, first.find('\n'))));
  EXPECT_EQ(bash("echo $PRTE_MCA_prte_tmpdir_base >&2"), 0);
  EXPECT_THAT(errors(), testing::AllOf(HasSubstr("/redco-sessions-"), testing::Ne(first + first)));
  setenv("PRTE_MCA_prte_tmpdir_base", "/scratch", 1);
  EXPECT_EQ(bash("[ $PRTE_MCA_prte_tmpdir_base = /scratch ]"), 0);
  unsetenv("PRTE_MCA_prte_tmpdir_base");
}

TEST_F(Exec, KilledRanksAreRankFailed) {
  const std::string dash(74, '-');
  EXPECT_EQ(bash(fmt::format(
                "printf '%s\\n' '{0}' 'mpirun noticed that process rank 1 with PID 0 on node vm exited on "
                "signal 11 (Segmentation fault).' '{0}' >&2; exit 139",
                dash)),
            5);
  EXPECT_EQ(errors(),
            "redco: rank 1 on vm was killed by signal 11 (Segmentation fault); all ranks have ended\n");
  EXPECT_EQ(outcome_.kind, Outcome::Kind::killed);
  EXPECT_EQ(outcome_.places.at(0).rank, 1);
  EXPECT_EQ(bash("exit 205"), 5);
  EXPECT_THAT(errors(), testing::Not(HasSubstr("a rank was")));
  EXPECT_EQ(bash("exit 137"), 5);
  EXPECT_THAT(errors(), HasSubstr("redco: a rank was killed by signal 9 (Killed); all ranks have ended\n"));
  EXPECT_EQ(bash("kill -9 $$"), 5);
  EXPECT_THAT(errors(),
              testing::EndsWith("redco: mpirun was killed by signal 9 (Killed); all ranks have ended\n"));
}

// mpirun ends with status 1 after a SIGTERM, and also when a rank ends with code 1 (a failed check).
TEST_F(Exec, StatusOneIsTheRanksOnlyIfARankReportedIt) {
  EXPECT_EQ(bash("exit 1"), 5);
  EXPECT_THAT(errors(), HasSubstr("redco: mpirun ended before its ranks"));
  EXPECT_EQ(reporting("say bye 1; exit 1"), 1);
  EXPECT_EQ(lines(errors()), 1);
}

// The script ignores SIGTERM, as an mpirun that is stopped or waits for an unreachable host.
TEST_F(Exec, ARankWithoutProgressEndsTheJob) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(reporting("trap '' TERM\nwhile :; do say beat working 5000 7 0 - load; sleep 0.05; done", 1), 5);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
  EXPECT_THAT(errors(),
              HasSubstr("error: [fault] no progress for 1 s on rank 0 on node7 (phase: load, step 7)"));
  EXPECT_EQ(outcome_.kind, Outcome::Kind::stuck);
  EXPECT_TRUE(outcome_.ran);
  EXPECT_EQ(outcome_.step, 7);
  EXPECT_EQ(lines(errors()), 1);
}

TEST_F(Exec, AStoppedRankEndsTheJob) {
  EXPECT_EQ(reporting("kill -STOP $$", 1), 5);
  EXPECT_THAT(errors(), HasSubstr("error: [fault] no message for 1 s from rank 0 on node7 (phase: start)"));
  EXPECT_EQ(lines(errors()), 1);
}

// mpirun's signals do not reach processes in other process groups.
TEST_F(Exec, NoProcessSurvivesMpirun) {
  const std::string file = path_ / "pid";
  for (const std::string end : {"kill -9 $$", "trap '' TERM; while :; do sleep 0.02; done"}) {
    std::filesystem::remove(path_ / "ready");
    std::thread t;
    if (end[0] == 't') t = later({SIGTERM});
    EXPECT_NE(bash("setsid bash -c \"trap '' TERM; echo \\$\\$ >" + file +
                   "; while :; do sleep 0.05; done\" &\nwhile [ ! -s " + file + " ]; do sleep 0.01; done\n" +
                   ready() + end),
              0);
    if (t.joinable()) t.join();
    std::ifstream in(file);
    pid_t pid = 0;
    in >> pid;
    ASSERT_GT(pid, 1);
    for (int i = 0; i < 200 && kill(pid, 0) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::ifstream state(fmt::format("/proc/{}/stat", pid));
    std::string stat;
    std::getline(state, stat);
    EXPECT_TRUE(stat.empty() || stat.find(") Z ") != std::string::npos) << stat;
    std::filesystem::remove(file);
  }
}

// The cgroup's count of kills distinguishes lack of memory from a kill by a person.
TEST_F(Exec, ARankKilledForLackOfMemoryIsDoesntFit) {
  root_ = path_ / "root";
  std::filesystem::create_directories(path_ / "root/proc/self");
  std::filesystem::create_directories(path_ / "root/sys/fs/cgroup/job");
  std::ofstream(path_ / "root/proc/self/cgroup") << "0::/job\n";
  const std::string events = path_ / "root/sys/fs/cgroup/job/memory.events";
  std::ofstream(events) << "oom_kill 3\n";
  const std::string dash(74, '-');
  const auto noticed = [&](const std::string& host) {
    return fmt::format(
        "printf '%s\\n' '{0}' \"mpirun noticed that process rank 1 with PID 0 on node {1} exited on "
        "signal 9 (Killed).\" '{0}' >&2; exit 137\n",
        dash, host);
  };
  EXPECT_EQ(bash(noticed("$(hostname)")), 5);
  EXPECT_THAT(errors(), testing::Not(HasSubstr("[memory]")));
  const std::string kills = "echo 'oom_kill 4' > " + events + "\n";
  EXPECT_EQ(bash(kills + noticed("elsewhere")), 5);
  std::ofstream(events) << "oom_kill 3\n";
  EXPECT_EQ(bash(kills + noticed("$(hostname)")), 4);
  EXPECT_THAT(errors(), HasSubstr("error: [memory] the kernel killed rank 1 for lack of memory"));
  std::ofstream(events) << "oom_kill 3\n";
  EXPECT_EQ(bash(kills + "exit 137\n"), 4);
}

TEST_F(Exec, TheFirstSignalAsksForASave) {
  auto t = later({SIGTERM});
  EXPECT_EQ(reporting(ready() + "asked; [ \"$line\" = 'stop 15' ] && say bye 8 && exit 8; exit 1", 0, true),
            8);
  t.join();
  EXPECT_EQ(errors(), "redco: SIGTERM: saving, then ending; a second signal ends without saving\n");
}

TEST_F(Exec, ARequestReachesRanksThatConnectLater) {
  auto t = later({SIGTERM});
  EXPECT_EQ(bash(ready() + "sleep 0.5; IFS=, read key server timeout in_rank end <<<\"$REDCO_WATCH\"\n"
                           "exec 9<>/dev/tcp/${end%:*}/${end##*:}\n"
                           "echo redco-watch $key 0 $$ node7 >&9; read -u 9 welcome; read -u 9 line\n"
                           "[ \"$line\" = 'stop 15' ] && echo bye 8 >&9 && exit 8; exit 1",
                 true),
            8);
  t.join();
}

// `timeout` signals the process and its group: two signals for one request.
TEST_F(Exec, TwoSignalsWithin500MsAreOneRequest) {
  auto t = later({SIGTERM, SIGTERM}, 50);
  EXPECT_EQ(reporting("trap 'exit 1' TERM\n" + ready() + "asked; sleep 0.3; say bye 8; exit 8", 0, true), 8);
  t.join();
  EXPECT_EQ(lines(errors()), 1);
}

TEST_F(Exec, TheSecondSignalEndsTheJob) {
  auto t = later({SIGINT, SIGINT});
  EXPECT_EQ(bash("trap 'exit 1' TERM\n" + ready() + "while :; do sleep 0.02; done", true), 8);
  t.join();
}

TEST_F(Exec, TheSecondSignalEndsRanksThatIgnoreSigterm) {
  const auto began = std::chrono::steady_clock::now();
  auto t = later({SIGINT, SIGINT});
  EXPECT_EQ(bash("trap '' TERM\n" + ready() + "while :; do sleep 0.02; done", true), 8);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  t.join();
}

TEST_F(Exec, WithoutSavingTheFirstSignalEndsTheJob) {
  auto t = later({SIGINT});
  EXPECT_EQ(
      reporting(ready() + "asked; echo 'stopped by SIGINT; nothing had to be saved' >&2; say bye 8; exit 8"),
      8);
  t.join();
  EXPECT_EQ(errors(), "stopped by SIGINT; nothing had to be saved\n");
}

TEST_F(Exec, WithoutSavingRanksThatIgnoreTheRequestAreKilled) {
  const auto began = std::chrono::steady_clock::now();
  auto t = later({SIGINT});
  EXPECT_EQ(bash("trap '' TERM\n" + ready() + "while :; do sleep 0.02; done"), 8);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
  t.join();
}

TEST_F(Exec, Usr1NeverEndsByForce) {
  auto t = later({SIGUSR1, SIGUSR1}, 300);
  EXPECT_EQ(reporting("trap 'exit 1' TERM\n" + ready() + "asked; asked; say bye 8; exit 8"), 8);
  t.join();
}

TEST_F(Exec, AnOrphanThatHoldsThePipeDoesNotHangTheLauncher) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(bash("sleep 20 & exit 4"), 4);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST_F(Exec, LongOutputPassesCompletely) {
  EXPECT_EQ(bash("for i in {1..20000}; do echo \"line $i of much output\" >&2; done"), 0);
  EXPECT_THAT(errors(), HasSubstr("line 1 of"));
  EXPECT_THAT(errors(), testing::EndsWith("line 20000 of much output\n"));
}

// A paused `less`: nobody reads, and the pipe is full.
TEST_F(Exec, AReaderThatStopsReadingHoldsUpNoSignal) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const int file = std::exchange(fd_, fds[1]);
  auto t = later({SIGTERM});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(reporting("for i in {1..20000}; do echo \"line $i of much output\" >&2; done\n" + ready() +
                          "asked; say bye 8; exit 8",
                      0, true),
            8);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  t.join();
  fd_ = file;
  close(fds[0]);
  close(fds[1]);
}

// `2>&1 | head`: the reader has gone, and the ranks are told to note it in the log file.
TEST_F(Exec, AReaderThatGoesAwayEndsNothing) {
  signal(SIGPIPE, SIG_IGN);  // as in main()
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  close(fds[0]);
  const int file = std::exchange(fd_, fds[1]);
  EXPECT_EQ(reporting("echo one >&2; while read -ru 9 line; do [[ $line == unread ]] && break; done\n"
                      "echo two >&2; say bye 0; exit 0"),
            0);
  fd_ = file;
  close(fds[1]);
  signal(SIGPIPE, SIG_DFL);
}

// The launcher's owner wants another start: the ranks save and end, and the outcome is a stop without a
// signal.
TEST_F(Exec, ARestartAsksForASave) {
  restarts_ = true;
  EXPECT_EQ(reporting("asked; say bye 8; exit 8", 0, true), 8);
  EXPECT_EQ(outcome_.kind, Outcome::Kind::stopped);
  EXPECT_EQ(outcome_.signal, 0);
  EXPECT_EQ(errors(), "");
}

TEST_F(Exec, NoMpirunIsAUsageError) {
  Mpirun m;
  m.path = "no-such-mpirun";
  EXPECT_THAT(usage_error([&] { exec_under_mpirun(m); }), HasSubstr("no-such-mpirun is not in PATH"));
}

TEST_F(Exec, TheRealMpirun) {
  auto plan_of = [](const char* script) {
    LaunchRequest r;
    r.here = facts_of(this_machine());
    r.n_ranks = 2;
    r.root = geteuid() == 0;
    Mpirun m = plan_launch(r).mpirun;
    m.program = {"bash", "-c", script};
    return m;
  };
  const auto code_of_plan = [&](const char* script) {
    return exec_under_mpirun(plan_of(script), {.save_on_signal = false, .stderr_fd = fd_}).code;
  };
  EXPECT_EQ(code_of_plan("exit 0"), 0);
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(code_of_plan("[ $OMPI_COMM_WORLD_RANK = 1 ] && echo own words >&2 && exit 3; sleep 5"), 3);
  EXPECT_EQ(errors(), "own words\n");
  EXPECT_EQ(code_of_plan("[ $OMPI_COMM_WORLD_RANK = 1 ] && kill -9 $$; sleep 5"), 5);
  // (Open MPI 4.1.4 sometimes omits the rank.)
  EXPECT_THAT(errors(),
              testing::AnyOf(HasSubstr("redco: rank 1 on "), HasSubstr("redco: a rank was killed by")));
  EXPECT_THAT(errors(), HasSubstr("killed by signal 9 (Killed)"));
  EXPECT_THAT(errors(), testing::Not(HasSubstr("-----")));
}

// Text of Open MPI that redco does not know goes to a file; the user gets one line.
TEST_F(Exec, UnknownTextOfMpirunIsKeptInAFile) {
  const std::string dash(74, '-');
  EXPECT_EQ(
      bash(fmt::format("printf '%s\\n' '{0}' 'A new remark. It has' 'two lines.' '{0}' >&2; exit 0", dash)),
      0);
  EXPECT_EQ(lines(errors()), 1);
  const std::string text = errors(), before = "redco: Open MPI reports: A new remark. (its whole text: ";
  ASSERT_EQ(text.substr(0, before.size()), before);
  const std::string file = text.substr(before.size(), text.find(')') - before.size());
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "A new remark. It has\ntwo lines.\n");
  std::filesystem::remove(file);
}

TEST_F(Exec, AFailedStartIsOneLine) {
  const std::string dash(74, '-');
  EXPECT_EQ(bash(fmt::format("printf '%s\\n' '{0}' 'There are not enough slots available in the system to "
                             "satisfy the 5' '{0}' >&2; exit 1",
                             dash)),
            5);
  EXPECT_EQ(lines(errors()), 1);
  EXPECT_THAT(errors(), testing::StartsWith("redco: the job has more ranks than mpirun counts slots. "));
}

}  // namespace
}  // namespace redco
