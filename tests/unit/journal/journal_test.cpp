#include "lancet/journal/journal.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "journal_support.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

using namespace lancet::testing;

Journal read_back(const Journal& journal) {
  const TempDir folder;
  write_journal(folder, journal.text());
  return Journal::read(folder.path());
}

std::vector<std::string> standing(const Journal& journal) {
  std::vector<std::string> ids;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits) ids.push_back(edit.request.id);
  return ids;
}

TEST(Journal, ComesBackAsItWasWritten) {
  const Journal journal = some_journal(), again = read_back(journal);
  EXPECT_EQ(again.text(), journal.text());
  EXPECT_EQ(again.base().weights, "aa");
  EXPECT_EQ(again.base().config, "bb");
  EXPECT_EQ(again.base().tokenizer, "cc");
  EXPECT_EQ(again.base().folder, "/models/x");
  EXPECT_EQ(again.settings(), journal.settings());
  EXPECT_EQ(again.settings().at(0).contexts, (std::vector<std::string>{"{}", "I am. {}"}));
  ASSERT_EQ(again.batches().size(), 1u);
  const BatchEntry &batch = again.batches()[0], expected = some_batch({"a", "b"});
  EXPECT_EQ(batch.when, expected.when);
  EXPECT_EQ(batch.columns, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(batch.changes, expected.changes);
  EXPECT_EQ(batch.solved, expected.solved);
  EXPECT_EQ(batch.weights.at(0).weight, expected.weights[0].weight);
  EXPECT_EQ(batch.weights.at(0).hash, expected.weights[0].hash);
  EXPECT_EQ(batch.report.dump(), expected.report.dump());
  ASSERT_EQ(batch.edits.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(to_json_line(batch.edits[i].request), to_json_line(expected.edits[i].request));
    EXPECT_EQ(batch.edits[i].prompt_ids, expected.edits[i].prompt_ids);
    EXPECT_EQ(batch.edits[i].target_ids, expected.edits[i].target_ids);
    EXPECT_EQ(batch.edits[i].lookup, 1);
  }
  EXPECT_EQ(again.finish(), "fedcba9876543210fedcba9876543210");
  ASSERT_EQ(again.undone().size(), 1u);
  EXPECT_EQ(again.undone()[0].edits, (std::vector<std::string>{"c"}));
  ASSERT_EQ(again.measured().size(), 1u);
  EXPECT_EQ(again.measured().at("a").after.at("efficacy"), 0.75);
  EXPECT_EQ(again.measured().at("a").success, std::optional(true));
  EXPECT_EQ(again.measured_on(), "the weights");
}

TEST(Journal, IsOnlyAddedTo) {
  Journal journal({.weights = "aa"});
  std::string before = journal.text();
  const auto expect_longer = [&](const char* what) {
    const std::string after = journal.text();
    const size_t n_kept = lines_of(before).size() - 1;  // all but the end
    ASSERT_EQ(lines_of(after).size(), n_kept + 2) << what;
    const size_t kept = before.rfind('\n', before.size() - 2) + 1;
    EXPECT_EQ(after.substr(0, kept), before.substr(0, kept)) << what;
    EXPECT_EQ(read_back(journal).text(), after) << what;
    before = after;
  };
  journal.add_setting({.method = "memit"});
  expect_longer("setting");
  journal.add_batch(some_batch({"a"}));
  expect_longer("batch");
  journal.add_measure("it", {}, {{"a", some_measure(1)}});
  expect_longer("measure");
  journal = read_back(journal);
  journal.add_finish("0");
  expect_longer("finish");
  journal.undo({.keeps = 0, .edits = {"a"}});
  expect_longer("undo");
  journal.add_batch(some_batch({"a"}));
  expect_longer("the same batch again");
}

TEST(Journal, KnowsASettingThatItHas) {
  Journal journal({});
  EXPECT_EQ(journal.add_setting({.method = "memit"}), 0u);
  EXPECT_EQ(journal.add_setting({.method = "memit", .dtype = "f32"}), 1u);
  const std::string before = journal.text();
  EXPECT_EQ(journal.add_setting({.method = "memit"}), 0u);
  EXPECT_EQ(journal.text(), before);
}

TEST(Journal, TakesBatchesAway) {
  Journal journal({});
  journal.add_setting({.method = "memit"});
  for (const char* id : {"a", "b", "c"}) journal.add_batch(some_batch({id, std::string(id) + "2"}));
  journal.add_measure("it", {}, {{"a", some_measure(1)}, {"b", some_measure(1)}, {"b2", some_measure(1)}});
  journal.add_finish("0");
  journal.undo({.mode = UndoMode::kDowndate, .keeps = 1, .edits = {"b"}, .approximation = "nothing"});
  EXPECT_EQ(standing(journal), (std::vector<std::string>{"a", "a2"}));
  EXPECT_TRUE(journal.has("a"));
  EXPECT_FALSE(journal.has("b"));
  EXPECT_FALSE(journal.has("c2"));
  EXPECT_EQ(journal.finish(), "");
  // what comes back in later batches keeps what was measured of it
  EXPECT_TRUE(journal.measured().contains("a") && journal.measured().contains("b2"));
  EXPECT_FALSE(journal.measured().contains("b"));
  journal.add_batch(some_batch({"b2"}));
  journal.add_batch(some_batch({"b"}));  // the id is free again
  EXPECT_EQ(standing(journal), (std::vector<std::string>{"a", "a2", "b2", "b"}));
  journal.undo({.keeps = 0, .edits = {"a", "a2", "b", "b2"}});
  EXPECT_TRUE(journal.batches().empty());
  EXPECT_TRUE(journal.measured().empty());
  const Journal again = read_back(journal);
  ASSERT_EQ(again.undone().size(), 2u);
  EXPECT_EQ(again.undone()[0].mode, UndoMode::kDowndate);
  EXPECT_EQ(again.undone()[0].approximation, "nothing");
  EXPECT_EQ(again.undone()[1].mode, UndoMode::kLast);
  EXPECT_TRUE(again.batches().empty());
}

TEST(Journal, SaysWhatWasTakenBackAsItWasEdited) {
  Journal journal({.weights = "aa"});
  journal.add_setting({.method = "memit"});
  EXPECT_TRUE(journal.undone_requests().empty());
  const auto batch_of = [](const std::string& id, const std::string& target) {
    BatchEntry batch = some_batch({id, "other-" + target});
    batch.edits[0] = some_edit(id, target);
    return batch;
  };
  for (const char* target : {"Rome", "Oslo"}) {  // the same id again, of another fact
    journal.add_batch(batch_of("a", target));
    journal.undo({.keeps = 0, .edits = {"a"}});
  }
  const TempDir folder;
  std::ofstream(folder.path() / kJournalFile) << journal.text();
  for (const Journal& each : {journal, Journal::read(folder.path())}) {
    const std::vector<std::vector<EditRequest>> undone = each.undone_requests();
    ASSERT_EQ(undone.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(undone[i].size(), 1u);
      EXPECT_EQ(undone[i][0].id, "a");
      EXPECT_EQ(undone[i][0].target, i == 0 ? "Rome" : "Oslo");
      EXPECT_EQ(undone[i][0].prompt.text, some_edit("a").request.prompt.text);
    }
  }
}

TEST(Journal, TheLastBatchesTakeTheirMeasuresAlong) {
  Journal journal({});
  journal.add_setting({});
  journal.add_batch(some_batch({"a"}));
  journal.add_batch(some_batch({"b"}));
  journal.add_measure("it", {}, {{"a", some_measure(1)}, {"b", some_measure(1)}});
  journal.undo({.mode = UndoMode::kLast, .keeps = 1});
  EXPECT_TRUE(journal.measured().contains("a"));
  EXPECT_FALSE(journal.measured().contains("b"));
}

/// What no reader would take is a caller's mistake, and changes nothing.
TEST(Journal, RefusesWhatItCouldNotRead) {
  Journal journal = some_journal();
  const std::string before = journal.text();
  const auto refuses = [&](const char* what, const auto& call) {
    EXPECT_THROW(call(), std::logic_error) << what;
    EXPECT_EQ(journal.text(), before) << what;
    EXPECT_EQ(standing(journal), (std::vector<std::string>{"a", "b"})) << what;
  };
  refuses("an id that stands", [&] { journal.add_batch(some_batch({"d", "a"})); });
  EXPECT_FALSE(journal.has("d"));  // which came before it
  refuses("an id twice in a batch", [&] { journal.add_batch(some_batch({"d", "d"})); });
  refuses("no edits", [&] { journal.add_batch(some_batch({})); });
  BatchEntry batch = some_batch({"d"});
  batch.setting = 1;
  refuses("no setting", [&] { journal.add_batch(batch); });
  batch = some_batch({"d"});
  batch.columns = {1};
  refuses("no such edit", [&] { journal.add_batch(batch); });
  batch = some_batch({"d"});
  batch.edits[0].lookup = 3;
  refuses("no such place", [&] { journal.add_batch(batch); });
  refuses("too many", [&] { journal.undo({.keeps = 2}); });
  refuses("not after", [&] { journal.undo({.keeps = 1, .edits = {"a"}}); });
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refuses("not finite", [&] { journal.add_measure("it", {}, {{"a", some_measure(nan)}}); });
  refuses("measures of others", [&] { journal.add_measure("it", {}, {{"c", some_measure(1)}}); });
}

TEST(Journal, IsTheSameOnceWrittenWhateverItIsGiven) {
  Journal journal({.folder = "no UTF-8: \xff, and \x01"});
  EXPECT_EQ(journal.base().folder, read_back(journal).base().folder);
  journal.add_setting({.method = std::string("\0\xc3", 2)});
  journal.add_setting({.method = std::string("\0\xc3", 2)});
  EXPECT_EQ(journal.settings(), read_back(journal).settings());
  BatchEntry batch = some_batch({"a"});
  auto& growth = batch.report["growth"] = nlohmann::ordered_json::array();
  for (const double number : {std::numeric_limits<double>::infinity(), -0.0, 5e-324}) growth.push_back({"w", number});
  journal.add_batch(batch);
  const Journal again = read_back(journal);
  EXPECT_EQ(again.text(), journal.text());
  EXPECT_EQ(again.batches()[0].report.dump(), journal.batches()[0].report.dump());
  EXPECT_TRUE(again.batches()[0].report["growth"][0][1].is_null());
  EXPECT_EQ(again.batches()[0].report["growth"][2][1], 5e-324);
}

TEST(Journal, NamesTheWeightsThatWereMeasuredWhileTheyStand) {
  Journal journal({});
  journal.add_setting({});
  journal.add_batch(some_batch({"a"}));
  journal.add_measure("it", {{"w", "h"}}, {{"a", some_measure(1)}});
  ASSERT_EQ(read_back(journal).measured_weights().size(), 1u);
  EXPECT_EQ(read_back(journal).measured_weights()[0].hash, "h");
  journal.add_batch(some_batch({"b"}));
  EXPECT_TRUE(journal.measured_weights().empty());
}

TEST(Journal, ForgetsABatchThatNobodyWrote) {
  Journal journal({});
  journal.add_setting({});
  journal.add_batch(some_batch({"a"}));
  journal.add_finish("0");
  const std::string before = journal.text();
  journal.add_batch(some_batch({"b"}));
  journal.add_finish("1");
  journal.add_measure("it", {}, {{"b", some_measure(1)}});
  journal.forget_last_batch();
  EXPECT_EQ(journal.text(), before);
  EXPECT_EQ(journal.finish(), "0");
  EXPECT_FALSE(journal.has("b"));
  EXPECT_TRUE(journal.measured().empty());
  EXPECT_EQ(standing(journal), std::vector<std::string>{"a"});
  journal.forget_last_batch();
  EXPECT_THROW(journal.forget_last_batch(), std::logic_error);
}

TEST(Journal, ReportsOnTheLastBatchAgain) {
  Journal journal({});
  journal.add_setting({});
  EXPECT_THROW(journal.set_last_report(some_report(1)), std::logic_error) << "no batch";
  journal.add_batch(some_batch({"a"}));
  Journal other = journal;
  const nlohmann::ordered_json again = some_report(1, /*seconds=*/2);
  journal.set_last_report(again);
  EXPECT_EQ(journal.batches().back().report, again);
  const std::string text = journal.text();
  EXPECT_THROW(journal.set_last_report(some_report(2)), std::logic_error) << "of two edits";
  EXPECT_THROW(journal.set_last_report({{"n", 3}}), std::logic_error) << "no report";
  EXPECT_EQ(journal.text(), text);
  BatchEntry batch = some_batch({"a"});
  batch.report = again;
  other.forget_last_batch();
  other.add_batch(batch);
  EXPECT_EQ(journal.text(), other.text());
  journal.add_finish("0");
  EXPECT_THROW(journal.set_last_report(some_report(1)), std::logic_error) << "something came after it";
}

TEST(Journal, IsFoundInAnOutputOrItsEdits) {
  const TempDir folder;
  EXPECT_EQ(find_journal(folder.path()), std::nullopt);
  std::filesystem::create_directories(folder / kEditsFolder);
  write_text_file(folder / kEditsFolder / kJournalFile, some_journal().text());
  EXPECT_EQ(find_journal(folder.path()), folder / kEditsFolder);
  EXPECT_EQ(find_journal(folder / kEditsFolder), folder / kEditsFolder);
  EXPECT_EQ(find_journal(folder / "nowhere"), std::nullopt);
}

TEST(Journal, TellsTheTime) {
  const std::string now = utc_now();
  ASSERT_EQ(now.size(), 20u);
  for (size_t i = 0; i < now.size(); ++i) {
    const char pattern = std::string_view("0000-00-00T00:00:00Z")[i];
    EXPECT_TRUE(pattern == '0' ? '0' <= now[i] && now[i] <= '9' : now[i] == pattern) << now;
  }
}

}  // namespace
}  // namespace lancet
