// Journals that were cut, changed, mixed up or forged: each is refused by a text that says which line is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "journal_support.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

using namespace lancet::testing;

std::string line_text(size_t index) { return cat(": line ", index + 1, ": "); }

struct DamagedJournal : public ::testing::Test {
  void expect_refused(const std::string& changed, const std::string& words, const std::string& what) const {
    const std::string message = refusal_of(folder, changed);
    EXPECT_NE(message.find(words), std::string::npos) << what << ": expected '" << words << "', got: " << message;
    EXPECT_NE(message.find(kJournalFile), std::string::npos) << message;
    EXPECT_NE(message.find("take the folder edits/ from a copy"), std::string::npos) << message;
  }

  /// Which line byte `at` stands in; a line's end is its own.
  size_t line_at(size_t at) const {
    return static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n'));
  }

  TempDir folder;
  const std::string text = some_journal().text();
};

TEST_F(DamagedJournal, IsReadWhole) { EXPECT_EQ(refusal_of(folder, text), ""); }

TEST_F(DamagedJournal, CutAnywhere) {
  for (size_t n = 0; n < text.size(); ++n) {
    const bool is_between = n == 0 || text[n - 1] == '\n';
    if (!is_between && text[n] != '\n' && n % 11 != 0) continue;
    expect_refused(text.substr(0, n), is_between ? "its end is missing" : line_text(line_at(n)), cat("cut at ", n));
  }
}

TEST_F(DamagedJournal, ABitChangedAnywhere) {
  const size_t step = std::getenv("LANCET_TEST_FULL") != nullptr ? 1 : 3;  // bits in turn: no divisor of 8
  for (size_t at = 0; at < text.size(); at += step) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    expect_refused(changed, line_text(line_at(at)), cat("byte ", at, ", bit ", at % 8));
  }
}

TEST_F(DamagedJournal, BytesAddedOrLeftOut) {
  for (size_t at = 0; at < text.size(); at += 23) {
    std::string shorter = text, longer = text;
    shorter.erase(at, 1);
    longer.insert(at, 1, at % 2 == 0 || text[at] == '\n' ? ' ' : '\n');
    expect_refused(shorter, line_text(line_at(at)), cat("without byte ", at));
    expect_refused(longer, line_text(line_at(at)), cat("one more at ", at));
  }
  expect_refused(text + "\n", line_text(line_at(text.size())), "an empty line after");
}

TEST_F(DamagedJournal, LinesMoved) {
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 8u);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> fewer = lines, more = lines;
    fewer.erase(fewer.begin() + static_cast<int64_t>(i));
    more.insert(more.begin() + static_cast<int64_t>(i), lines[i]);
    const bool is_last = i + 1 == lines.size();
    expect_refused(joined(fewer), is_last ? "its end is missing" : line_text(i), cat("without line ", i));
    expect_refused(joined(more), line_text(i + 1), cat("line ", i, " twice"));
    for (size_t j = i + 1; j < lines.size(); ++j) {
      std::vector<std::string> others = lines;
      std::swap(others[i], others[j]);
      expect_refused(joined(others), line_text(i), cat("lines ", i, " and ", j, " exchanged"));
    }
  }
}

TEST_F(DamagedJournal, OfTwoJournals) {
  Journal other = some_journal();
  other.add_batch(some_batch({"other"}));
  std::vector<std::string> lines = lines_of(text), others = lines_of(other.text());
  others[1] = lines_of(Journal({.weights = "dd"}).text())[0];
  expect_refused(joined(others), line_text(1), "another's first line");
  lines.back() = lines_of(other.text()).back();
  expect_refused(joined(lines), line_text(lines.size() - 1), "another's end");
}

TEST_F(DamagedJournal, IsAbsentOrNoFile) {
  EXPECT_THROW(Journal::read(folder / "none"), CheckpointError);
  std::filesystem::create_directory(folder / kJournalFile);
  EXPECT_THROW(Journal::read(folder.path()), CheckpointError);
}

/// Lines with right hashes.
struct ForgedJournal : public DamagedJournal {
  /// `entry` in place of the one at `index`, and nothing after it but the end.
  void expect_entry_refused(size_t index, const std::string& entry, const std::string& words) const {
    std::vector<std::string> some(entries.begin(), entries.begin() + static_cast<int64_t>(index));
    some.push_back(entry);
    expect_refused(forged(some), cat(line_text(index), words), entry.substr(0, 200));
  }

  /// The entry at `index` with `from` replaced.
  std::string with(size_t index, const std::string& from, const std::string& to) const {
    std::string entry = entries.at(index);
    const size_t at = entry.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << entry;
    return at == std::string::npos ? entry : entry.replace(at, from.size(), to);
  }

  const std::vector<std::string> entries = entries_of(text);
  static constexpr size_t kBase = 0, kSetting = 1, kBatch = 2, kSecond = 3, kMeasure = 4, kUndo = 5;
};

TEST_F(ForgedJournal, IsWrittenAsTheFormatSays) { EXPECT_EQ(forged(entries), text); }

