#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "io_support.h"
#include "lancet/core/error.h"
#include "lancet/io/output_folder.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr const char* kMarker = "manifest.json";

void fill(const OutputFolder& output, std::string_view text) {
  write_bytes(output.staging() / kMarker, text);
  write_bytes(output.staging() / "deep" / "er" / "file", text);
}

std::string refusal(const fs::path& target, IfExists policy) {
  return message_of<ConfigError>([&] { OutputFolder(target, policy, kMarker); });
}

/// Runs `act` with `folder` as the current one.
template <typename Act>
void inside(const fs::path& folder, Act act) {
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  act();
  fs::current_path(before);
}

TEST(OutputFolder, AppearsAtCommitAndNotBefore) {
  const TempDir dir;
  {
    OutputFolder output(dir / "a" / "b" / "out", IfExists::kError, kMarker);
    fill(output, "new");
    EXPECT_EQ(output.staging().parent_path(), dir / "a" / "b");
    EXPECT_FALSE(fs::exists(dir / "a" / "b" / "out"));
    output.commit();
    EXPECT_EQ(read_bytes(dir / "a" / "b" / "out" / "deep" / "er" / "file"), "new");
  }
  EXPECT_EQ(names_in(dir / "a" / "b"), std::set<std::string>{"out"});
}

