#include "lancet/edit_history/edit_history.h"

#include <torch/types.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "state_names.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

// The results of a batch, as two files: its changes, and what the next batch or an undo needs in addition.

/// The content of a sealed file before it is written.
struct UnwrittenFile {
  SealedFormat format = {};
  NamedTensors tensors = {};
  Metadata facts = {};

  std::string hash() const { return hash_of_tensors(format, tensors, facts); }
  void write(const std::filesystem::path& path) const { write_tensors(path, format, tensors, facts); }
};

using Json = nlohmann::json;

constexpr SealedFormat kChangesOfBatch{"lancet-edit-changes-1"}, kSolvedOfBatch{"lancet-edit-solved-1"};
/// The largest number of edits of a batch. Sums over batches then fit easily into 63 bits.
constexpr int64_t kMostEdits = int64_t{1} << 40;
constexpr const char *kAppended = "appended/", *kReplaced = "replaced/";

std::string system_name(size_t index, const char* part) { return cat("systems/", index, "/", part); }

/// Returns the change that was solved from the system; null if there is none.
const LowRankDelta* change_of(const std::vector<WeightChanges>& changes, const SolvedSystem& system) {
  for (const WeightChanges& weight : changes) {
    if (weight.id != system.id || system.change < 0 || static_cast<size_t>(system.change) >= weight.deltas.size())
      continue;
    return std::get_if<LowRankDelta>(&weight.deltas[static_cast<size_t>(system.change)]);
  }
  return nullptr;
}

/// Undefined if there is no such change.
Tensor left_factor(const std::vector<WeightChanges>& changes, const SolvedSystem& system) {
  const LowRankDelta* change = change_of(changes, system);
  return change == nullptr ? Tensor() : change->left_OR;
}

bool is_left_factor(const EditedBatch& batch, const SolvedSystem& system) {
  const Tensor left = left_factor(batch.changes, system);
  return left.defined() && left.scalar_type() == system.residuals_DN.scalar_type() &&
         left.to(Placement::host()).equal(system.residuals_DN);
}

/// The tensors of a file by their names. Each can be taken once.
class NamedParts {
 public:
  explicit NamedParts(NamedTensors tensors) : tensors_(tensors.begin(), tensors.end()) {}

  Tensor take(const std::string& name) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return {};
    Tensor tensor = found->second;
    tensors_.erase(found);
    return tensor;
  }

  std::map<std::string, Tensor> take_all(const std::string& prefix) {
    std::map<std::string, Tensor> some;
    for (auto each = tensors_.begin(); each != tensors_.end();) {
      if (!each->first.starts_with(prefix)) {
        ++each;
        continue;
      }
      some[each->first.substr(prefix.size())] = each->second;
      each = tensors_.erase(each);
    }
    return some;
  }

  bool empty() const { return tensors_.empty(); }

 private:
  std::map<std::string, Tensor> tensors_;
};

NamedTensors load_named(const fs::path& path, const SealedFormat& format, const std::string& hash,
                        Metadata* facts = nullptr) {
  const SealedFile file = SealedFile::open(path, format);
  if (file.content_hash() != hash)
    throw CheckpointError(cat(path.string(), ": expected the file of hash ", hash, ", got that of ",
                              file.content_hash(), ": files of edits/ were mixed up"));
  if (facts != nullptr) *facts = file.facts();
  return load_tensors(file);
}

void check_system(const SolvedSystem& system, const EditedBatch& batch) {
  const LowRankDelta* change = change_of(batch.changes, system);
  const auto n = static_cast<int64_t>(system.edits.size());
  const auto fits = [&](const Tensor& tensor, at::IntArrayRef shape) {
    return tensor.defined() && tensor.is_floating_point() && tensor.sizes() == shape;
  };
  const bool is_whole = change != nullptr && fits(system.keys_FN, {change->right_RI.size(1), n}) &&
                        fits(system.residuals_DN, {change->left_OR.size(0), n}) &&
                        (!system.inverse_gram_NN.defined() || fits(system.inverse_gram_NN, {n, n}));
  if (!is_whole) throw CheckpointError("systems: expected keys and residuals of a change, of its shape and complete");
}

bool is_whole_numbers(const Json& list) {
  return list.is_array() && std::ranges::all_of(list, [](const Json& each) { return each.is_number_integer(); });
}

/// Parses the fact "systems", which has for each system the weight's name, the number of its change, and the edits of
/// each key.
Json parse_systems(const std::string& text) {
  Json list;
  try {
    list = parse_strict_json(text);
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat("systems: ", problem.what()));
  }
  const auto is_system = [](const Json& system) {
    return system.is_array() && system.size() == 3 && system[0].is_string() && system[1].is_number_integer() &&
           system[2].is_array() && std::ranges::all_of(system[2], is_whole_numbers);
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_system))
    throw CheckpointError(cat("systems: expected a list of [WEIGHT, CHANGE, [[EDIT, ...], ...]], got ",
                              printable(list.dump(-1, ' ', false, Json::error_handler_t::replace))));
  return list;
}

