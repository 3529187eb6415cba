// Every document in edits/, adapter_config.json and config.json, changed by its own structure, its hashes made again.
// LANCET_TEST_FULL=1 takes 20,000 cases, otherwise 1,000.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>

#include "history_support.h"
#include "lancet/core/hash.h"
#include "lancet/deltas/adapter.h"
#include "lancet/edits/conflicts.h"
#include "lancet/edits/downdate.h"
#include "lancet/edits/merge.h"
#include "lancet/io/files.h"
#include "lancet/io/safetensors.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"
#include "support/family_models.h"
#include "support/structural_fuzz.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr uint64_t kFuzzSeed = 20261124;

std::string lines_with_hashes(const std::vector<std::string>& entries) {
  std::string text, parent;
  for (const std::string& entry : entries) {
    const std::string line = cat("{\"parent\":\"", parent, "\",\"entry\":", entry);
    parent = ContentHash().add("lancet-journal").add(line).hex();
    text += cat(line, ",\"hash\":\"", parent, "\"}\n");
  }
  return text;
}

std::vector<FuzzedJson> entries_in(const Journal& journal) {
  std::vector<FuzzedJson> entries;
  for (const std::string& line : split(journal.text(), '\n'))
    if (!line.empty()) entries.push_back(FuzzedJson::parse(line).at("entry"));
  return entries;
}

constexpr const char* kFuzzJob = R"({"editor": {"method": "memit", "layers": [1, 2]}, "dtype": "f32"})";

/// Values that may be absent or of another type, and those of requests, which their own reader judges.
bool has_several_types(const std::string& place) {
  return place.starts_with("batch/edits/*/request/") || place == "batch/report" || place == "measure/edits/*/took";
}

struct FuzzedEdits : public ::testing::Test {
  /// An entry of each kind but the finish, and batches with systems and a state.
  EditHistory some_history(const std::string& prefix) const {
    EditHistory made({.weights = "aa", .config = "bb", .tokenizer = "cc", .folder = tiny.folder.path().string()});
    made.journal().add_setting(
        {.method = "memit", .editor = R"({"layers": [1, 2]})", .job = kFuzzJob, .contexts = {"{}"}});
    for (const auto& [names, seed] :
         std::vector<std::pair<std::vector<std::string>, uint64_t>>{{{"a", "b"}, 1}, {{"c"}, 2}, {{"d"}, 3}}) {
      std::vector<std::string> ids;
      for (const std::string& name : names) ids.push_back(prefix + name);
      BatchEntry entry = history_entry(ids);
      entry.weights = {{"model.layers.1.mlp.down_proj.weight", "00112233445566778899aabbccddeeff"}};
      made.add(std::move(entry), history_batch(static_cast<int64_t>(ids.size()), seed), tiny.config);
    }
    made.undo({.when = "2026-11-23T08:00:02Z", .keeps = 2, .edits = {prefix + "d"}, .gives_up = ""});
    const MeasuredEdit measured{.before = {{"efficacy", 0.1}}, .after = {{"efficacy", 0.9}}, .took = true};
    made.journal().add_measure("the weights", {{"w", "h"}}, {{prefix + "a", measured}});
    return made;
  }

  void SetUp() override {
    fs::create_directories(edits());
    history.write(edits(), tiny.config);
    for (const BatchEntry& entry : history.journal().batches()) {
      const fs::path path = edits() / "solved" / (entry.solved + ".safetensors");
      const SealedFile file = SealedFile::open(path, {"lancet-edit-solved-1"});
      solved.push_back(load_tensors(file));
      facts.push_back(file.facts());
    }
  }

  fs::path edits() const { return folder / "edits"; }

  void write_journal(const std::vector<std::string>& texts) const {
    write_text_file(edits() / kJournalFile, lines_with_hashes(texts));
  }

  /// As apply, merge, undo and log use them.
  void use() const {
    const EditHistory read = EditHistory::load(edits(), tiny.config);
    for (const UndoEntry& undo : read.journal().undone()) describe_undo(undo);
    const std::vector<const EditHistory*> both{&other, &read};
    check_mergeable(both);
    find_conflicts(both, {});
    interference(both);
    add_histories(both, tiny.config);
    asked_in_all(read);
    read.state({});
    read.all_changes();
  }

  void take_out() const {
    const EditHistory read = EditHistory::load(edits(), tiny.config);
    without_edits(read, {"a"}, {});
  }

  void use_all(const FuzzedDocument& document) const {
    const bool is_read = reads_fuzzed([&] { use(); });
    reads_fuzzed([&] { take_out(); });
    if (is_read && document.is_typed && !has_several_types(document.place))
      ADD_FAILURE() << "read without a word: " << document.place;
  }

  TinyModel tiny;
  TempDir folder;
  const EditHistory history = some_history(""), other = some_history("other ");
  std::vector<NamedTensors> solved;
  std::vector<Metadata> facts;
};

