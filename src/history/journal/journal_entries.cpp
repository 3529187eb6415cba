#include "journal_entries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "lancet/core/config_tree.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/spec/job_spec.h"

namespace lancet {
namespace {

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
  edit.prompt_ids = json.at("prompt_ids").get<std::vector<int64_t>>();
  edit.target_ids = json.at("target_ids").get<std::vector<int64_t>>();
  edit.lookup = json.at("lookup");
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
  batch.setting = entry.at("setting");
  batch.when = entry.at("when");
  for (const EntryJson& edit : entry.at("edits")) batch.edits.push_back(record_of(edit));
  batch.columns = entry.at("columns").get<std::vector<int64_t>>();
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
                    {"success", edit.success ? EntryJson(*edit.success) : EntryJson(nullptr)},
                    {"why", edit.why}});
  return {{"kind", entry_kind::kMeasure}, {"on", on}, {"weights", weights_json(weights)}, {"edits", list}};
}

std::map<std::string, MeasuredEdit> measured_of_entry(const EntryJson& entry) {
  std::map<std::string, MeasuredEdit> edits;
  for (const EntryJson& edit : entry.at("edits")) {
    MeasuredEdit measured;
    measured.before = shares_of(edit.at("before"));
    measured.after = shares_of(edit.at("after"));
    if (!edit.at("success").is_null()) measured.success = edit.at("success").get<bool>();
    measured.why = edit.at("why");
    measured.when = edit.at("when");
    edits[edit.at("id").get<std::string>()] = std::move(measured);
  }
  return edits;
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
  undo.keeps = entry.at("keeps");
  undo.edits = entry.at("edits").get<std::vector<std::string>>();
  undo.approximation = entry.at("gives_up");
  return undo;
}

