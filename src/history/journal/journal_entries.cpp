#include "journal_entries.h"

#include <algorithm>
#include <limits>

#include "lancet/core/config_tree.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Names in the order of UndoMode.
constexpr const char* kUndoModes[] = {"last", "downdate", "replay"};

/// A number of another kind would be cut to one.
int64_t whole_number(const EntryJson& json) {
  if (!json.is_number_integer() ||
      (json.is_number_unsigned() && json.get<uint64_t>() > std::numeric_limits<int64_t>::max()))
    throw ConfigError(cat("expected a whole number, got ", printable(json.dump())));
  return json.get<int64_t>();
}

size_t count_of(const EntryJson& json) {
  const int64_t count = whole_number(json);
  if (count < 0) throw ConfigError(cat("expected a number from 0 on, got ", count));
  return static_cast<size_t>(count);
}

std::vector<int64_t> whole_numbers(const EntryJson& list) {
  if (!list.is_array()) throw ConfigError(cat("expected a list of whole numbers, got ", printable(list.dump())));
  std::vector<int64_t> numbers;
  for (const EntryJson& number : list) numbers.push_back(whole_number(number));
  return numbers;
}

EntryJson shares_json(const std::map<std::string, double>& shares) {
  EntryJson json = EntryJson::object();
  for (const auto& [metric, share] : shares) json[metric] = share;
  return json;
}

std::map<std::string, double> shares_of(const EntryJson& json) {
  std::map<std::string, double> shares;
  for (const auto& [metric, share] : json.items()) shares[metric] = share.get<double>();
  return shares;
}

EntryJson weights_json(const std::vector<WeightHash>& weights) {
  EntryJson json = EntryJson::array();
  for (const WeightHash& weight : weights) json.push_back({weight.weight, weight.hash});
  return json;
}

EntryJson record_json(const EditRecord& edit) {
  return {{"request", EntryJson::parse(to_json_line(edit.request))},
          {"prompt_ids", edit.prompt_ids},
          {"target_ids", edit.target_ids},
          {"lookup", edit.lookup}};
}

EditRecord record_of(const EntryJson& json) {
  EditRecord edit;
  edit.request = parse_json_line(json.at("request").dump());
  edit.prompt_ids = whole_numbers(json.at("prompt_ids"));
  edit.target_ids = whole_numbers(json.at("target_ids"));
  edit.lookup = whole_number(json.at("lookup"));
  if (edit.lookup < -1 || edit.lookup >= static_cast<int64_t>(edit.prompt_ids.size()))
    throw ConfigError(cat("lookup: expected a place among ", edit.prompt_ids.size(), " ids, got ", edit.lookup));
  return edit;
}

}  // namespace

EntryJson to_entry(const JournalBase& base) {
  return {{"kind", entry_kind::kBase}, {"format", "lancet-edits-1"},  {"weights", base.weights},
          {"config", base.config},     {"tokenizer", base.tokenizer}, {"folder", base.folder}};
}

JournalBase base_of_entry(const EntryJson& entry) {
  if (entry.at("format") != "lancet-edits-1")
    throw ConfigError(
        cat("expected format lancet-edits-1, got ", entry.at("format").dump(), ": a later version of lancet wrote it"));
  return {entry.at("weights"), entry.at("config"), entry.at("tokenizer"), entry.at("folder")};
}

EntryJson to_entry(const EditSetting& setting) {
  return {{"kind", entry_kind::kSetting}, {"method", setting.method},     {"editor", setting.editor},
          {"job", setting.job},           {"contexts", setting.contexts}, {"statistics", setting.statistics},
          {"dtype", setting.dtype},       {"version", setting.version}};
}

EditSetting setting_of_entry(const EntryJson& entry) {
  EditSetting setting{entry.at("method"),     entry.at("editor"), entry.at("job"),    entry.at("contexts"),
                      entry.at("statistics"), entry.at("dtype"),  entry.at("version")};
  if (!setting.editor.empty() && parse_config(setting.editor, "editor").kind != ConfigTree::Kind::kMap)
    throw ConfigError(cat("editor: expected a map, got ", printable(setting.editor)));
  return setting;
}

EntryJson to_entry(const BatchEntry& batch) {
  EntryJson edits = EntryJson::array();
  for (const EditRecord& edit : batch.edits) edits.push_back(record_json(edit));
  return {{"kind", entry_kind::kBatch}, {"setting", batch.setting},
          {"when", batch.when},         {"edits", edits},
          {"columns", batch.columns},   {"changes", batch.changes},
          {"solved", batch.solved},     {"weights", weights_json(batch.weights)},
          {"report", batch.report}};
}

