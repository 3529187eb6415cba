// What an interrupted run leaves, and who may go on from it.
#include "lancet/pipeline/edit_recorder.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/io/files.h"
#include "support/history_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;
using Batches = std::vector<std::vector<int64_t>>;

struct EditProgressTest : public ::testing::Test {
  /// One batch of an earlier job, "z", and `n` of this one's: of "a" and "b", of "c".
  EditHistory history(size_t n) const {
    EditHistory all({.weights = "aa"});
    all.journal().add_setting({.method = "memit"});
    all.add(history_entry({"z"}), history_batch(1, 1), tiny.config);
    const std::vector<std::vector<std::string>> ids{{"a", "b"}, {"c"}};
    for (size_t i = 0; i < n; ++i)
      all.add(history_entry(ids[i]), history_batch(static_cast<int64_t>(ids[i].size()), i + 2), tiny.config);
    return all;
  }

  EditProgress progress(size_t n) const {
    EditProgress made = progress_of(history(n), 1);
    for (size_t i = 0; i < n; ++i) made.batches[i].requests = kBatches[i];
    return made;
  }

  ProgressStore store(const std::string& setting = "s") const { return {folder.path() / "u", tiny.config, setting}; }

  static std::vector<EditRequest> requests_of(const std::vector<std::string>& ids) {
    std::vector<EditRequest> requests;
    for (const std::string& id : ids) requests.push_back(history_edit(id).request);
    return requests;
  }

  static inline const Batches kBatches{{0, 1}, {2}};
  const std::vector<EditRequest> requests = requests_of({"a", "b", "c"});
  TinyModel tiny;
  TempDir folder;
};

TEST_F(EditProgressTest, HasTheBatchesAfterThoseOfEarlierJobs) {
  const EditProgress made = progress_of(history(2), 1);
  ASSERT_EQ(made.batches.size(), 2u);
  EXPECT_EQ(made.batches[0].outcome.requests.size(), 2u);
  EXPECT_EQ(made.batches[0].outcome.columns, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(made.history.journal().batches().size(), 3u);
  EXPECT_EQ(progress_of(history(2)).batches.size(), 3u);
}

TEST_F(EditProgressTest, ComesBackToTheSameJob) {
  EXPECT_FALSE(store().load(kBatches, requests));
  store().save(progress(1), requests);
  store().save(progress(2), requests);  // takes the place of what was saved before
  const std::optional<EditProgress> again = store().load(kBatches, requests);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->batches.size(), 2u);
  EXPECT_EQ(again->batches[0].requests, kBatches[0]);
  EXPECT_EQ(again->batches[1].requests, kBatches[1]);
  EXPECT_EQ(again->history.journal().text(), history(2).journal().text());
  expect_same_batch(again->history.batches()[2], history_batch(1, 3));
}

TEST_F(EditProgressTest, GoesOnWhereLaterBatchesAreOthers) {
  store().save(progress(1), requests);
  const std::optional<EditProgress> again = store().load({{0, 1}, {3, 2}}, requests_of({"a", "b", "c", "d"}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->batches.size(), 1u);
}

TEST_F(EditProgressTest, IsNotAnotherJobs) {
  store().save(progress(2), requests);
  EXPECT_FALSE(store("another setting").load(kBatches, requests));
  EXPECT_FALSE(store().load({{0, 1}}, requests)) << "fewer batches than were finished";
  EXPECT_FALSE(store().load({{0}, {1, 2}}, requests)) << "cut otherwise";
  EXPECT_FALSE(store().load(kBatches, requests_of({"a", "x", "c"}))) << "another request";
}

TEST_F(EditProgressTest, IsNotTakenWhereAnythingOfItChanged) {
  store().save(progress(2), requests);
  const fs::path saved = folder.path() / "u" / "progress";
  const std::pair<const char*, std::string> parts[] = {{"progress.json", R"("content_hash":")"},
                                                       {"journal.jsonl", "subject "}};
  for (const auto& [file, part] : parts) {
    const std::string text = read_text_file(saved / file, "test");
    std::string changed = text;
    const size_t at = changed.rfind(part);
    ASSERT_NE(at, std::string::npos) << file;
    char& letter = changed[at + part.size()];
    letter = letter == 'a' ? 'b' : 'a';
    write_text_file(saved / file, changed);
    EXPECT_FALSE(store().load(kBatches, requests)) << file;
    write_text_file(saved / file, text);
    EXPECT_TRUE(store().load(kBatches, requests)) << file;
  }
}

}  // namespace
}  // namespace lancet