namespace {

/// The types of values. Whole numbers must be whole and fit into 63 bits. Sums of counts stay far below that.
enum class EntryType { kText, kWhole, kCount, kNumber, kNumberOrNull, kFlagOrNull, kMap, kPair };

constexpr int64_t kLargestCount = int64_t{1} << 40;

/// A value of an entry, by its place: "edits[].lookup" is in each element of a list, "before{}" is each value of a map,
/// "[2]" is the third element of a list. What follows "?" is present unless the value before it is null.
struct EntryField {
  std::string_view kind;
  std::string_view place;
  EntryType type;
};

constexpr EntryField kEntryFields[] = {
    {entry_kind::kBase, "format", EntryType::kText},
    {entry_kind::kBase, "weights", EntryType::kText},
    {entry_kind::kBase, "config", EntryType::kText},
    {entry_kind::kBase, "tokenizer", EntryType::kText},
    {entry_kind::kBase, "folder", EntryType::kText},
    {entry_kind::kSetting, "method", EntryType::kText},
    {entry_kind::kSetting, "editor", EntryType::kText},
    {entry_kind::kSetting, "job", EntryType::kText},
    {entry_kind::kSetting, "contexts[]", EntryType::kText},
    {entry_kind::kSetting, "statistics", EntryType::kText},
    {entry_kind::kSetting, "dtype", EntryType::kText},
    {entry_kind::kSetting, "version", EntryType::kText},
    {entry_kind::kBatch, "setting", EntryType::kCount},
    {entry_kind::kBatch, "when", EntryType::kText},
    {entry_kind::kBatch, "edits[].request", EntryType::kMap},
    {entry_kind::kBatch, "edits[].request.id", EntryType::kText},
    {entry_kind::kBatch, "edits[].prompt_ids[]", EntryType::kCount},
    {entry_kind::kBatch, "edits[].target_ids[]", EntryType::kCount},
    {entry_kind::kBatch, "edits[].lookup", EntryType::kWhole},
    {entry_kind::kBatch, "columns[]", EntryType::kCount},
    {entry_kind::kBatch, "changes", EntryType::kText},
    {entry_kind::kBatch, "solved", EntryType::kText},
    {entry_kind::kBatch, "weights[]", EntryType::kPair},
    // to_record() writes it (outcome/batch_report.h); numbers that were not finite are null
    {entry_kind::kBatch, "report?.seconds", EntryType::kNumber},
    {entry_kind::kBatch, "report?.outcome.requests[][0]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.requests[][1]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.requests[][2]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.requests[][3]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.requests[][4]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.requests[][5][]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.requests[][6]", EntryType::kText},
    {entry_kind::kBatch, "report?.outcome.requests[][7]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.requests[][8][][0]", EntryType::kWhole},
    {entry_kind::kBatch, "report?.outcome.requests[][8][][1]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.chosen[][0]", EntryType::kText},
    {entry_kind::kBatch, "report?.outcome.chosen[][1]", EntryType::kWhole},
    {entry_kind::kBatch, "report?.outcome.chosen[][2]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.outcome.values[0]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.values[1]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.values[2]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.values[3]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.columns[]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.shared_keys[][0]", EntryType::kText},
    {entry_kind::kBatch, "report?.outcome.shared_keys[][1][][]", EntryType::kCount},
    {entry_kind::kBatch, "report?.outcome.warnings[]", EntryType::kText},
    {entry_kind::kBatch, "report?.right_after?{}[0]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.right_after?{}[1]", EntryType::kCount},
    {entry_kind::kBatch, "report?.first_batch?{}[0]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.first_batch?{}[1]", EntryType::kCount},
    {entry_kind::kBatch, "report?.growth[][0]", EntryType::kText},
    {entry_kind::kBatch, "report?.growth[][1]", EntryType::kNumberOrNull},
    {entry_kind::kBatch, "report?.text_kl", EntryType::kNumberOrNull},
    {entry_kind::kFinish, "changes", EntryType::kText},
    {entry_kind::kMeasure, "on", EntryType::kText},
    {entry_kind::kMeasure, "weights[]", EntryType::kPair},
    {entry_kind::kMeasure, "edits[].id", EntryType::kText},
    {entry_kind::kMeasure, "edits[].when", EntryType::kText},
    {entry_kind::kMeasure, "edits[].before{}", EntryType::kNumber},
    {entry_kind::kMeasure, "edits[].after{}", EntryType::kNumber},
    {entry_kind::kMeasure, "edits[].success", EntryType::kFlagOrNull},
    {entry_kind::kMeasure, "edits[].why", EntryType::kText},
    {entry_kind::kUndo, "when", EntryType::kText},
    {entry_kind::kUndo, "mode", EntryType::kText},
    {entry_kind::kUndo, "keeps", EntryType::kCount},
    {entry_kind::kUndo, "edits[]", EntryType::kText},
    {entry_kind::kUndo, "gives_up", EntryType::kText},
};

[[noreturn]] void refuse_entry(std::string_view place, const char* expected, const EntryJson* got) {
  const std::string shown = got == nullptr ? "nothing" : got->dump(-1, ' ', false, EntryJson::error_handler_t::replace);
  std::string name(place);
  std::erase(name, '?');
  throw ConfigError(cat(name, ": expected ", expected, ", got ", printable(shown)));
}

bool is_whole(const EntryJson& value) {
  return value.is_number_integer() &&
         !(value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max());
}

bool is_finite_number(const EntryJson& value) { return value.is_number() && std::isfinite(value.get<double>()); }

bool is_pair_of_texts(const EntryJson& value) {
  return value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string();
}

void check_entry_value(std::string_view place, EntryType type, const EntryJson& value) {
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) refuse_entry(place, expected, &value);
  };
  switch (type) {
    case EntryType::kText:
      return expect(value.is_string(), "text");
    case EntryType::kWhole:
      return expect(is_whole(value), "a whole number");
    case EntryType::kCount:
      return expect(is_whole(value) && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kLargestCount,
                    "a whole number from 0 to 2^40");
    case EntryType::kNumber:
      return expect(is_finite_number(value), "a number");
    case EntryType::kNumberOrNull:
      return expect(value.is_null() || is_finite_number(value), "a number or null");
    case EntryType::kFlagOrNull:
      return expect(value.is_null() || value.is_boolean(), "true, false or null");
    case EntryType::kMap:
      return expect(value.is_object(), "a map");
    case EntryType::kPair:
      return expect(is_pair_of_texts(value), "two texts");
  }
}

void check_entry_place(const EntryField& field, std::string_view rest, const EntryJson& value);

