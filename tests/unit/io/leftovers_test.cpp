// What killed processes leave, and what living ones hold.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "support/output_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

/// A child that makes a staging folder and dies without cleaning up.
void die_while_writing(const fs::path& target) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const OutputFolder output(target, IfExists::kReplace, kKind);
    write_bytes(output.staging() / "half", "half");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(Leftovers, RemovesWhatDeadProcessesLeftForTheSameTarget) {
  const TempDir dir;
  die_while_writing(dir / "out");
  die_while_writing(dir / "other");
  const auto left = names_in(dir.path());
  ASSERT_EQ(left.size(), 2U);
  write_bytes(dir / ".out.lancet-notes" / "x", "not a staging folder");
  {
    OutputFolder output(dir / "out", IfExists::kError, kKind);
    fill(output, "new");
    output.commit();
  }
  const auto now = names_in(dir.path());
  EXPECT_EQ(now.size(), 3U);
  EXPECT_TRUE(now.contains("out"));
  EXPECT_TRUE(now.contains(".out.lancet-notes"));
  EXPECT_TRUE(std::ranges::any_of(now, [](const std::string& name) { return name.starts_with(".other.lancet-"); }));
}

TEST(Leftovers, OfAKilledProcessGoWhenItsTargetIsRecovered) {
  const TempDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    TemporaryFile file(dir / "notes.json");
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(names_in(dir.path()).size(), 1U);
  recover_output(dir / "out", kKind);
  EXPECT_TRUE(names_in(dir.path()).empty());
}

/// The id of a process that is gone.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(Leftovers, RemovesAnEarlierTargetThatAKilledRunHadReplaced) {
  const TempDir dir;
  write_output(dir / "out");
  const std::string staging = cat(".out.lancet-", dead_process());
  fs::rename(dir / "out", dir / staging);  // exchanged, then killed
  write_bytes(dir / staging / "own", "came into it in the last moment");
  write_output(dir / "out", "new");
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"out", staging}));
  EXPECT_EQ(names_in(dir / staging), (std::set<std::string>{kManifest, "own"}));
  fs::remove(dir / staging / "own");
  write_output(dir / "out", "newer");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

TEST(Leftovers, PutsBackATargetThatAKilledRunHadTakenAway) {
  const TempDir dir;
  write_output(dir / "out", "the only copy");
  const fs::path aside = dir / cat(".out.lancet-old-", dead_process());
  fs::rename(dir / "out", aside);
  { const OutputLock lock(dir / "out", kKind); }
  expect_says(refusal(dir / "out", IfExists::kError), {"got a folder"});
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "the only copy");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});

  // the new one had come: the old one is a leftover
  fs::copy(dir / "out", aside, fs::copy_options::recursive);
  write_output(dir / "out", "new");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "new");

  // somebody else's, who lives
  const fs::path living = dir / cat(".out.lancet-old-", ::getppid());
  fs::rename(dir / "out", living);
  write_output(dir / "out", "new");
  EXPECT_TRUE(fs::exists(living));
}

TEST(OutputLock, LetsOneRunAtATimeWorkOnATarget) {
  const TempDir dir;
  {
    const OutputLock first(dir / "a" / "out", kKind);
    expect_says(message_of<ConfigError>([&] { OutputLock(dir / "a" / "out/", kKind); }),
                {(dir / "a" / "out").string(), cat("process ", ::getpid(), " on "), "wait for its end"});
    const OutputLock other(dir / "a" / "other", kKind);
  }
  EXPECT_TRUE(names_in(dir / "a").empty());
  write_bytes(dir / "a" / ".out.lancet-lock", "process 1 on a host, killed");
  { const OutputLock next(dir / "a" / "out", kKind); }
  EXPECT_TRUE(names_in(dir / "a").empty());
}

TEST(OutputLock, OfAKilledRunIsNoneAndGoesWithWhatItLeft) {
  const TempDir dir;
  write_bytes(dir / ".out.lancet-lock", "process 1 on nowhere");
  recover_output(dir / "out", kKind);
  EXPECT_TRUE(names_in(dir.path()).empty());
  const OutputLock held(dir / "out", kKind);
  recover_output(dir / "out", kKind);
  EXPECT_EQ(names_in(dir.path()).size(), 1U) << "somebody holds it";
}

TEST(OutputLock, SaysWhereNothingCanBeWritten) {
  for (const char* target : {"/proc/out", "/sys/out", "/proc/self/deep/out"})
    expect_says(message_of<CheckpointError>([&] { OutputLock lock(target, kKind); }),
                {"cannot ", std::string(target, 4)});
}

TEST(Leftovers, RemovesALeftoverOfItsOwnProcessId) {
  // Containers give the same few process ids again and again.
  const TempDir dir;
  const std::string name = ".out.lancet-" + std::to_string(::getpid());
  write_bytes(dir / name / "half", "half");
  OutputFolder output(dir / "out", IfExists::kError, kKind);
  EXPECT_EQ(output.staging(), dir / name);
  EXPECT_TRUE(names_in(output.staging()).empty());
}

TEST(Leftovers, LeavesLivingNeighboursAlone) {
  const TempDir dir;
  OutputFolder first(dir / "out", IfExists::kError, kKind);
  fill(first, "first");
  OutputFolder second(dir / "out", IfExists::kError, kKind);
  fill(second, "second");
  EXPECT_NE(first.staging(), second.staging());
  first.commit();
  EXPECT_THROW(second.commit(), ConfigError);
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "first");
}

}  // namespace
}  // namespace lancet
