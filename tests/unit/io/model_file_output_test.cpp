#include "lancet/io/model_file_output.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/io/model_file_names.h"
#include "support/output_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

/// Writes an output with a model file to its place.
void write_model_output(const fs::path& named, std::string_view model, IfExists policy) {
  const OutputPlace place = output_place(named);
  check_output_place(place, policy, "/the/base");
  OutputFolder folder(place.folder, policy, kKind);
  fill(folder, "report");
  write_bytes(folder.staging() / kGgufFile, model);
  commit_output(folder, place);
}

TEST(ModelFileOutput, AGgufNameMeansAFileWithItsFolderBeside) {
  EXPECT_EQ(output_place("a/b").folder, "a/b");
  EXPECT_FALSE(output_place("a/b").model_file);
  const OutputPlace place = output_place("a/edited.gguf");
  EXPECT_EQ(place.folder, "a/edited.gguf.edits");
  EXPECT_EQ(place.model_file, "a/edited.gguf");
  EXPECT_EQ(place.named(), "a/edited.gguf");
  EXPECT_EQ(output_place("a/b").named(), "a/b");
}

TEST(ModelFileOutput, TheFileIsBesideItsFolderAfterTheCommit) {
  const TempDir dir;
  write_model_output(dir / "edited.gguf", "model", IfExists::kError);
  EXPECT_EQ(read_bytes(dir / "edited.gguf"), "model");
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"edited.gguf", "edited.gguf.edits"}));
  EXPECT_FALSE(fs::exists(dir / "edited.gguf.edits" / kGgufFile));
}

TEST(ModelFileOutput, IsReplacedWhereThatIsAllowed) {
  const TempDir dir;
  write_model_output(dir / "edited.gguf", "old", IfExists::kError);
  write_model_output(dir / "edited.gguf", "new", IfExists::kReplace);
  EXPECT_EQ(read_bytes(dir / "edited.gguf"), "new");
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"edited.gguf", "edited.gguf.edits"}));
}

TEST(ModelFileOutput, AFileThatCameMeanwhileIsKeptAndTheModelToo) {
  const TempDir dir;
  const OutputPlace place = output_place(dir / "edited.gguf");
  OutputFolder folder(place.folder, IfExists::kError, kKind);
  fill(folder, "report");
  write_bytes(folder.staging() / kGgufFile, "model");
  write_bytes(dir / "edited.gguf", "somebody else's");
  const std::string message = message_of<ConfigError>([&] { commit_output(folder, place); });
  EXPECT_NE(message.find("The edited model is complete in"), std::string::npos) << message;
  EXPECT_EQ(read_bytes(dir / "edited.gguf"), "somebody else's");
  EXPECT_EQ(read_bytes(dir / "edited.gguf.edits" / kGgufFile), "model");
}

std::string refusal_of(const fs::path& named) {
  return message_of<ConfigError>([&] { check_output_place(output_place(named), IfExists::kReplace, "/the/base"); });
}

TEST(ModelFileOutput, OnlyTheFileThatItsFolderDescribesIsReplaced) {
  const TempDir dir;
  const fs::path file = dir / "edited.gguf";
  write_bytes(file, "a model of somebody's");
  EXPECT_NE(refusal_of(file).find("is not the file that"), std::string::npos) << "no folder beside";
  fs::remove(file);
  write_model_output(file, "model", IfExists::kError);
  EXPECT_NO_THROW(check_output_place(output_place(file), IfExists::kReplace, "/the/base"));
  write_bytes(file, "modEl");
  EXPECT_NE(refusal_of(file).find("is not the file that"), std::string::npos) << "another one by now";
  fs::remove(file);
  fs::create_symlink(dir / "nowhere", file);
  EXPECT_NE(refusal_of(file).find("is a link or a folder"), std::string::npos);
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_NE(refusal_of(file).find("is a link or a folder"), std::string::npos);
}

/// As a kill between the two steps of a commit leaves an output.
void undo_move(const fs::path& file, std::string_view before) {
  fs::rename(file, fs::path(file.string() + ".edits") / kGgufFile);
  if (!before.empty()) write_bytes(file, before);
}

TEST(ModelFileOutput, AMoveThatAKillCutShortIsMadeUpFor) {
  const TempDir dir;
  const fs::path file = dir / "edited.gguf";
  write_model_output(file, "old", IfExists::kError);
  undo_move(file, "");
  EXPECT_EQ(existing_output(file).model_file, file);
  EXPECT_EQ(read_bytes(file), "old");
  write_model_output(file, "new", IfExists::kReplace);
  undo_move(file, "old");
  EXPECT_EQ(existing_output(dir / "edited.gguf.edits").model_file, file);
  EXPECT_EQ(read_bytes(file), "new");
  undo_move(file, "old");
  EXPECT_NO_THROW(check_output_place(output_place(file), IfExists::kReplace, "/the/base"));
  EXPECT_EQ(read_bytes(file), "new");
  undo_move(file, "neither");
  EXPECT_THROW(existing_output(file), ConfigError);
  EXPECT_EQ(read_bytes(file), "neither");
  EXPECT_EQ(read_bytes(dir / "edited.gguf.edits" / kGgufFile), "new");
}

TEST(ModelFileOutput, AFolderThatOnlyHasSuchANameKeepsItsModel) {
  const TempDir dir;
  const fs::path folder = dir / "edited.gguf.edits";
  fs::create_directories(folder);
  write_bytes(folder / kGgufFile, "model");
  EXPECT_EQ(existing_output(folder).folder, folder);
  EXPECT_TRUE(fs::exists(folder / kGgufFile));
}

TEST(ModelFileOutput, AnExistingOneIsFoundByItsFileAndByItsFolder) {
  const TempDir dir;
  const fs::path file = dir / "edited.gguf", folder = dir / "edited.gguf.edits";
  EXPECT_EQ(existing_output(file).folder, file);  // nothing is there
  write_bytes(file, "a model without edits");
  EXPECT_EQ(existing_output(file).folder, file);
  fs::remove(file);
  write_model_output(file, "model", IfExists::kError);
  for (const fs::path& named : {file, folder, fs::path(folder.string() + "/")}) {
    EXPECT_EQ(existing_output(named).folder, folder) << named;
    EXPECT_EQ(existing_output(named).model_file, file) << named;
  }
  EXPECT_EQ(existing_output(dir.path()).folder, dir.path());
}

TEST(ModelFileOutput, NeitherPlaceMayOverlapTheModel) {
  const TempDir dir;
  fs::create_directories(dir / "model");
  const auto refused = [&](const fs::path& named, const fs::path& model) {
    return !message_of<ConfigError>([&] { check_apart(output_place(named), model); }).empty();
  };
  EXPECT_TRUE(refused(dir / "model" / "edited.gguf", dir / "model"));
  EXPECT_TRUE(refused(dir / "base.gguf", dir / "base.gguf"));
  EXPECT_NO_THROW(check_apart(output_place(dir / "edited.gguf"), dir / "base.gguf"));
}

}  // namespace
}  // namespace lancet
