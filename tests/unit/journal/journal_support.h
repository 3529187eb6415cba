// Journals for tests, and lines with right hashes that no journal wrote.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/journal/journal.h"
#include "support/temp_dir.h"

namespace lancet::testing {

inline EditRecord some_edit(const std::string& id, const std::string& target = "Rome") {
  EditRecord edit;
  edit.request.id = id;
  edit.request.subject = "Caf\xc3\xa9 \"X\"";
  edit.request.prompt = fill_prompt("{} lies in", edit.request.subject, "test");
  edit.request.target = target;
  edit.prompt_ids = {1, 17, 400};
  edit.target_ids = {9};
  edit.lookup = 1;
  return edit;
}

/// Makes the report that a run notes for one of `n` edits.
inline nlohmann::ordered_json some_report(size_t n, double seconds = 1.25) {
  using Json = nlohmann::ordered_json;
  Json requests = Json::array(), columns = Json::array();
  for (size_t i = 0; i < n; ++i) {
    columns.push_back(i);
    requests.push_back({25, 4.5, 0.25, 1.5, 3.5, {4.5, 0.25}, "", 0.75, Json::array({{3, 0.75}})});
  }
  const Json outcome{{"requests", requests},
                     {"chosen", Json::array({{"lambda", 3, 20.0}})},
                     {"values", {1, n, 0, 0}},
                     {"columns", columns},
                     {"shared_keys", Json::array({{"of equal keys", Json::array({Json::array({0})})}})},
                     {"warnings", Json::array({"so it is"})}};
  return {{"seconds", seconds},
          {"outcome", outcome},
          {"right_after", {{"efficacy", {1.0, 1}}}},
          {"first_batch", nullptr},
          {"growth", Json::array({{"model.layers.3.mlp.down_proj.weight", 0.125}})},
          {"text_kl", 0.5}};
}

inline BatchEntry some_batch(const std::vector<std::string>& ids) {
  BatchEntry batch;
  batch.when = "2026-11-23T08:00:00Z";
  for (const std::string& id : ids) {
    batch.columns.push_back(static_cast<int64_t>(batch.edits.size()));
    batch.edits.push_back(some_edit(id));
  }
  batch.changes = "0123456789abcdef0123456789abcdef";
  batch.solved = "00000000000000000123456789abcdef";
  batch.weights = {{"model.layers.3.mlp.down_proj.weight", "00112233445566778899aabbccddeeff"}};
  batch.report = some_report(ids.size());
  return batch;
}

inline MeasuredEdit some_measure(double after) {
  return {
      .before = {{"efficacy", 0.1}}, .after = {{"efficacy", after}}, .success = true, .when = "2026-11-23T08:00:01Z"};
}

/// An entry of each kind, and one batch that was undone.
inline Journal some_journal() {
  Journal journal({.weights = "aa", .config = "bb", .tokenizer = "cc", .folder = "/models/x"});
  journal.add_setting({.method = "memit", .editor = "layers: [1]\n", .contexts = {"{}", "I am. {}"}, .dtype = "f32"});
  journal.add_batch(some_batch({"a", "b"}));
  journal.add_batch(some_batch({"c"}));
  journal.add_measure("the weights", {{"w", "h"}}, {{"a", some_measure(0.75)}, {"c", some_measure(1.0 / 3)}});
  journal.undo({.when = "2026-11-23T08:00:02Z", .keeps = 1, .edits = {"c"}});
  journal.add_finish("fedcba9876543210fedcba9876543210");
  return journal;
}

inline void write_journal(const TempDir& folder, std::string_view text) {
  std::ofstream(folder / kJournalFile, std::ios::binary) << text;
}

/// What reading `text` is refused with; empty: it is read.
inline std::string refusal_of(const TempDir& folder, std::string_view text) {
  write_journal(folder, text);
  try {
    Journal::read(folder.path());
    return {};
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// The entries' JSON as lines with right hashes, and the end after them. Written down once more, so that a change of
/// the format shows.
inline std::string forged(std::vector<std::string> entries, bool has_end = true) {
  if (has_end) entries.push_back(cat("{\"kind\":\"end\",\"entries\":", entries.size(), "}"));
  std::string text, parent;
  for (const std::string& entry : entries) {
    const std::string begin = cat("{\"parent\":\"", parent, "\",\"entry\":", entry);
    parent = ContentHash().add("lancet-journal").add(begin).hex();
    text += cat(begin, ",\"hash\":\"", parent, "\"}\n");
  }
  return text;
}

/// The entries that such lines have, without the end's.
inline std::vector<std::string> entries_of(const std::string& text) {
  constexpr std::string_view kBegin = "\"entry\":", kEnd = ",\"hash\":\"";
  std::vector<std::string> entries;
  for (const std::string& line : lines_of(text)) {
    const size_t begin = line.find(kBegin) + kBegin.size();
    entries.push_back(line.substr(begin, line.rfind(kEnd) - begin));
  }
  entries.pop_back();
  return entries;
}

}  // namespace lancet::testing