BatchEntry batch_of_entry(const EntryJson& entry) {
  BatchEntry batch;
  batch.setting = count_of(entry.at("setting"));
  batch.when = entry.at("when");
  for (const EntryJson& edit : entry.at("edits")) batch.edits.push_back(record_of(edit));
  batch.columns = whole_numbers(entry.at("columns"));
  for (const int64_t column : batch.columns)
    if (column < 0 || column >= static_cast<int64_t>(batch.edits.size()))
      throw ConfigError(cat("columns: expected places among ", batch.edits.size(), " edits, got ", column));
  batch.changes = entry.at("changes");
  batch.solved = entry.at("solved");
  batch.weights = weights_of_entry(entry);
  batch.report = entry.at("report");
  return batch;
}

std::vector<WeightHash> weights_of_entry(const EntryJson& entry) {
  std::vector<WeightHash> weights;
  for (const EntryJson& weight : entry.at("weights")) weights.push_back({weight.at(0), weight.at(1)});
  return weights;
}

EntryJson measure_entry(const std::string& on, const std::vector<WeightHash>& weights,
                        const std::map<std::string, MeasuredEdit>& edits) {
  EntryJson list = EntryJson::array();
  for (const auto& [id, edit] : edits)
    list.push_back({{"id", id},
                    {"when", edit.when},
                    {"before", shares_json(edit.before)},
                    {"after", shares_json(edit.after)},
                    {"took", edit.success ? EntryJson(*edit.success) : EntryJson(nullptr)},
                    {"why", edit.why}});
  return {{"kind", entry_kind::kMeasure}, {"on", on}, {"weights", weights_json(weights)}, {"edits", list}};
}

std::map<std::string, MeasuredEdit> measured_of_entry(const EntryJson& entry) {
  std::map<std::string, MeasuredEdit> edits;
  for (const EntryJson& edit : entry.at("edits")) {
    MeasuredEdit measured;
    measured.before = shares_of(edit.at("before"));
    measured.after = shares_of(edit.at("after"));
    if (!edit.at("took").is_null()) measured.success = edit.at("took").get<bool>();
    measured.why = edit.at("why");
    measured.when = edit.at("when");
    edits[edit.at("id").get<std::string>()] = std::move(measured);
  }
  return edits;
}

const char* undo_mode_name(UndoMode mode) { return kUndoModes[static_cast<size_t>(mode)]; }

std::optional<UndoMode> find_undo_mode(const std::string& name) {
  const auto* const found = std::find(std::begin(kUndoModes), std::end(kUndoModes), name);
  if (found == std::end(kUndoModes)) return std::nullopt;
  return static_cast<UndoMode>(found - std::begin(kUndoModes));
}

EntryJson describe_edit(const Journal& journal, const EditRecord& edit, const ReplacedEdits& replaced) {
  const auto later = replaced.find(edit.request.id);
  EntryJson json{{"id", edit.request.id},
                 {"subject", edit.request.subject},
                 {"prompt", edit.request.prompt.text},
                 {"target", edit.request.target},
                 {"replaced_by", later == replaced.end() ? EntryJson(nullptr) : EntryJson(later->second)}};
  const auto found = journal.measured().find(edit.request.id);
  if (found == journal.measured().end()) return json;
  const MeasuredEdit& measured = found->second;
  for (const char* name : {"success", "took"})  // the second in an earlier version
    json[name] = measured.success ? EntryJson(*measured.success) : EntryJson(nullptr);
  json["why"] = measured.why;
  json["measured"] = measured.when;
  json["before"] = measured.before;
  json["after"] = measured.after;
  return json;
}

EntryJson describe_undo(const UndoEntry& undo) {
  return {{"when", undo.when},
          {"mode", undo_mode_name(undo.mode)},
          {"edits", undo.edits},
          {"gives_up", undo.approximation}};
}

EntryJson to_entry(const UndoEntry& undo) {
  return {{"kind", entry_kind::kUndo}, {"when", undo.when},   {"mode", undo_mode_name(undo.mode)},
          {"keeps", undo.keeps},       {"edits", undo.edits}, {"gives_up", undo.approximation}};
}

UndoEntry undo_of_entry(const EntryJson& entry) {
  UndoEntry undo;
  undo.when = entry.at("when");
  const auto name = entry.at("mode").get<std::string>();
  const std::optional<UndoMode> mode = find_undo_mode(name);
  if (!mode) throw ConfigError(cat("mode: expected last, downdate or replay, got ", name));
  undo.mode = *mode;
  undo.keeps = count_of(entry.at("keeps"));
  undo.edits = entry.at("edits").get<std::vector<std::string>>();
  undo.approximation = entry.at("gives_up");
  return undo;
}

}  // namespace lancet
