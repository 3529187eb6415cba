// A line is {"parent":"HASH","entry":{...},"hash":"HASH"}. The hash is that of the line up to itself, so a line that
// was changed, moved or removed is noticed. The last entry has the number of the others, so missing lines at the end
// are noticed, too.
#include "lancet/journal/journal.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <stdexcept>

#include "journal_entries.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_output.h"
#include "lancet/requests/same_fact.h"

namespace lancet {
namespace {

/// Names, in the order of UndoMode.
constexpr const char* kUndoModes[] = {"last", "downdate", "replay"};

constexpr std::string_view kHashKey = ",\"hash\":\"";

std::string hash_of_line(std::string_view begin) { return ContentHash().add("lancet-journal").add(begin).hex(); }

/// Returns the line without a newline. `parent` is set to the line's hash.
std::string line_of(const EntryJson& entry, std::string& parent) {
  std::string line =
      cat("{\"parent\":\"", parent, "\",\"entry\":", entry.dump(-1, ' ', false, EntryJson::error_handler_t::replace));
  parent = hash_of_line(line);
  return cat(line, kHashKey, parent, "\"}");
}

/// Returns the entry of a line. Throws: ConfigError; JsonProblem.
EntryJson from_line(std::string_view line, std::string& parent) {
  const size_t place = line.rfind(kHashKey);
  if (place == std::string_view::npos || !line.ends_with("\"}")) throw ConfigError("the line is cut short");
  const std::string hash = hash_of_line(line.substr(0, place));
  if (line.substr(place + kHashKey.size()) != hash + "\"}")
    throw ConfigError("the line has not the hash that it was written with: it was changed");
  EntryJson json = parse_ordered_json(line);
  if (json.at("parent") != parent)
    throw ConfigError("it does not go on from the line before it: lines were moved, left out or added");
  parent = hash;
  return std::move(json.at("entry"));
}

}  // namespace

Journal::Journal(JournalBase base) { add_own(to_entry(base)); }

Journal Journal::read(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kJournalFile;
  std::string text;
  try {
    text = read_text_file(path, "journal");
  } catch (const ConfigError& error) {
    throw CheckpointError(error.what());
  }
  Journal journal{JournalBase{}};
  journal.entries_.clear();
  std::string parent;
  bool has_end = false;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    try {
      if (end == text.size()) throw ConfigError("the line is cut short");
      if (has_end) throw ConfigError("it stands after the end");
      EntryJson entry = from_line(line, parent);
      has_end = entry.at("kind") == entry_kind::kEnd;
      if (has_end && journal.entries_.empty()) throw ConfigError("expected the base, got the end");
      if (has_end && entry.at("entries") != journal.entries_.size())
        throw ConfigError(cat("expected ", entry.at("entries").dump(), " entries before it, got ", number));
      if (!has_end) journal.add(std::move(entry));
    } catch (const std::exception& error) {
      throw CheckpointError(cat(path.string(), ": line ", number + 1, ": ", printable(error.what()),
                                "; take the folder edits/ from a copy of the output"));
    }
  }
  if (!has_end)
    throw CheckpointError(
        cat(path.string(), ": its end is missing: it was cut; take the folder edits/ from a copy of the output"));
  return journal;
}

void Journal::add(EntryJson entry) {
  apply(entry);
  entries_.push_back(std::move(entry));
}

/// Adds an entry in the form in which it will be read again: text that is not UTF-8 and numbers that are not finite
/// change when they are written.
void Journal::add_own(const EntryJson& entry) {
  std::string written, read;
  try {
    add(from_line(line_of(entry, written), read));
  } catch (const std::exception& error) {
    throw std::logic_error(cat("journal: an entry that nobody could read: ", error.what()));
  }
}

void Journal::apply(const EntryJson& entry) {
  check_entry(entry);
  const auto kind = entry.at("kind").get<std::string>();
  if ((kind == entry_kind::kBase) != entries_.empty())
    throw ConfigError(cat("expected ", entries_.empty() ? "the base" : "another entry", ", got ", kind));
  if (kind == entry_kind::kBase) {
    base_ = base_of_entry(entry);
  } else if (kind == entry_kind::kSetting) {
    settings_.push_back(setting_of_entry(entry));
  } else if (kind == entry_kind::kBatch) {
    BatchEntry batch = batch_of_entry(entry);
    if (batch.edits.empty()) throw ConfigError("a batch without edits");
    if (batch.setting >= settings_.size()) throw ConfigError(cat("setting ", batch.setting, ": there is none"));
    std::set<std::string> ids = ids_;
    for (const EditRecord& edit : batch.edits)
      if (!ids.insert(edit.request.id).second)
        throw ConfigError(cat("edit ", printable(edit.request.id), ": one of this id stands already"));
    ids_ = std::move(ids);
    batches_.push_back(std::move(batch));
    finish_.clear();
    measured_weights_.clear();
  } else if (kind == entry_kind::kFinish) {
    finish_ = entry.at("changes");
  } else if (kind == entry_kind::kMeasure) {
    auto on = entry.at("on").get<std::string>();
    std::vector<WeightHash> weights = weights_of_entry(entry);
    auto measured = measured_of_entry(entry);
    for (const auto& [id, edit] : measured)
      if (!has(id)) throw ConfigError(cat("measured: edit ", printable(id), ": none of this id stands"));
    measured_on_ = std::move(on);
    measured_weights_ = std::move(weights);
    for (auto& [id, edit] : measured) measured_[id] = std::move(edit);
  } else if (kind == entry_kind::kUndo) {
    UndoEntry undo = undo_of_entry(entry);
    if (undo.keeps > batches_.size())
      throw ConfigError(cat("keeps: expected at most ", batches_.size(), " batches, got ", undo.keeps));
    std::set<std::string> after;
    for (size_t i = undo.keeps; i < batches_.size(); ++i)
      for (const EditRecord& edit : batches_[i].edits) after.insert(edit.request.id);
    for (const std::string& id : undo.edits)
      if (!after.contains(id))
        throw ConfigError(cat("undone: edit ", printable(id), ": none of this id stands in the batches after"));
    for (const std::string& id : after) ids_.erase(id);
    batches_.resize(undo.keeps);
    finish_.clear();
    measured_weights_.clear();
    if (undo.mode == UndoMode::kLast)
      for (const std::string& id : after) measured_.erase(id);
    for (const std::string& id : undo.edits) measured_.erase(id);
    undone_.push_back(std::move(undo));
  } else {
    throw ConfigError(cat("kind: ", printable(kind), ": a later version of lancet wrote it"));
  }
}