std::vector<SolvedSystem> systems_of(const Json& list, NamedParts& parts, const EditedBatch& batch,
                                     const ModelConfig& config) {
  std::map<std::string, WeightId> ids;
  for (const WeightSpec& spec : weight_table(config)) ids[spec.name] = spec.id;
  std::vector<SolvedSystem> systems;
  for (size_t i = 0; i < list.size(); ++i) {
    SolvedSystem system;
    const auto name = list[i].at(0).get<std::string>();
    if (!ids.contains(name))
      throw CheckpointError(cat("systems: ", printable(name), " is none of the model's weights"));
    system.id = ids.at(name);
    system.change = list[i].at(1).get<int64_t>();
    system.edits = list[i].at(2).get<std::vector<std::vector<int64_t>>>();
    system.keys_FN = parts.take(system_name(i, "keys"));
    system.residuals_DN = parts.take(system_name(i, "residuals"));
    if (!system.residuals_DN.defined()) system.residuals_DN = left_factor(batch.changes, system);
    system.inverse_gram_NN = parts.take(system_name(i, "inverse_gram"));
    check_system(system, batch);
    systems.push_back(std::move(system));
  }
  return systems;
}

/// Makes the file of a batch's changes (deltas/stream_state.h), in the format lancet-edit-changes-1.
UnwrittenFile changes_file(const std::vector<WeightChanges>& changes, const ModelConfig& config) {
  return {kChangesOfBatch, to_named(changes, config), {}};
}

/// Makes the file of what a batch was solved from, in the format lancet-edit-solved-1. For each solved system it has
/// "systems/0/keys", "residuals" if they are not the left factor of the change, and "inverse_gram". The step of the
/// state is under "appended/" and "replaced/". The facts are format, systems (JSON) and edits.
UnwrittenFile solved_file(const EditedBatch& batch, const ModelConfig& config) {
  UnwrittenFile file{kSolvedOfBatch, {}, {}};
  Json systems = Json::array();
  for (size_t i = 0; i < batch.systems.size(); ++i) {
    const SolvedSystem& system = batch.systems[i];
    systems.push_back({weight_name(config, system.id), system.change, system.edits});
    file.tensors.emplace_back(system_name(i, "keys"), system.keys_FN);
    if (!is_left_factor(batch, system)) file.tensors.emplace_back(system_name(i, "residuals"), system.residuals_DN);
    if (system.inverse_gram_NN.defined())
      file.tensors.emplace_back(system_name(i, "inverse_gram"), system.inverse_gram_NN);
  }
  for (const auto& [name, tensor] : batch.state.appended) file.tensors.emplace_back(kAppended + name, tensor);
  for (const auto& [name, tensor] : batch.state.replaced) file.tensors.emplace_back(kReplaced + name, tensor);
  file.facts = {{"systems", systems.dump()}, {"edits", std::to_string(batch.state.edits)}};
  return file;
}

/// Throws: CheckpointError if the file is damaged, has another hash, or belongs to another model.
std::vector<WeightChanges> read_changes_file(const fs::path& path, const std::string& hash, const ModelConfig& config) {
  const NamedTensors named = load_named(path, kChangesOfBatch, hash);
  try {
    return to_changes(named, config);
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(path.string(), ": ", error.what()));
  }
}

/// Throws: as read_changes_file(). `batch` already has its changes.
void read_solved_file(const fs::path& path, const std::string& hash, const ModelConfig& config, EditedBatch& batch) {
  Metadata facts;
  NamedParts parts(load_named(path, kSolvedOfBatch, hash, &facts));
  try {
    batch.systems = systems_of(parse_systems(facts["systems"]), parts, batch, config);
    batch.state = {.appended = parts.take_all(kAppended), .replaced = parts.take_all(kReplaced)};
    const std::optional<int64_t> edits = parse_whole_number(facts["edits"]);
    if (!edits || *edits < 0 || *edits > kMostEdits || !parts.empty())
      throw CheckpointError("expected systems and a step of a state alone");
    batch.state.edits = *edits;
    check_state(batch.state, config);
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(path.string(), ": ", error.what()));
  }
}

constexpr const char *kChangesFolder = "changes", *kSolvedFolder = "solved";

