// Every document in edits/, changed by its own structure, its hashes made again: the journal with its reports and jobs,
// and the files of its batches. fuzzed_documents_test.cpp has other documents.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "fuzzed_edits_support.h"
#include "lancet/checkpoint/safetensors.h"
#include "lancet/checkpoint/sealed_file.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr uint64_t kFuzzSeed = 20261124;
constexpr const char *kChangesFormat = "lancet-edit-changes-1", *kSolvedFormat = "lancet-edit-solved-1";

/// Places of a batch's report that may be null, or a map without entries, or a number.
bool may_be_nothing(const FuzzedDocument& document) {
  static const std::set<std::string> kPlaces{"batch/report/right_after", "batch/report/first_batch",
                                             "batch/report/text_kl"};
  if (kPlaces.contains(document.place)) return true;
  const bool is_element = document.place.starts_with("batch/report/") && document.place.ends_with("/*");
  return (is_element || document.place == "batch/report") && document.change.ends_with(": null");
}

/// Keys of any names.
bool may_be_absent(const FuzzedDocument& document) {
  static const std::vector<std::string> kMaps{"measure/edits/*/before/", "measure/edits/*/after/",
                                              "batch/report/right_after/"};
  return document.change.ends_with(": absent") &&
         std::ranges::any_of(kMaps, [&](const std::string& map) { return document.place.starts_with(map); });
}

/// Whether a value that is absent or of another type may be read: those of requests their own reader judges.
bool may_be_read(const FuzzedDocument& document) {
  return document.place.starts_with("batch/edits/*/request/") || document.place == "measure/edits/*/success" ||
         may_be_nothing(document) || may_be_absent(document);
}

std::string with_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A safetensors file of any header.
void write_with_header(const fs::path& path, const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(header.size() >> 8 * i & 0xff);
  write_text_file(path, length + header + data);
}