TEST_F(FuzzedEdits, JournalsAreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kFuzzSeed);
  const std::vector<FuzzedJson> entries = entries_in(history.journal());
  for (int64_t i = 0; i < fuzz_cases(300, 8'000); ++i) {
    std::vector<std::string> texts;
    for (const FuzzedJson& entry : entries) texts.push_back(entry.dump());
    const size_t line = random() % entries.size();
    FuzzedDocument document;
    const char* const inner = random() % 2 == 0 ? "job" : "editor";
    if (entries[line].contains("job") && random() % 2 == 0) {
      FuzzedJson entry = entries[line];
      document = fuzzed(FuzzedJson::parse(entry[inner].get<std::string>()), random);
      entry[inner] = document.text;
      texts[line] = entry.dump(-1, ' ', false, FuzzedJson::error_handler_t::replace);
      document.is_typed = document.is_typed && document.place.empty();  // options are judged by the job's reader
    } else {
      document = fuzzed(entries[line], random);
      texts[line] = document.text;
    }
    document.place = cat(entries[line]["kind"].get<std::string>(), document.place);
    SCOPED_TRACE(cat("case ", i, ", line ", line, ", ", document.change));
    write_journal(texts);
    use_all(document);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FuzzedEdits, SystemsAreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kFuzzSeed + 1);
  for (int64_t i = 0; i < fuzz_cases(200, 4'000); ++i) {
    const size_t batch = random() % solved.size();
    Metadata changed = facts[batch];
    NamedTensors tensors = solved[batch];
    FuzzedDocument document;
    const uint64_t way = random() % 4;
    if (way == 0) {
      const size_t k = random() % tensors.size();
      Tensor& tensor = tensors[k].second;
      document.change = tensors[k].first;
      switch (random() % 6) {
        case 0:
          tensor = tensor.to(at::kLong);
          break;
        case 1:
          tensor = tensor.flatten();
          break;
        case 2:
          tensor = torch::zeros({0});
          break;
        case 3:
          tensor = tensor.t().contiguous();
          break;
        case 4:
          tensors[k].first += "/x";
          break;
        default:
          tensors.erase(tensors.begin() + static_cast<int64_t>(k));
      }
    } else if (way == 1) {
      document = fuzzed(FuzzedJson(facts[batch].at("edits")), random);
      const FuzzedJson text = FuzzedJson::parse(document.text);
      changed["edits"] = text.is_string() ? text.get<std::string>() : document.text;
      document.is_typed = false;
    } else {
      document = fuzzed(FuzzedJson::parse(facts[batch].at("systems")), random);
      changed["systems"] = document.text;
    }
    SCOPED_TRACE(cat("case ", i, ", batch ", batch, ", ", document.change));
    changed.erase(kFormatFact);
    changed.erase(kContentHashFact);
    const fs::path file = edits() / "solved" / "new";
    const std::string hash = write_tensors(file, {"lancet-edit-solved-1"}, tensors, changed);
    fs::rename(file, edits() / "solved" / (hash + ".safetensors"));
    std::vector<std::string> texts;
    size_t n = 0;
    for (FuzzedJson& entry : entries_in(history.journal())) {
      if (entry["kind"] == "batch" && n++ == batch) entry["solved"] = hash;
      texts.push_back(entry.dump());
    }
    write_journal(texts);
    use_all(document);
    fs::remove(edits() / "solved" / (hash + ".safetensors"));
    if (hash == history.journal().batches()[batch].solved) history.write(edits(), tiny.config);
  }
}

TEST(FuzzedAdapters, AreReadOrRefused) {
  const MemoryBound bound;
  const TinyModel tiny;
  const TempDir folder;
  const WeightSpec spec = weight_spec(tiny.config, kDown1);
  write_adapter(folder.path(), tiny.config,
                std::vector<WeightChanges>{{kDown1, {LowRankDelta{torch::randn({32, 4}), torch::randn({4, 48})}}}}, {});
  const fs::path path = folder / kAdapterConfig;
  const auto whole = FuzzedJson::parse(read_text_file(path, "adapter_config.json"));
  const Tensor expected = to_dense(read_adapter(folder.path(), tiny.config)[0].deltas[0]);
  std::mt19937_64 random(kFuzzSeed + 2);
  for (int64_t i = 0; i < fuzz_cases(200, 3'000); ++i) {
    const FuzzedDocument document = fuzzed(whole, random);
    SCOPED_TRACE(cat("case ", i, ", ", document.change));
    write_text_file(path, document.text);
    reads_fuzzed([&] {
      const std::vector<WeightChanges> changes = read_adapter(folder.path(), tiny.config);
      if (document.place == "/lora_alpha" || document.place == "/use_rslora") return;
      ASSERT_EQ(changes.size(), 1u);
      EXPECT_TRUE(to_dense(changes[0].deltas[0]).equal(expected)) << "another change without a word";
    });
  }
}

TEST(FuzzedConfigs, AreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kFuzzSeed + 3);
  for (int64_t i = 0; i < fuzz_cases(300, 5'000); ++i) {
    const FamilyModel& model = family_models()[random() % family_models().size()];
    const FuzzedDocument document = fuzzed(FuzzedJson::parse(model.config), random);
    SCOPED_TRACE(cat("case ", i, ", ", model.name, ", ", document.change));
    reads_fuzzed([&] { weight_table(parse_model_config(document.text, "", {}, "config.json")); });
  }
}

}  // namespace
}  // namespace lancet
