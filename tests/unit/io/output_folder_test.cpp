#include <gtest/gtest.h>
#include <unistd.h>

#include "lancet/core/error.h"
#include "support/output_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

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
    OutputFolder output(dir / "a" / "b" / "out", IfExists::kError, kKind);
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
    const OutputFolder output(dir / "out", IfExists::kError, kKind);
    fill(output, "new");
    EXPECT_EQ(names_in(dir.path()).size(), 1U);
  }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(OutputFolder, ReplacesAFolderOfItsOwn) {
  const TempDir dir;
  {
    OutputFolder old(dir / "out", IfExists::kError, kKind);
    fill(old, "old");
    write_bytes(old.staging() / "old-file", "old");
    old.commit();
  }
  OutputFolder output(dir / "out", IfExists::kReplace, kKind);
  fill(output, "new");
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "old");
  output.commit();
  EXPECT_EQ(names_in(dir / "out"), (std::set<std::string>{"report.json", "deep", kManifest}));
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

TEST(OutputFolder, KeepsTheOldFolderWithoutCommit) {
  const TempDir dir;
  write_output(dir / "out");
  { const OutputFolder output(dir / "out", IfExists::kReplace, kKind); }
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "old");
}

TEST(OutputFolder, ReplacesAnEmptyFolderAndMakesAnAbsentOne) {
  const TempDir dir;
  fs::create_directory(dir / "empty");
  for (const char* name : {"empty", "absent"}) {
    OutputFolder output(dir / name, IfExists::kReplace, kKind);
    fill(output, "new");
    output.commit();
    EXPECT_EQ(read_bytes(dir / name / "report.json"), "new");
  }
}

TEST(OutputFolder, RefusesAnExistingTargetUnlessToldToReplace) {
  const TempDir dir;
  write_output(dir / "out");
  expect_says(refusal(dir / "out", IfExists::kError), {(dir / "out").string(), "output.replace: true"});
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

TEST(OutputFolder, RefusesToReplaceSomebodysFolder) {
  const TempDir dir;
  write_bytes(dir / "thesis" / "chapter1.tex", "years of work");
  const std::string message = refusal(dir / "thesis", IfExists::kReplace);
  expect_says(message, {(dir / "thesis").string(), "got one with chapter1.tex", "name another folder"});
  EXPECT_EQ(message.find("remove"), std::string::npos);  // it may be the model's own folder
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
  check_output_target(dir / "a" / "b", IfExists::kError, kKind);
  EXPECT_TRUE(names_in(dir.path()).empty());
  write_bytes(dir / "out" / "x", "x");
  EXPECT_THROW(check_output_target(dir / "out", IfExists::kError, kKind), ConfigError);
  EXPECT_THROW(check_output_target(dir / "out", IfExists::kReplace, kKind), ConfigError);
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
      OutputFolder output(name, IfExists::kReplace, kKind);
      EXPECT_EQ(output.target(), root / "out") << name;
      fill(output, name);
      output.commit();
      EXPECT_EQ(read_bytes(root / "out" / "report.json"), name);
    }
  });
  EXPECT_EQ(names_in(root), std::set<std::string>{"out"});
}

TEST(OutputFolder, StaysAtItsPlaceWhenTheCurrentFolderChanges) {
  const TempDir dir;
  fs::create_directory(dir / "elsewhere");
  inside(dir.path(), [&] {
    OutputFolder output("out", IfExists::kError, kKind);
    fs::current_path("elsewhere");
    fill(output, "new");
    output.commit();
  });
  EXPECT_TRUE(fs::exists(dir / "out" / "report.json"));
}

TEST(OutputFolder, ReplacesTheFolderBehindALinkAndKeepsTheLink) {
  const TempDir dir;
  write_output(dir / "disk" / "real");
  fs::create_directory_symlink(dir / "disk" / "real", dir / "link");
  OutputFolder output(dir / "link", IfExists::kReplace, kKind);
  fill(output, "new");
  output.commit();
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(read_bytes(dir / "disk" / "real" / "report.json"), "new");
}

TEST(OutputFolder, LooksAgainAtCommit) {
  const TempDir dir;
  for (const IfExists policy : {IfExists::kError, IfExists::kReplace}) {
    OutputFolder output(dir / "out", policy, kKind);
    fill(output, "new");
    write_bytes(dir / "out" / "chapter1.tex", "came into being since");
    expect_says(message_of<ConfigError>([&] { output.commit(); }), {(dir / "out").string()});
    EXPECT_EQ(names_in(dir / "out"), std::set<std::string>{"chapter1.tex"});
    fs::remove_all(dir / "out");
  }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

}  // namespace
}  // namespace lancet
