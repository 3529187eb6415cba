#include "lancet/edit_history/edit_history.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "support/history_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

struct EditHistoryTest : public ::testing::Test {
  /// Two batches, three edits, and a finish.
  EditHistory some_history() const {
    EditHistory history({.weights = "aa"});
    history.journal().add_setting({.method = "memit"});
    history.add(history_entry({"a", "b"}), history_batch(2, 1), tiny.config);
    history.add(history_entry({"c"}), history_batch(1, 2), tiny.config);
    history.set_finish(finish(), tiny.config);
    return history;
  }

  static std::vector<WeightChanges> finish() {
    return {{kDown2, {DenseDelta{torch::full({32, 48}, 0.5, torch::kDouble)}}}};
  }

  fs::path changes(const std::string& hash) const { return folder.path() / "changes" / (hash + ".safetensors"); }
  fs::path solved(const std::string& hash) const { return folder.path() / "solved" / (hash + ".safetensors"); }
  EditHistory load() const { return EditHistory::load(folder.path(), tiny.config); }

  void expect_refused(const std::string& words, const std::string& what = "") const {
    try {
      load();
      ADD_FAILURE() << what << ": expected a CheckpointError with '" << words << "', got none";
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << what << ": " << error.what();
    }
  }

  TinyModel tiny;
  TempDir folder;
};

TEST_F(EditHistoryTest, ComesBackBitByBit) {
  const EditHistory history = some_history();
  history.write(folder.path(), tiny.config);
  const EditHistory again = load();
  EXPECT_EQ(again.journal().text(), history.journal().text());
  ASSERT_EQ(again.batches().size(), 2u);
  expect_same_batch(again.batches()[0], history_batch(2, 1));
  expect_same_batch(again.batches()[1], history_batch(1, 2));
  expect_same_changes(again.finish(), finish());
  const auto n_files = [&](const char* in) {
    return std::distance(fs::directory_iterator(folder / in), fs::directory_iterator());
  };
  EXPECT_EQ(n_files("changes"), 3);
  EXPECT_EQ(n_files("solved"), 2);
  // and written again, the same bytes
  const TempDir other;
  again.write(other.path(), tiny.config);
  for (const auto& file : fs::recursive_directory_iterator(folder.path())) {
    if (!file.is_regular_file()) continue;
    const std::string again_text = read_text_file(other.path() / fs::relative(file.path(), folder.path()), "test");
    EXPECT_EQ(again_text, read_text_file(file.path(), "test")) << file.path();
  }
}