TEST_F(ForgedJournal, OfAnotherVersion) {
  expect_entry_refused(kBase, with(kBase, "lancet-edits-1", "lancet-edits-2"), "expected format lancet-edits-1, got");
  expect_entry_refused(kBatch, with(kBatch, "\"batch\"", "\"merge\""), "kind: merge: a later version");
}

TEST_F(ForgedJournal, OfForeignJson) {
  for (const char* entry : {"{}", "[]", "3", "null", "\"kind\"", "{\"kind\":3}", "{\"kind\":null}", "[{\"kind\":1}]"})
    for (const size_t index : {kBase, kBatch}) expect_entry_refused(index, entry, "");
  for (const char* entry : {"", "{", "}", "{\"kind\":\"base\"", "nul", "{\"kind\":\"base\",\"kind\":\"base\"}", "\xff"})
    for (const size_t index : {kBase, kBatch}) expect_entry_refused(index, entry, "");
  expect_refused("{\"kind\":\"base\"}\n", line_text(0), "a line alone");
  expect_refused("[1, 2]\n{}\n", line_text(0), "other JSON");
  expect_refused(forged({}), line_text(0), "no base");
  expect_refused(forged({}, /*has_end=*/false), "its end is missing", "nothing");
  expect_entry_refused(1, entries[kBase], "expected another entry, got base");
  expect_entry_refused(0, entries[kSetting], "expected the base, got setting");
}

TEST_F(ForgedJournal, OfDeepNesting) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    expect_entry_refused(kBatch, deep, "nested deeper than");
    expect_entry_refused(kBatch, with(kBatch, "\"report\":{", cat("\"report\":{\"x\":", deep)), "nested deeper than");
  }
}

TEST_F(ForgedJournal, WithoutAKeyOrWithAnotherValue) {
  for (size_t index = 0; index < entries.size(); ++index) {
    const auto entry = nlohmann::ordered_json::parse(entries[index]);
    for (const auto& [key, value] : entry.items()) {
      nlohmann::ordered_json without = entry, other = entry;
      without.erase(key);
      other[key] = nlohmann::ordered_json::array({nlohmann::ordered_json::object()});
      expect_entry_refused(index, without.dump(), "");
      expect_entry_refused(index, other.dump(), "");
    }
  }
}

TEST_F(ForgedJournal, OfWrongNumbers) {
  for (const char* number : {"1", "-1", "0.5", "1e3", "18446744073709551615", "\"0\"", "1e999"})
    expect_entry_refused(kBatch, with(kBatch, "\"setting\":0", cat("\"setting\":", number)), "");
  for (const char* list : {"[2]", "[-1]", "[0.0]", "[true]", "3", "[18446744073709551615]", "{\"a\":0}"})
    expect_entry_refused(kBatch, with(kBatch, "\"columns\":[0,1]", cat("\"columns\":", list)), "");
  for (const char* number : {"3", "-2", "1.0", "9223372036854775808"})
    expect_entry_refused(kBatch, with(kBatch, "\"lookup\":1", cat("\"lookup\":", number)), "");
  expect_entry_refused(kBatch, with(kBatch, "[1,17,400]", "[1,17.5,400]"),
                       "edits[].prompt_ids[]: expected a whole number from 0 to 2^40, got 17.5");
  for (const char* number : {"3", "-1", "1.0"})
    expect_entry_refused(kUndo, with(kUndo, "\"keeps\":1", cat("\"keeps\":", number)), "");
  for (const char* mode : {"", "undo", "2"})
    expect_entry_refused(kUndo, with(kUndo, "\"last\"", cat("\"", mode, "\"")), "mode: expected last, downdate or");
  expect_entry_refused(kMeasure, with(kMeasure, "0.75", "null"), "");
  std::vector<std::string> wrong_end = entries;
  wrong_end.push_back("{\"kind\":\"end\",\"entries\":6}");
  expect_refused(forged(wrong_end, /*has_end=*/false), line_text(7) + "expected 6 entries before it", "end");
}