size_t Journal::add_setting(const EditSetting& setting) {
  const auto known = std::find(settings_.begin(), settings_.end(), setting);
  const auto place = static_cast<size_t>(known - settings_.begin());
  if (known == settings_.end()) add_own(to_entry(setting));
  return place;
}

void Journal::add_batch(const BatchEntry& batch) { add_own(to_entry(batch)); }

void Journal::forget_last_batch() {
  if (batches_.empty()) throw std::logic_error("no batch to forget");
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(),
                                 [](const EntryJson& entry) { return entry.at("kind") == entry_kind::kBatch; });
  const std::vector<EntryJson> left(entries_.begin(), last.base() - 1);
  *this = Journal(base_);
  for (size_t i = 1; i < left.size(); ++i) add(left[i]);
}

void Journal::set_last_report(nlohmann::ordered_json report) {
  if (entries_.empty() || entries_.back().at("kind") != entry_kind::kBatch)
    throw std::logic_error("no batch was added last");
  EntryJson entry = entries_.back();
  entry["report"] = report;
  try {
    check_entry(entry);
  } catch (const ConfigError& error) {
    throw std::logic_error(cat("journal: a report that nobody could read: ", error.what()));
  }
  entries_.back() = std::move(entry);
  batches_.back().report = std::move(report);
}

std::vector<EditRequest> Journal::requests() const {
  std::vector<EditRequest> requests;
  for (const BatchEntry& batch : batches_)
    for (const EditRecord& edit : batch.edits) requests.push_back(edit.request);
  return requests;
}

std::vector<std::vector<EditRequest>> Journal::undone_requests() const {
  std::vector<std::vector<EditRequest>> undone;
  std::map<std::string, EditRequest> latest;  // by id, because an id can be used again after its edit was taken back
  for (const EntryJson& entry : entries_) {
    if (undone_.empty()) break;
    const std::string kind = entry.at("kind");
    if (kind == entry_kind::kBatch) {
      for (EditRecord& edit : batch_of_entry(entry).edits) latest[edit.request.id] = std::move(edit.request);
    } else if (kind == entry_kind::kUndo) {
      undone.emplace_back();
      for (const std::string& id : undo_of_entry(entry).edits) undone.back().push_back(latest.at(id));
    }
  }
  return undone;
}

void Journal::add_finish(const std::string& changes) { add_own({{"kind", entry_kind::kFinish}, {"changes", changes}}); }

void Journal::add_measure(const std::string& on, const std::vector<WeightHash>& weights,
                          const std::map<std::string, MeasuredEdit>& edits) {
  add_own(measure_entry(on, weights, edits));
}

void Journal::undo(const UndoEntry& undo) { add_own(to_entry(undo)); }

std::string Journal::text() const {
  std::string text, parent;
  for (const EntryJson& entry : entries_) text += line_of(entry, parent) + "\n";
  text += line_of({{"kind", entry_kind::kEnd}, {"entries", entries_.size()}}, parent) + "\n";
  return text;
}

std::optional<std::filesystem::path> find_journal(const std::filesystem::path& edits) {
  std::error_code error;
  const std::filesystem::path output = existing_output(edits).folder;
  for (const std::filesystem::path& folder : {output / kEditsFolder, output})
    if (std::filesystem::exists(folder / kJournalFile, error)) return folder;
  return std::nullopt;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::vector<std::string> new_ids(const Journal& journal, std::span<const std::string> taken, size_t count) {
  int64_t next = 0;
  const auto go_beyond = [&](const std::string& id) {
    if (const std::optional<int64_t> number = parse_whole_number(id); number && *number < INT64_MAX)
      next = std::max(next, *number + 1);
  };
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits) go_beyond(edit.request.id);
  for (const UndoEntry& undo : journal.undone()) std::ranges::for_each(undo.edits, go_beyond);
  std::ranges::for_each(taken, go_beyond);
  std::vector<std::string> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(std::to_string(next++));
  return ids;
}

ReplacedEdits replaced_edits(const Journal& journal) {
  std::map<std::string, const EditRequest*> latest;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits)
      for (const std::string& key : fact_keys(edit.request)) latest[key] = &edit.request;
  ReplacedEdits replaced;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits)
      for (const std::string& key : fact_keys(edit.request))
        if (const EditRequest& last = *latest.at(key); !has_same_target(edit.request, last))
          replaced.emplace(edit.request.id, last.id);
  return replaced;
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
  json["success"] = measured.success ? EntryJson(*measured.success) : EntryJson(nullptr);
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

}  // namespace lancet
