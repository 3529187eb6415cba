#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "io_support.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/output_folder.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr OutputKind kKind{"edit", "report.json", "lancet-report-"};
constexpr const char* kManifest = "lancet-manifest.json";

void fill(const OutputFolder& output, std::string_view text) {
  write_bytes(output.staging() / "report.json", text);
  write_bytes(output.staging() / "deep" / "er" / "file", text);
}

/// A finished output.
void write_output(const fs::path& target, std::string_view text = "old") {
  OutputFolder output(target, IfExists::kReplace, kKind);
  fill(output, text);
  output.commit();
}

std::string refusal(const fs::path& target, IfExists policy) {
  return message_of<ConfigError>([&] { OutputFolder(target, policy, kKind); });
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

TEST(OutputFolder, ListsWhatItHolds) {
  const TempDir dir;
  write_output(dir / "out");
  EXPECT_EQ(
      nlohmann::json::parse(read_bytes(dir / "out" / kManifest)),
      (nlohmann::json{{"format", "lancet-manifest-1"}, {"holds", "edit"}, {"files", {"deep/er/file", "report.json"}}}));
}

TEST(OutputFolder, KeepsTheOldFolderWithoutCommit) {
  const TempDir dir;
  write_output(dir / "out");
  { const OutputFolder output(dir / "out", IfExists::kReplace, kKind); }
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "old");
}

/// What each puts into a folder that lancet wrote, and how the error names it.
struct Foreign {
  const char* title;
  std::function<void(const fs::path&)> put;
  const char* named;
};

const std::vector<Foreign> kForeign{
    {"a file", [](const fs::path& out) { write_bytes(out / "thesis.txt", "years of work"); }, "got thesis.txt too"},
    {"a file below", [](const fs::path& out) { write_bytes(out / "deep" / "own", "x"); }, "got deep/own too"},
    {"a folder", [](const fs::path& out) { write_bytes(out / ".git" / "refs" / "main", "x"); }, "got .git/ too"},
    {"an empty folder", [](const fs::path& out) { fs::create_directory(out / "plans"); }, "got plans/ too"},
    {"a link", [](const fs::path& out) { fs::create_symlink("/", out / "link"); }, "got link too"},
    {"a link in a file's place",
     [](const fs::path& out) {
       fs::rename(out / "report.json", out.parent_path() / "moved");
       fs::create_symlink("../moved", out / "report.json");
     },
     "got report.json too"},
    {"a link in a folder's place",
     [](const fs::path& out) {
       fs::rename(out / "deep", out.parent_path() / "moved");
       fs::create_directory_symlink("../moved", out / "deep");
     },
     "got deep too"},
    {"a pipe", [](const fs::path& out) { ASSERT_EQ(::mkfifo((out / "pipe").c_str(), 0600), 0); }, "got pipe too"},
};

TEST(OutputFolder, NamesWhatLancetDidNotWriteAndKeepsAllOfIt) {
  for (const Foreign& foreign : kForeign) {
    const TempDir dir;
    write_output(dir / "out");
    OutputFolder early(dir / "out", IfExists::kReplace, kKind);
    fill(early, "new");
    foreign.put(dir / "out");
    const auto before = names_in(dir / "out");
    expect_says(refusal(dir / "out", IfExists::kReplace), {(dir / "out").string(), foreign.named, "does not delete"});
    // hours later: one that found nothing when it began
    expect_says(message_of<ConfigError>([&] { early.commit(); }), {foreign.named});
    EXPECT_EQ(names_in(dir / "out"), before) << foreign.title;
    EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "old") << foreign.title;
  }
}

TEST(OutputFolder, NamesOnlyAFewOfMany) {
  const TempDir dir;
  write_output(dir / "out");
  for (int i = 0; i < 9; ++i) write_bytes(dir / "out" / cat("note", i), "x");
  expect_says(refusal(dir / "out", IfExists::kReplace), {"got note0, note1, note2, note3, note4 and 4 more too"});
}

TEST(OutputFolder, KnowsAFolderByWhatItsFilesSayAndNotByTheirNames) {
  const TempDir dir;
  for (const std::string text : {"{}", "my report", R"({"format":"other-1"})", R"(["lancet-report-1"])"}) {
    write_bytes(dir / "out" / "report.json", text);
    expect_says(refusal(dir / "out", IfExists::kReplace), {"expected an output of lancet (edit)", "report.json"});
    expect_says(refusal(dir / "out", IfExists::kError), {"output.replace does not help"});
  }
  write_bytes(dir / "out" / "report.json", R"({"format":"lancet-report-1"})");
  for (const std::string text :
       {R"({"format":"lancet-manifest-1","holds":"trace","files":["report.json"]})", "{", "[]", R"({"files":[]})"}) {
    write_bytes(dir / "out" / kManifest, text);
    expect_says(refusal(dir / "out", IfExists::kReplace), {"expected an output of lancet (edit)", "report.json"});
  }
  write_bytes(dir / "out" / kManifest, R"({"format":"lancet-manifest-1","holds":"edit","files":["report.json"]})");
  write_output(dir / "out", "new");
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "new");
}