/// Returns the path of the file that is named by its hash. Throws if `hash` is not a hash.
fs::path file_of(const fs::path& folder, const char* kind, const std::string& hash) {
  if (hash.size() != 32 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw CheckpointError(cat((folder / kJournalFile).string(), ": ", kind, ": expected 32 hexadecimal digits, got '",
                              printable(hash), "'"));
  return folder / kind / (hash + ".safetensors");
}

/// Makes a link to the file of this name in `earlier` if it exists, else writes a new file.
template <typename Make>
void put(const Make& make, const fs::path& name, const fs::path& earlier) {
  std::error_code problem;
  if (!earlier.empty()) fs::create_hard_link(earlier / name.parent_path().filename() / name.filename(), name, problem);
  if (earlier.empty() || problem) make().write(name);
}

/// Throws: CheckpointError if the journal's entry is not the one with which the data were written.
void check_belongs(const BatchEntry& entry, const EditedBatch& batch) {
  const auto n_edits = static_cast<int64_t>(entry.edits.size());
  for (const WeightChanges& weight : batch.changes) {
    int64_t n_columns = 0;
    for (const WeightDelta& delta : weight.deltas)
      if (const auto* low_rank = std::get_if<LowRankDelta>(&delta)) n_columns += low_rank->right_RI.size(0);
    if (!entry.columns.empty() && n_columns > 0 && n_columns != static_cast<int64_t>(entry.columns.size()))
      throw CheckpointError(cat("columns: expected changes of ", entry.columns.size(), ", got ", n_columns));
  }
  std::set<std::pair<WeightId, int64_t>> known;
  for (const SolvedSystem& system : batch.systems) {
    if (!known.emplace(system.id, system.change).second)
      throw CheckpointError("systems: expected one of each change, got two");
    for (const std::vector<int64_t>& edits : system.edits)
      if (edits.empty() || std::ranges::any_of(edits, [&](int64_t edit) { return edit < 0 || edit >= n_edits; }))
        throw CheckpointError(cat("systems: expected keys of ", n_edits, " edits, got those of others"));
  }
}

void append(std::vector<WeightChanges>& to, const std::vector<WeightChanges>& more) {
  for (const WeightChanges& weight : more) {
    auto known = std::ranges::find_if(to, [&](const WeightChanges& each) { return each.id == weight.id; });
    if (known == to.end()) known = to.insert(to.end(), {weight.id, {}});
    known->deltas.insert(known->deltas.end(), weight.deltas.begin(), weight.deltas.end());
  }
}

}  // namespace

EditHistory EditHistory::load(const fs::path& folder, Journal journal, const ModelConfig& config) {
  EditHistory history{std::move(journal)};
  // without batches there is no such folder, and nothing is missing for later ones
  history.has_solved_ = history.journal_.batches().empty() || fs::exists(folder / kSolvedFolder);
  for (const BatchEntry& entry : history.journal_.batches()) {
    EditedBatch& batch = history.batches_.emplace_back();
    batch.changes = read_changes_file(file_of(folder, kChangesFolder, entry.changes), entry.changes, config);
    if (history.has_solved_)
      read_solved_file(file_of(folder, kSolvedFolder, entry.solved), entry.solved, config, batch);
    try {
      check_belongs(entry, batch);
    } catch (const CheckpointError& error) {
      throw CheckpointError(cat(file_of(folder, kChangesFolder, entry.changes).string(), ": ", error.what(), ": ",
                                kJournalFile, " and files of edits/ were mixed up"));
    }
  }
  if (const std::string& finish = history.journal_.finish(); !finish.empty())
    history.finish_ = read_changes_file(file_of(folder, kChangesFolder, finish), finish, config);
  return history;
}

void EditHistory::add(BatchEntry entry, EditedBatch batch, const ModelConfig& config) {
  entry.changes = changes_file(batch.changes, config).hash();
  entry.solved = solved_file(batch, config).hash();
  journal_.add_batch(entry);
  batches_.push_back(std::move(batch));
  finish_.clear();
}

void EditHistory::set_finish(std::vector<WeightChanges> changes, const ModelConfig& config) {
  const std::string hash = changes.empty() ? "" : changes_file(changes, config).hash();
  if (hash != journal_.finish()) journal_.add_finish(hash);
  finish_ = std::move(changes);
}

void EditHistory::forget_last_batch(std::vector<WeightChanges> finish) {
  journal_.forget_last_batch();
  batches_.pop_back();
  finish_ = std::move(finish);
}

void EditHistory::undo(const UndoEntry& undo) {
  journal_.undo(undo);
  batches_.resize(undo.keeps);
  finish_.clear();
}

EditorState EditHistory::state(EditorState fresh) const {
  for (const EditedBatch& batch : batches_) advance(fresh, batch.state);
  return fresh;
}

std::vector<WeightChanges> EditHistory::changes() const {
  std::vector<WeightChanges> all;
  for (const EditedBatch& batch : batches_) append(all, batch.changes);
  return all;
}

std::vector<WeightChanges> EditHistory::all_changes() const {
  std::vector<WeightChanges> all = changes();
  append(all, finish_);
  return all;
}

void EditHistory::write(const fs::path& folder, const ModelConfig& config, const HistoryWriting& options) const {
  const bool writes_solved = has_solved_ && options.parts == HistoryParts::kAll && !batches_.empty();
  if (!batches_.empty() || !finish_.empty()) make_folders(folder / kChangesFolder);
  if (writes_solved) make_folders(folder / kSolvedFolder);
  for (size_t i = 0; i < batches_.size(); ++i) {
    const BatchEntry& entry = journal_.batches()[i];
    put([&] { return changes_file(batches_[i].changes, config); }, file_of(folder, kChangesFolder, entry.changes),
        options.earlier);
    if (writes_solved)
      put([&] { return solved_file(batches_[i], config); }, file_of(folder, kSolvedFolder, entry.solved),
          options.earlier);
  }
  if (!finish_.empty()) changes_file(finish_, config).write(file_of(folder, kChangesFolder, journal_.finish()));
  write_text_file(folder / kJournalFile, journal_.text());
}

}  // namespace lancet