TEST(OutputFolder, LeavesNothingWithoutCommit) {
  const TempDir dir;
  {
    const OutputFolder output(dir / "out", IfExists::kError, kMarker);
    fill(output, "new");
    EXPECT_EQ(names_in(dir.path()).size(), 1U);
  }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(OutputFolder, ReplacesAFolderOfItsOwn) {
  const TempDir dir;
  write_bytes(dir / "out" / kMarker, "old");
  write_bytes(dir / "out" / "old-file", "old");
  OutputFolder output(dir / "out", IfExists::kReplace, kMarker);
  fill(output, "new");
  EXPECT_EQ(read_bytes(dir / "out" / kMarker), "old");
  output.commit();
  EXPECT_EQ(names_in(dir / "out"), (std::set<std::string>{kMarker, "deep"}));
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

TEST(OutputFolder, KeepsTheOldFolderWithoutCommit) {
  const TempDir dir;
  write_bytes(dir / "out" / kMarker, "old");
  { const OutputFolder output(dir / "out", IfExists::kReplace, kMarker); }
  EXPECT_EQ(read_bytes(dir / "out" / kMarker), "old");
}

TEST(OutputFolder, ReplacesAnEmptyFolderAndMakesAnAbsentOne) {
  const TempDir dir;
  fs::create_directory(dir / "empty");
  for (const char* name : {"empty", "absent"}) {
    OutputFolder output(dir / name, IfExists::kReplace, kMarker);
    fill(output, "new");
    output.commit();
    EXPECT_EQ(read_bytes(dir / name / kMarker), "new");
  }
}

TEST(OutputFolder, RefusesAnExistingTargetUnlessToldToReplace) {
  const TempDir dir;
  write_bytes(dir / "out" / kMarker, "old");
  expect_says(refusal(dir / "out", IfExists::kError), {(dir / "out").string(), "output.replace: true"});
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

TEST(OutputFolder, RefusesToReplaceSomebodysFolder) {
  const TempDir dir;
  write_bytes(dir / "thesis" / "chapter1.tex", "years of work");
  expect_says(refusal(dir / "thesis", IfExists::kReplace), {(dir / "thesis").string(), kMarker, "does not delete"});
  EXPECT_EQ(read_bytes(dir / "thesis" / "chapter1.tex"), "years of work");
}

TEST(OutputFolder, RefusesTargetsThatCannotBeFolders) {
  const TempDir dir;
  write_bytes(dir / "file", "x");
  fs::create_symlink(dir / "nowhere", dir / "dangling");
  for (const IfExists policy : {IfExists::kError, IfExists::kReplace}) {
    expect_says(refusal(dir / "file", policy), {(dir / "file").string(), "got a file"});
    expect_says(refusal(dir / "dangling", policy), {(dir / "dangling").string(), "got a file"});
    expect_says(refusal(dir / "file" / "out", policy), {"got the file " + (dir / "file").string()});
    expect_says(refusal("", policy), {"without a name"});
    expect_says(refusal("/", policy), {"without a name"});
  }
}

TEST(OutputFolder, ChecksWithoutTouchingAnything) {
  const TempDir dir;
  check_output_target(dir / "a" / "b", IfExists::kError, kMarker);
  EXPECT_TRUE(names_in(dir.path()).empty());
  write_bytes(dir / "out" / "x", "x");
  EXPECT_THROW(check_output_target(dir / "out", IfExists::kError, kMarker), ConfigError);
  EXPECT_THROW(check_output_target(dir / "out", IfExists::kReplace, kMarker), ConfigError);
}

TEST(OutputFolder, RefusesAReadOnlyParent) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write to read-only folders";
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms::owner_read | fs::perms::owner_exec);
  expect_says(refusal(dir / "out", IfExists::kError), {dir.path().string(), "Permission denied"});
  fs::permissions(dir.path(), fs::perms::owner_all);
}

TEST(OutputFolder, TakesRelativeTargetsAndTrailingSlashes) {
  const TempDir dir;
  const fs::path root = fs::canonical(dir.path());
  inside(root, [&] {
    for (const char* name : {"out", "out/", "./out", "sub/../out", "out/."}) {
      OutputFolder output(name, IfExists::kReplace, kMarker);
      EXPECT_EQ(output.target(), root / "out") << name;
      fill(output, name);
      output.commit();
      EXPECT_EQ(read_bytes(root / "out" / kMarker), name);
    }
  });
  EXPECT_EQ(names_in(root), std::set<std::string>{"out"});
}

TEST(OutputFolder, StaysAtItsPlaceWhenTheCurrentFolderChanges) {
  const TempDir dir;
  fs::create_directory(dir / "elsewhere");
  inside(dir.path(), [&] {
    OutputFolder output("out", IfExists::kError, kMarker);
    fs::current_path("elsewhere");
    fill(output, "new");
    output.commit();
  });
  EXPECT_TRUE(fs::exists(dir / "out" / kMarker));
}

TEST(OutputFolder, ReplacesTheFolderBehindALinkAndKeepsTheLink) {
  const TempDir dir;
  write_bytes(dir / "disk" / "real" / kMarker, "old");
  fs::create_directory_symlink(dir / "disk" / "real", dir / "link");
  OutputFolder output(dir / "link", IfExists::kReplace, kMarker);
  fill(output, "new");
  output.commit();
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(read_bytes(dir / "disk" / "real" / kMarker), "new");
}

TEST(OutputFolder, LooksAgainAtCommit) {
  const TempDir dir;
  for (const IfExists policy : {IfExists::kError, IfExists::kReplace}) {
    OutputFolder output(dir / "out", policy, kMarker);
    fill(output, "new");
    write_bytes(dir / "out" / "chapter1.tex", "came into being since");
    expect_says(message_of<ConfigError>([&] { output.commit(); }), {(dir / "out").string()});
    EXPECT_EQ(names_in(dir / "out"), std::set<std::string>{"chapter1.tex"});
    fs::remove_all(dir / "out");
  }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

/// A child that makes a staging folder and dies without cleaning up.
void die_while_writing(const fs::path& target) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const OutputFolder output(target, IfExists::kReplace, kMarker);
    write_bytes(output.staging() / "half", "half");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(OutputFolder, RemovesWhatDeadProcessesLeftForTheSameTarget) {
  const TempDir dir;
  die_while_writing(dir / "out");
  die_while_writing(dir / "other");
  const auto left = names_in(dir.path());
  ASSERT_EQ(left.size(), 2U);
  write_bytes(dir / ".out.lancet-notes" / "x", "not a staging folder");
  {
    OutputFolder output(dir / "out", IfExists::kError, kMarker);
    fill(output, "new");
    output.commit();
  }
  const auto now = names_in(dir.path());
  EXPECT_EQ(now.size(), 3U);
  EXPECT_TRUE(now.contains("out"));
  EXPECT_TRUE(now.contains(".out.lancet-notes"));
  EXPECT_TRUE(std::ranges::any_of(now, [](const std::string& name) { return name.starts_with(".other.lancet-"); }));
}

TEST(OutputFolder, RemovesALeftoverOfItsOwnProcessId) {
  // Containers give the same few process ids again and again.
  const TempDir dir;
  const std::string name = ".out.lancet-" + std::to_string(::getpid());
  write_bytes(dir / name / "half", "half");
  OutputFolder output(dir / "out", IfExists::kError, kMarker);
  EXPECT_EQ(output.staging(), dir / name);
  EXPECT_TRUE(names_in(output.staging()).empty());
}

TEST(OutputFolder, LeavesLivingNeighboursAlone) {
  const TempDir dir;
  OutputFolder first(dir / "out", IfExists::kError, kMarker);
  fill(first, "first");
  OutputFolder second(dir / "out", IfExists::kError, kMarker);
  fill(second, "second");
  EXPECT_NE(first.staging(), second.staging());
  first.commit();
  EXPECT_THROW(second.commit(), ConfigError);
  EXPECT_EQ(read_bytes(dir / "out" / kMarker), "first");
}

}  // namespace
}  // namespace lancet