/// Checks what the brackets mean: each element of a list, each value of a map, or one element.
void check_entry_elements(const EntryField& field, std::string_view rest, const EntryJson& value) {
  const bool is_map = rest.front() == '{';
  if (is_map ? !value.is_object() : !value.is_array()) refuse_entry(field.place, is_map ? "a map" : "a list", &value);
  const size_t end = rest.find(is_map ? '}' : ']');
  const std::string_view after = rest.substr(end + 1);
  if (end == 1) {
    for (const EntryJson& element : value) check_entry_place(field, after, element);
    return;
  }
  const auto index = static_cast<size_t>(rest[1] - '0');
  if (index >= value.size()) refuse_entry(field.place, "a value", nullptr);
  check_entry_place(field, after, value[index]);
}

/// `rest`: the rest of field.place, from its next name, brackets or "?" on.
void check_entry_place(const EntryField& field, std::string_view rest, const EntryJson& value) {
  if (rest.empty()) return check_entry_value(field.place, field.type, value);
  if (rest.starts_with('?')) {
    if (!value.is_null()) check_entry_place(field, rest.substr(1), value);
    return;
  }
  if (rest.starts_with('[') || rest.starts_with('{')) return check_entry_elements(field, rest, value);
  if (rest.starts_with('.')) rest.remove_prefix(1);
  const std::string_view name = rest.substr(0, rest.find_first_of(".[{?"));
  if (!value.is_object()) refuse_entry(field.place, "a map", &value);
  const auto found = value.find(std::string(name));
  if (found == value.end()) refuse_entry(field.place, "a value", nullptr);
  check_entry_place(field, rest.substr(name.size()), *found);
}

/// Checks a place that is an index of the batch's edits.
void check_report_place(std::string_view place, const EntryJson& value, size_t n_edits) {
  if (value.get<uint64_t>() >= n_edits) refuse_entry(place, cat("a place among ", n_edits, " edits").c_str(), &value);
}

/// Checks that the report of a batch fits the batch's edits. The types of its values have been checked.
void check_report(const EntryJson& entry) {
  const EntryJson& report = entry.at("report");
  if (report.is_null()) return;
  const size_t n_edits = entry.at("edits").size();
  const EntryJson& outcome = report.at("outcome");
  if (const size_t n = outcome.at("requests").size(); n != n_edits)
    throw ConfigError(cat("report.outcome.requests: expected ", n_edits, ", as many as edits, got ", n));
  for (const EntryJson& column : outcome.at("columns")) check_report_place("report.outcome.columns", column, n_edits);
  for (const EntryJson& keys : outcome.at("shared_keys"))
    for (const EntryJson& group : keys.at(1))
      for (const EntryJson& edit : group) check_report_place("report.outcome.shared_keys", edit, n_edits);
}

/// Checks that the sections of a job that are maps of options are maps. The options are checked when a job is made from
/// them.
void check_job(const EntryJson& entry) {
  const auto& text = entry.at("job").get_ref<const std::string&>();
  if (text.empty()) return;
  const ConfigTree job = parse_config(text, "job");
  if (job.kind != ConfigTree::Kind::kMap) throw ConfigError(cat("job: expected a map, got ", printable(text)));
  for (const AnyOption& option : JobSpec::kAll) {
    const auto* const section = std::get_if<const SectionOption*>(&option);
    const ConfigTree* const value = job.find(base_of(option).key);
    if (section == nullptr || value == nullptr || value->kind == ConfigTree::Kind::kNull) continue;
    const bool may_be_list = (*section)->shape == Shape::kKeysOrNames || (*section)->shape == Shape::kKeysOrRecords;
    if (value->kind != ConfigTree::Kind::kMap && !(may_be_list && value->kind == ConfigTree::Kind::kList))
      throw ConfigError(cat("job: ", (*section)->key, ": expected a section, got ", printable(to_line(*value))));
  }
}

}  // namespace

void check_entry(const EntryJson& entry) {
  if (!entry.is_object()) refuse_entry("entry", "a map", &entry);
  const auto kind = entry.find("kind");
  if (kind == entry.end() || !kind->is_string()) refuse_entry("kind", "text", kind == entry.end() ? nullptr : &*kind);
  for (const EntryField& field : kEntryFields)
    if (kind->get_ref<const std::string&>() == field.kind) check_entry_place(field, field.place, entry);
  if (*kind == entry_kind::kBatch) check_report(entry);
  if (*kind == entry_kind::kSetting) check_job(entry);
}

}  // namespace lancet
