#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "support/output_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

TEST(FolderManifest, ListsWhatItHolds) {
  const TempDir dir;
  write_output(dir / "out");
  EXPECT_EQ(
      nlohmann::json::parse(read_bytes(dir / "out" / kManifest)),
      (nlohmann::json{{"format", "lancet-manifest-1"}, {"holds", "edit"}, {"files", {"deep/er/file", "report.json"}}}));
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

TEST(FolderManifest, NamesWhatLancetDidNotWriteAndKeepsAllOfIt) {
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

TEST(FolderManifest, NamesOnlyAFewOfMany) {
  const TempDir dir;
  write_output(dir / "out");
  for (int i = 0; i < 9; ++i) write_bytes(dir / "out" / cat("note", i), "x");
  expect_says(refusal(dir / "out", IfExists::kReplace), {"got note0, note1, note2, note3, note4 and 4 more too"});
}

TEST(FolderManifest, KnowsAFolderByItsManifestAlone) {
  const TempDir dir;
  for (const std::string text : {"{}", "my report", R"({"format":"lancet-report-1"})"}) {
    write_bytes(dir / "out" / "report.json", text);
    expect_says(refusal(dir / "out", IfExists::kReplace), {"expected an output of lancet (edit)", "report.json"});
    expect_says(refusal(dir / "out", IfExists::kError), {"output.replace does not help"});
  }
  for (const std::string text :
       {R"({"format":"lancet-manifest-1","holds":"trace","files":["report.json"]})", "{", "[]", R"({"files":[]})"}) {
    write_bytes(dir / "out" / kManifest, text);
    expect_says(refusal(dir / "out", IfExists::kReplace), {"expected an output of lancet (edit)", "report.json"});
  }
  write_bytes(dir / "out" / kManifest, R"({"format":"lancet-manifest-1","holds":"edit","files":["report.json"]})");
  write_output(dir / "out", "new");
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "new");
}

TEST(FolderManifest, TakesPagesThatWereWrittenLater) {
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

TEST(FolderManifest, GoesOnWithARemovalThatWasCutShort) {
  const TempDir dir;
  write_output(dir / "out");
  fs::remove(dir / "out" / "deep" / "er" / "file");
  fs::remove(dir / "out" / "report.json");
  write_output(dir / "out", "new");
  EXPECT_EQ(read_bytes(dir / "out" / "report.json"), "new");
}

}  // namespace
}  // namespace lancet