TEST_F(ForgedJournal, OfReportsThatNoBatchHas) {
  using Document = nlohmann::ordered_json;
  const Document whole = Document::parse(entries[kBatch]);
  const auto expect_place_refused = [&](const std::string& place, const Document& value, const std::string& words) {
    Document changed = whole;
    changed[Document::json_pointer(place)] = value;
    expect_entry_refused(kBatch, changed.dump(), words);
  };
  const std::vector<std::pair<std::string, Document>> cases{{"/report", Document::object()},
                                                            {"/report/seconds", nullptr},
                                                            {"/report/outcome", 3},
                                                            {"/report/outcome/requests", nullptr},
                                                            {"/report/outcome/requests/0", Document::array({25})},
                                                            {"/report/outcome/requests/0/0", -1},
                                                            {"/report/outcome/requests/0/1", "4.5"},
                                                            {"/report/outcome/requests/0/5", Document::object()},
                                                            {"/report/outcome/requests/0/6", nullptr},
                                                            {"/report/outcome/requests/1/8/0", 3},
                                                            {"/report/outcome/chosen", Document::object()},
                                                            {"/report/outcome/values/1", int64_t{1} << 62},
                                                            {"/report/outcome/columns", nullptr},
                                                            {"/report/outcome/columns/0", 0.5},
                                                            {"/report/outcome/columns/0", -1},
                                                            {"/report/outcome/shared_keys/0/1/0/0", "0"},
                                                            {"/report/outcome/warnings/0", Document::array()},
                                                            {"/report/right_after", 3},
                                                            {"/report/right_after/efficacy", Document::array({1.0})},
                                                            {"/report/first_batch", Document::array()},
                                                            {"/report/growth/0/0", nullptr},
                                                            {"/report/text_kl", "0.5"}};
  for (const auto& [place, value] : cases) expect_place_refused(place, value, "report");
  for (const Document& place : {Document(2), Document(1'000'000'000), Document(uint64_t{1} << 40)}) {
    expect_place_refused("/report/outcome/columns/0", place, "report.outcome.columns: expected a place among 2 edits");
    expect_place_refused("/report/outcome/shared_keys/0/1/0/0", place, "report.outcome.shared_keys: expected a place");
  }
  for (const size_t n : {1, 3})
    expect_place_refused("/report", some_report(n), "report.outcome.requests: expected 2, as many as edits");
  for (const char* key : {"requests", "columns", "values"}) {
    Document changed = whole;
    changed["report"]["outcome"].erase(key);
    expect_entry_refused(kBatch, changed.dump(), cat("report.outcome.", key));
  }
}

TEST_F(ForgedJournal, OfJobsWithoutSections) {
  const auto expect_job = [&](const std::string& job, const std::string& words) {
    auto entry = nlohmann::ordered_json::parse(entries[kSetting]);
    entry["job"] = job;
    if (words.empty())
      EXPECT_EQ(refusal_of(folder, forged({entries[kBase], entry.dump()})), "") << job;
    else
      expect_entry_refused(kSetting, entry.dump(), words);
  };
  for (const char* job : {"3", "word", "[1, 2]", "[{\"editor\": {}}]", "null"}) expect_job(job, "job: expected a map");
  expect_job("{editor: memit}", "job: editor: expected a section, got memit");
  expect_job("{run: [cpu]}", "job: run: expected a section, got");
  expect_job("{evaluate: efficacy}", "job: evaluate: expected a section, got efficacy");
  expect_job("{editor: {", "job:");
  expect_job("{evaluate: [efficacy], run: {devices: cpu}, schedule: null, a_later_versions: 3}", "");
}

TEST_F(ForgedJournal, OfEditsThatStandTwiceOrNot) {
  expect_entry_refused(kSecond, with(kSecond, "\"id\":\"c\"", "\"id\":\"b\""), "edit b: one of this id stands already");
  expect_entry_refused(kBatch, with(kBatch, "\"id\":\"b\"", "\"id\":\"a\""), "edit a: one of this id stands already");
  expect_entry_refused(kMeasure, with(kMeasure, "\"id\":\"c\"", "\"id\":\"d\""), "measured: edit d: none of this id");
  expect_entry_refused(kUndo, with(kUndo, "[\"c\"]", "[\"a\"]"), "undone: edit a: none of this id");
  auto empty = nlohmann::ordered_json::parse(entries[kBatch]);
  empty["edits"] = empty["columns"] = nlohmann::ordered_json::array();
  empty["report"] = nullptr;
  expect_entry_refused(kBatch, empty.dump(), "a batch without edits");
}

/// Any text in any entry, with right hashes: it is read and then written back as it stands in memory, or refused.
TEST_F(ForgedJournal, OfRandomChanges) {
  std::mt19937_64 random(20261123);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  static const std::vector<std::string> kPieces{"{",   "}",    "[",     "]",     "\"",    ":",    ",",  "null", "-1",
                                                "1e9", "true", "\"a\"", "[0,1]", "\\u00", "\xc3", "{}", "0.5",  "99"};
  size_t n_read = 0, n_refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::string> changed = entries;
    for (size_t n = 1 + below(2); n > 0; --n) {
      std::string& entry = changed[below(changed.size())];
      const size_t at = below(entry.size() + 1), length = below(4) == 0 ? below(30) : below(3);
      switch (below(4)) {
        case 0:
          if (at < entry.size()) entry[at] = static_cast<char>(entry[at] ^ (1 << below(8)));
          break;
        case 1:
          entry.erase(at, length);
          break;
        case 2:
          entry.insert(at, kPieces[below(kPieces.size())]);
          break;
        default:
          entry.replace(at, length, kPieces[below(kPieces.size())]);
      }
      std::erase(entry, '\n');
    }
    write_journal(folder, forged(changed));
    try {
      const Journal journal = Journal::read(folder.path());
      const std::string written = journal.text();
      write_journal(folder, written);
      ASSERT_EQ(Journal::read(folder.path()).text(), written) << forged(changed);
      ++n_read;
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find(": line "), std::string::npos) << error.what();
      ++n_refused;
    }
  }
  EXPECT_GT(n_read, 20u);
  EXPECT_GT(n_refused, 200u);
}

}  // namespace
}  // namespace lancet