TEST_F(EditHistoryTest, HasAllChangesInTheirOrder) {
  const EditHistory history = some_history();
  const EditedBatch first = history_batch(2, 1), second = history_batch(1, 2);
  std::vector<WeightChanges> expected = first.changes;
  for (size_t i = 0; i < 2; ++i)
    expected[i].deltas.insert(expected[i].deltas.end(), second.changes[i].deltas.begin(),
                              second.changes[i].deltas.end());
  expect_same_changes(history.changes(), expected);
  expected[0].deltas.push_back(finish()[0].deltas[0]);
  expect_same_changes(history.all_changes(), expected);
  std::vector<std::string> ids;
  for (const EditRequest& request : history.journal().requests()) ids.push_back(request.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(EditHistoryTest, LeadsToTheStateAfterTheLastBatch) {
  const EditHistory history = some_history();
  EditorState fresh;
  fresh.tensors["constant"] = torch::ones({2}, torch::kDouble);
  const EditorState state = history.state(fresh);
  EXPECT_EQ(state.edits, 3);
  EXPECT_TRUE(state.tensors.at("constant").equal(fresh.tensors["constant"]));
  EXPECT_TRUE(state.tensors.at("keys.1").equal(torch::cat(
      {history_batch(2, 1).state.replaced.at("keys.1"), history_batch(1, 2).state.appended.at("keys.1")}, 1)));
}

TEST_F(EditHistoryTest, KeepsWhatTheNextBatchesAreSolvedFromWhereNoneStood) {
  EditHistory history = some_history();
  history.undo({.keeps = 0, .edits = {"a", "b", "c"}});
  history.write(folder.path(), tiny.config);
  EditHistory again = load();
  EXPECT_TRUE(again.has_solved());
  again.add(history_entry({"d"}), history_batch(1, 1), tiny.config);
  again.write(folder.path(), tiny.config);
  ASSERT_TRUE(load().has_solved());
  expect_same_batch(load().batches()[0], history_batch(1, 1));
}

TEST_F(EditHistoryTest, TakesTheLastBatchesAway) {
  EditHistory history = some_history();
  history.undo({.keeps = 1, .edits = {"c"}});
  EXPECT_TRUE(history.finish().empty());
  expect_same_changes(history.all_changes(), history_batch(2, 1).changes);
  EXPECT_EQ(history.state({}).edits, 2);
  history.write(folder.path(), tiny.config);
  EditHistory again = load();
  expect_same_changes(again.all_changes(), history_batch(2, 1).changes);
  again.add(history_entry({"c"}), history_batch(1, 2), tiny.config);
  again.write(folder.path(), tiny.config);
  expect_same_changes(load().changes(), some_history().changes());
  EXPECT_THROW(again.undo({.keeps = 3}), std::logic_error);
  EXPECT_EQ(again.batches().size(), 2u);
  again.undo({.keeps = 0});
  EXPECT_TRUE(again.all_changes().empty());
  EXPECT_TRUE(again.journal().requests().empty());
}

TEST_F(EditHistoryTest, RefusedBatchesChangeNothing) {
  EditHistory history = some_history();
  EXPECT_THROW(history.add(history_entry({"a"}), history_batch(1, 3), tiny.config), std::logic_error);
  EXPECT_EQ(history.batches().size(), history.journal().batches().size());
  EXPECT_FALSE(history.finish().empty());
}

TEST_F(EditHistoryTest, OfAbsentSwappedOrDamagedDataIsRefused) {
  const EditHistory history = some_history();
  history.write(folder.path(), tiny.config);
  const std::vector<BatchEntry>& entries = history.journal().batches();
  const fs::path first = changes(entries[0].changes), second = changes(entries[1].changes),
                 last = changes(history.journal().finish()), own = solved(entries[0].solved),
                 others = solved(entries[1].solved);
  for (const fs::path& file : {first, second, last, own}) {
    fs::rename(file, folder / "away");
    expect_refused(file.string(), "absent");
    fs::rename(folder / "away", file);
  }
  for (const auto& [one, other] : {std::pair{first, second}, {second, last}, {own, others}}) {
    const std::string bytes = read_text_file(one, "test");
    fs::copy_file(other, one, fs::copy_options::overwrite_existing);
    expect_refused("files of edits/ were mixed up", one.string());
    write_text_file(one, bytes);
  }
  std::mt19937_64 random(20261123);
  for (const fs::path& file : {first, last, own}) {
    const std::string intact = read_text_file(file, "test");
    for (int i = 0; i < 100; ++i) {
      std::string bytes = intact;
      const size_t at = random() % (i % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 1500));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      std::ofstream(file, std::ios::binary) << bytes;
      try {
        load();
        EXPECT_EQ(intact[at], ' ') << file << ": byte " << at;  // what fills the header up
      } catch (const CheckpointError&) {
      }
    }
    std::ofstream(file, std::ios::binary) << intact.substr(0, intact.size() / 2);
    expect_refused(file.string(), "cut");
    write_text_file(file, intact);
  }
  EXPECT_NO_THROW(load());
}

TEST_F(EditHistoryTest, OfAnotherModelIsRefused) {
  some_history().write(folder.path(), tiny.config);
  for (const TinyShape& shape :
       {TinyShape{.n_layers = 2}, TinyShape{.d_model = 64}, TinyShape{.d_ffn = 64}, TinyShape{.n_layers = 1}}) {
    const TinyModel other(shape);
    EXPECT_THROW(EditHistory::load(folder.path(), other.config), CheckpointError) << shape.n_layers;
  }
}

/// Drops what the changes were solved from.
TEST_F(EditHistoryTest, OfChangesAloneComesBackWithoutTheRest) {
  const EditHistory history = some_history();
  history.write(folder.path(), tiny.config, {.parts = HistoryParts::kChanges});
  EXPECT_FALSE(fs::exists(folder / "solved"));
  const EditHistory again = load();
  EXPECT_FALSE(again.has_solved());
  expect_same_changes(again.all_changes(), history.all_changes());
  EXPECT_TRUE(again.batches()[0].systems.empty());
}

TEST_F(EditHistoryTest, LinksToWhatLiesThereAlready) {
  EditHistory history = some_history();
  history.write(folder.path(), tiny.config);
  const fs::path first = changes(history.journal().batches()[0].changes);
  history.add(history_entry({"d"}), history_batch(1, 4), tiny.config);
  const TempDir next(folder.path().parent_path());
  history.write(next.path(), tiny.config, {.earlier = folder.path()});
  EXPECT_TRUE(fs::equivalent(first, next.path() / "changes" / first.filename()));
  EXPECT_EQ(EditHistory::load(next.path(), tiny.config).journal().text(), history.journal().text());
}

/// A hash is what the journal says: it must not lead out of the folder.
TEST_F(EditHistoryTest, HashesThatArePathsAreRefused) {
  const EditHistory history = some_history();
  history.write(folder.path(), tiny.config);
  const std::string hash = history.journal().batches()[0].changes, solved_hash = history.journal().batches()[0].solved;
  fs::copy_file(changes(hash), folder / "x.safetensors");
  for (const std::string& name : {std::string("../x"), std::string("x"), folder.path().string() + "/x",
                                  std::string(32, '.'), std::string(32, 'g'), std::string("../") + hash.substr(3),
                                  std::string(31, '0'), std::string(32, 'A'), std::string()}) {
    for (const bool is_of_changes : {true, false}) {
      Journal journal({.weights = "aa"});
      journal.add_setting({.method = "memit"});
      BatchEntry entry = history_entry({"a", "b"});
      entry.changes = is_of_changes ? name : hash;
      entry.solved = is_of_changes ? solved_hash : name;
      journal.add_batch(entry);
      write_text_file(folder / kJournalFile, journal.text());
      expect_refused("expected 32 hexadecimal digits", name);
    }
  }
}

/// Refuses shapes that do not fit each other, each in a file whose hash is right.
TEST_F(EditHistoryTest, OfPartsThatDoNotFitIsRefused) {
  const auto expect_batch_refused = [&](const char* what, const auto& change) {
    EditedBatch batch = history_batch(2, 1);
    change(batch);
    EditHistory history({});
    history.journal().add_setting({});
    BatchEntry entry = history_entry({"a", "b"});
    history.add(entry, batch, tiny.config);
    history.write(folder.path(), tiny.config);
    expect_refused("", what);
  };
  expect_batch_refused("keys of another number",
                       [](EditedBatch& batch) { batch.systems[0].keys_FN = random_f64(48, 3); });
  expect_batch_refused("keys of another size",
                       [](EditedBatch& batch) { batch.systems[0].keys_FN = random_f64(47, 2); });
  expect_batch_refused("residuals of another size",
                       [](EditedBatch& batch) { batch.systems[1].residuals_DN = random_f64(31, 2); });
  expect_batch_refused("G of another size",
                       [](EditedBatch& batch) { batch.systems[1].inverse_gram_NN = random_f64(2, 3); });
  expect_batch_refused("edits of another number", [](EditedBatch& batch) { batch.systems[1].edits.pop_back(); });
  expect_batch_refused("an edit that is none", [](EditedBatch& batch) { batch.systems[1].edits[0] = {2}; });
  expect_batch_refused("an edit below", [](EditedBatch& batch) { batch.systems[1].edits[0] = {-1}; });
  expect_batch_refused("of a dense change", [](EditedBatch& batch) { batch.systems[0].change = 1; });
  expect_batch_refused("of no change", [](EditedBatch& batch) { batch.systems[0].change = 2; });
  expect_batch_refused("of an unchanged weight", [](EditedBatch& batch) {
    batch.systems[0].id = {WeightKind::kDown, 3};
  });
  expect_batch_refused("twice", [](EditedBatch& batch) { batch.systems.push_back(batch.systems[0]); });
  expect_batch_refused("a change of another shape", [](EditedBatch& batch) {
    batch.changes.push_back({{WeightKind::kDown, 3}, {LowRankDelta{random_f64(32, 2), random_f64(2, 47)}}});
  });
  expect_batch_refused("whole numbers", [](EditedBatch& batch) {
    batch.systems[0].keys_FN = torch::ones({48, 2}, torch::kLong);
  });
}

/// Columns that are no requests' and requests without columns: the journal and the data do not belong together.
TEST_F(EditHistoryTest, OfOtherColumnsThanItsChangesIsRefused) {
  EditHistory history({});
  history.journal().add_setting({});
  BatchEntry entry = history_entry({"a", "b"});
  entry.columns = {0, 1, 0};
  history.add(entry, history_batch(2, 1), tiny.config);
  history.write(folder.path(), tiny.config);
  expect_refused("columns");
}

}  // namespace
}  // namespace lancet