/// The hash that a file of this content would be sealed with; nullopt: its header is refused.
std::optional<std::string> hash_of_sealed(const fs::path& path, const char* format) {
  try {
    const SafetensorsReader reader = SafetensorsReader::open(path);
    std::vector<TensorSource> sources;
    for (const TensorInfo& info : reader.tensors())
      sources.push_back({info.name, info.dtype, info.shape, reader.view(info.name).bytes});
    return sealed_hash({format}, sources, reader.metadata());
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct FuzzedEdits : public ::testing::Test {
  /// Returns a history with a finish: its edits are not added to others', so that both are tried.
  EditHistory finished_history() const {
    EditHistory made = history_of_all_kinds(tiny, "");
    made.set_finish({{kDown1, {LowRankDelta{random_f64(32, 2), random_f64(2, 48)}}}}, tiny.config);
    return made;
  }

  void SetUp() override {
    fs::create_directories(edits());
    finished.write(edits(), tiny.config);
    EditHistory::load(edits(), tiny.config);
    history.write(edits(), tiny.config);
    const EditHistory read = EditHistory::load(edits(), tiny.config);
    use_history(read, other, tiny.config);
    use_jobs(read.journal(), tiny.folder.path());
    EXPECT_EQ(take_out(read, "c").entries.size(), 0u);
  }

  fs::path edits() const { return folder / "edits"; }

  void write_journal(const std::vector<std::string>& texts) const {
    write_text_file(edits() / kJournalFile, lines_with_hashes(texts));
  }

  /// The journal's entries with another name of a file.
  void write_journal_with(const Journal& journal, const std::string& hash, const std::string& other_hash) const {
    std::vector<std::string> texts;
    for (const FuzzedJson& entry : entries_in(journal)) texts.push_back(with_all(entry.dump(), hash, other_hash));
    write_journal(texts);
  }

  void use_all(const FuzzedDocument& document) const {
    std::optional<EditHistory> read;
    if (!reads_fuzzed([&] { read = EditHistory::load(edits(), tiny.config); })) return;
    if (document.is_typed && !may_be_read(document)) ADD_FAILURE() << "read without a word: " << document.place;
    reads_fuzzed([&] { use_history(*read, other, tiny.config); });
    for (const char* id : {"a", "c"}) reads_fuzzed([&] { take_out(*read, id); });
    reads_fuzzed([&] { use_jobs(read->journal(), tiny.folder.path()); });
  }

  TinyModel tiny;
  TempDir folder;
  const EditHistory history = history_of_all_kinds(tiny, ""), other = history_of_all_kinds(tiny, "other ");
  const EditHistory finished = finished_history();
};

TEST_F(FuzzedEdits, JournalsAreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kFuzzSeed);
  for (int64_t i = 0; i < fuzz_cases(300, 7'000); ++i) {
    const std::vector<FuzzedJson> entries = entries_in(i % 2 == 0 ? history.journal() : finished.journal());
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

/// One of a batch's tensors otherwise than it was written; what was done.
std::string change_tensor(NamedTensors& tensors, std::mt19937_64& random) {
  const size_t k = random() % tensors.size();
  const std::string name = tensors[k].first;
  Tensor& tensor = tensors[k].second;
  switch (random() % 6) {
    case 0:
      tensor = tensor.to(at::kLong);
      return name + " as whole numbers";
    case 1:
      tensor = tensor.flatten();
      return name + " flat";
    case 2:
      tensor = torch::zeros({0});
      return name + " empty";
    case 3:
      tensor = tensor.t().contiguous();
      return name + " transposed";
    case 4:
      tensors[k].first += "/x";
      return name + " of another name";
    default:
      tensors.erase(tensors.begin() + static_cast<int64_t>(k));
      return name + " absent";
  }
}

TEST_F(FuzzedEdits, FilesOfBatchesAreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kFuzzSeed + 1);
  for (int64_t i = 0; i < fuzz_cases(200, 3'000); ++i) {
    const bool is_solved = random() % 4 != 0;
    const BatchEntry& entry = history.journal().batches()[random() % 2];
    const std::string old = is_solved ? entry.solved : entry.changes;
    const char* const format = is_solved ? kSolvedFormat : kChangesFormat;
    const fs::path place = edits() / (is_solved ? "solved" : "changes"), path = place / (old + ".safetensors");
    const SealedFile file = SealedFile::open(path, {format});
    NamedTensors tensors = load_tensors(file);
    Metadata facts = file.facts();
    FuzzedDocument document;
    const uint64_t way = random() % 4;
    if (way == 0 || !is_solved) {
      document.change = change_tensor(tensors, random);
    } else if (way == 1) {
      document = fuzzed(FuzzedJson(facts.at("edits")), random);
      const FuzzedJson text = FuzzedJson::parse(document.text);
      facts["edits"] = text.is_string() ? text.get<std::string>() : document.text;
      document.is_typed = false;
    } else {
      document = fuzzed(FuzzedJson::parse(facts.at("systems")), random);
      facts["systems"] = document.text;
    }
    SCOPED_TRACE(cat("case ", i, ", ", path.filename().string(), ", ", document.change));
    facts.erase(kFormatFact);
    facts.erase(kContentHashFact);
    const std::string hash = write_tensors(place / "new", {format}, tensors, facts);
    fs::rename(place / "new", place / (hash + ".safetensors"));
    write_journal_with(history.journal(), old, hash);
    use_all(document);
    if (hash != old) fs::remove(place / (hash + ".safetensors"));
  }
}

/// A tensor of the header that the same bytes may be, or of another name.
FuzzedDocument with_other_tensor(FuzzedJson header, std::mt19937_64& random) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : header.items())
    if (name != "__metadata__") names.push_back(name);
  const std::string name = names[random() % names.size()];
  FuzzedJson& tensor = header[name];
  int64_t size = 1;
  for (const FuzzedJson& each : tensor["shape"]) size *= each.get<int64_t>();
  FuzzedDocument document;
  switch (random() % 4) {
    case 0:
      tensor["dtype"] = tensor["dtype"] == "F64" ? "I64" : "I32";
      break;
    case 1:
      std::reverse(tensor["shape"].begin(), tensor["shape"].end());
      break;
    case 2:
      tensor["shape"] = random() % 2 == 0 ? FuzzedJson::array({size}) : FuzzedJson::array({1, size, 1});
      break;
    default:
      header[random() % 2 == 0 ? name + "x" : "appended/a"] = FuzzedJson(tensor);
      header.erase(name);
  }
  document.change = cat(name, ": ", header.value(name, FuzzedJson()).dump());
  document.text = header.dump();
  return document;
}

TEST_F(FuzzedEdits, HeadersOfFilesAreReadOrRefused) {
  const MemoryBound bound;
  std::mt19937_64 random(kFuzzSeed + 2);
  std::vector<fs::path> files;
  for (const char* const kind : {"changes", "solved"})
    for (const auto& file : fs::directory_iterator(edits() / kind)) files.push_back(file.path());
  std::ranges::sort(files);
  ASSERT_EQ(files.size(), 5u) << "two batches and a finish";
  size_t n_resealed = 0;
  for (int64_t i = 0; i < fuzz_cases(200, 2'000); ++i) {
    const fs::path& path = files[random() % files.size()];
    const fs::path place = path.parent_path(), changed = place / "new.safetensors";
    const std::string bytes = read_text_file(path, "edits"), old = path.stem().string();
    const SafetensorsReader whole = SafetensorsReader::open(path);
    const size_t data = whole.tensors().front().begin;
    const FuzzedJson header = FuzzedJson::parse(bytes.substr(8, data - 8));
    const FuzzedDocument document = i % 2 == 0 ? fuzzed(header, random) : with_other_tensor(header, random);
    SCOPED_TRACE(cat("case ", i, ", ", path.filename().string(), ", ", document.change));
    write_with_header(changed, document.text, bytes.substr(data));
    std::string hash = old;
    if (const auto sealed = hash_of_sealed(changed, place.filename() == "solved" ? kSolvedFormat : kChangesFormat)) {
      hash = *sealed;
      ++n_resealed;
      write_with_header(changed, with_all(document.text, old, hash), bytes.substr(data));
    }
    fs::rename(changed, place / (hash + ".safetensors"));
    write_journal_with(finished.journal(), old, hash);
    use_all(document);
    fs::remove(place / (hash + ".safetensors"));
    write_text_file(path, bytes);
  }
  EXPECT_GT(n_resealed, 50u) << "headers that get past the reader of the format";
}

}  // namespace
}  // namespace lancet
