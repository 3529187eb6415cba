#include "lancet/io/unfinished_folder.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr const char* kManifest = "lancet-manifest.json";
const std::string kValueFile = std::string(32, 'a') + ".safetensors";

class UnfinishedFolderTest : public ::testing::Test {
 protected:
  /// Writes what a run leaves that was killed after its second batch.
  void write_whole() {
    make_unfinished(folder_);
    write_bytes(folder_ / kValueFile, "values");
    write_bytes(folder_ / ".lancet-7-0.tmp", "half");
    write_bytes(folder_ / ".progress.lancet-7" / "changes.safetensors", "half");
    OutputFolder progress(folder_ / kProgressFolder, IfExists::kError, kProgressKind);
    write_bytes(progress.staging() / "progress.json", "x");
    progress.commit();
  }

  std::string refusal() {
    return message_of<ConfigError>([&] { check_unfinished(folder_); });
  }

  TempDir dir_;
  fs::path folder_ = dir_ / "out.unfinished";
};

TEST_F(UnfinishedFolderTest, LiesBesideTheOutputHoweverThatIsWritten) {
  fs::create_directory(dir_ / "real");
  fs::create_directory_symlink(dir_ / "real", dir_ / "link");
  EXPECT_EQ(unfinished_folder(dir_ / "out"), folder_);
  EXPECT_EQ(unfinished_folder((dir_ / "out").string() + "/"), folder_);
  EXPECT_EQ(unfinished_folder(dir_ / "link"), dir_ / "real.unfinished");
}

TEST_F(UnfinishedFolderTest, ComesAndGoes) {
  check_unfinished(folder_);
  EXPECT_FALSE(fs::exists(folder_));
  write_whole();
  check_unfinished(folder_);
  make_unfinished(folder_);
  EXPECT_EQ(names_in(folder_),
            (std::set<std::string>{kManifest, kValueFile, ".lancet-7-0.tmp", ".progress.lancet-7", "progress"}));
  remove_unfinished(folder_);
  EXPECT_FALSE(fs::exists(folder_));
  remove_unfinished(folder_);  // another rank was first
}

TEST_F(UnfinishedFolderTest, TakesWhatAKillLeavesOfItsRemovalAndOfItsMaking) {
  write_whole();
  fs::remove(folder_ / "progress" / "progress.json");
  check_unfinished(folder_);
  fs::remove(folder_ / "progress" / kManifest);
  check_unfinished(folder_);
  for (const char* name : {"progress", ".progress.lancet-7", ".lancet-7-0.tmp"}) fs::remove_all(folder_ / name);
  fs::remove(folder_ / kValueFile);
  check_unfinished(folder_);
  fs::remove(folder_ / kManifest);
  check_unfinished(folder_);
  write_bytes(folder_ / ".lancet-7-1.tmp", "half a manifest");
  check_unfinished(folder_);
  write_whole();
  remove_unfinished(folder_);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(UnfinishedFolderTest, RefusesSomebodysFolderAndKeepsIt) {
  for (const std::string& name :
       {std::string("thesis.txt"), std::string(".git/config"), "cache/" + kValueFile, kValueFile}) {
    write_bytes(folder_ / name, "mine");
    expect_says(refusal(), {folder_.string(), name == kValueFile ? "files without lancet's" : name.substr(0, 5)});
    EXPECT_THROW(make_unfinished(folder_), ConfigError);
    remove_unfinished(folder_);
    EXPECT_EQ(read_bytes(folder_ / name), "mine");
    fs::remove_all(folder_);
  }
  write_bytes(folder_, "a file");
  expect_says(refusal(), {folder_.string(), "got something else"});
  fs::remove(folder_);
  fs::create_directory_symlink(dir_.path(), folder_);
  expect_says(refusal(), {"got something else"});
}

TEST_F(UnfinishedFolderTest, NamesWhatIsForeignInItsOwnAndKeepsIt) {
  for (const std::string name : {"notes.txt", "progress/notes.txt", "model/config.json"}) {
    write_whole();
    write_bytes(folder_ / name, "mine");
    expect_says(refusal(), {folder_.string(), name.starts_with("model") ? "model/" : name});
    remove_unfinished(folder_);
    EXPECT_EQ(read_bytes(folder_ / name), "mine");
    EXPECT_TRUE(fs::exists(folder_ / kValueFile));
    fs::remove_all(folder_);
  }
}

}  // namespace
}  // namespace lancet