TEST(OutputFolder, ReplacesOutputsFromBeforeThereWereManifests) {
  const TempDir dir;
  const auto write_edit = [&](const fs::path& out) {
    for (const char* name :
         {"job.yaml", "report.html", "metrics.csv", "requests.jsonl", "config.json", "tokenizer.json",
          "delta/delta.safetensors", "state/state.safetensors", "part-1.safetensors"})
      write_bytes(out / name, "x");
    write_bytes(out / "model.safetensors.index.json", R"({"weight_map":{"w":"part-1.safetensors"}})");
    write_bytes(out / "report.json", R"({"format":"lancet-report-1","metrics":{}})");
  };
  write_edit(dir / "out");
  write_output(dir / "out", "new");
  EXPECT_EQ(names_in(dir / "out"), (std::set<std::string>{"report.json", "deep", kManifest}));

  write_edit(dir / "mixed");
  write_bytes(dir / "mixed" / "part-2.safetensors", "not in the index");
  write_bytes(dir / "mixed" / "delta" / "notes.txt", "x");
  expect_says(refusal(dir / "mixed", IfExists::kReplace), {"got delta/notes.txt, part-2.safetensors too"});

  constexpr OutputKind kCompare{"compare", "compare.json", "lancet-compare-"};
  write_bytes(dir / "all" / "compare.json", R"({"format":"lancet-compare-1","methods":[{"label":"memit"}]})");
  for (const char* name : {"comparison.html", "job.yaml", "memit/report.json", "memit/metrics.csv"})
    write_bytes(dir / "all" / name, "x");
  { const OutputFolder output(dir / "all", IfExists::kReplace, kCompare); }
  write_bytes(dir / "all" / "rome" / "report.json", "of nobody");
  expect_says(message_of<ConfigError>([&] { OutputFolder(dir / "all", IfExists::kReplace, kCompare); }),
              {"got rome/ too"});
}

TEST(OutputFolder, TakesPagesThatWereWrittenLater) {
  const TempDir dir;
  write_output(dir / "out");
  const std::vector<fs::path> pages{dir / "out" / "report.html", dir / "out" / "deep" / "page.html",
                                    dir / "elsewhere.html"};
  for (const fs::path& page : pages) write_bytes(page, "x");
  note_written(dir / "out", pages);
  write_output(dir / "out", "new");
  EXPECT_EQ(names_in(dir / "out"), (std::set<std::string>{"report.json", "deep", kManifest}));
  EXPECT_TRUE(fs::exists(dir / "elsewhere.html"));
  note_written(dir.path(), pages);  // no folder of lancet's
  EXPECT_FALSE(fs::exists(dir / kManifest));
}

TEST(OutputFolder, GoesOnWithARemovalThatWasCutShort) {
  const TempDir dir;
  write_output(dir / "out");
  fs::remove(dir / "out" / "deep" / "er" / "file");
  fs::remove(dir / "out" / "report.json");
  write_output(dir / "out", "new");
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "new");
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

TEST(OutputFolder, RemovesWhatDeadProcessesLeftForTheSameTarget) {
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

/// The id of a process that is gone.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(OutputFolder, RemovesAnEarlierTargetThatAKilledRunHadReplaced) {
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

TEST(OutputFolder, PutsBackATargetThatAKilledRunHadTakenAway) {
  const TempDir dir;
  write_output(dir / "out", "the only copy");
  const fs::path aside = dir / cat(".out.lancet-old-", dead_process());
  fs::rename(dir / "out", aside);
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
    const OutputLock first(dir / "a" / "out");
    expect_says(message_of<ConfigError>([&] { OutputLock(dir / "a" / "out/"); }),
                {(dir / "a" / "out").string(), cat("process ", ::getpid(), " on "), "wait for its end"});
    const OutputLock other(dir / "a" / "other");
  }
  EXPECT_TRUE(names_in(dir / "a").empty());
  write_bytes(dir / "a" / ".out.lancet-lock", "process 1 on a host, killed");
  { const OutputLock next(dir / "a" / "out"); }
  EXPECT_TRUE(names_in(dir / "a").empty());
}

TEST(OutputLock, SaysWhereNothingCanBeWritten) {
  for (const fs::path target : {"/proc/out", "/sys/out", "/proc/self/deep/out"})
    expect_says(message_of<CheckpointError>([&] { OutputLock lock(target); }), {target.parent_path().string()});
}

TEST(OutputFolder, RemovesALeftoverOfItsOwnProcessId) {
  // Containers give the same few process ids again and again.
  const TempDir dir;
  const std::string name = ".out.lancet-" + std::to_string(::getpid());
  write_bytes(dir / name / "half", "half");
  OutputFolder output(dir / "out", IfExists::kError, kKind);
  EXPECT_EQ(output.staging(), dir / name);
  EXPECT_TRUE(names_in(output.staging()).empty());
}

TEST(OutputFolder, LeavesLivingNeighboursAlone) {
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
