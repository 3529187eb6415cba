// The journal's entries as JSON. A table says what an entry has. Each entry is checked against it once, before anything
// is read from it.
#pragma once

#include <nlohmann/json.hpp>

#include "lancet/journal/journal.h"

namespace lancet {

using EntryJson = nlohmann::ordered_json;

/// The kinds of entries, the values of "kind".
namespace entry_kind {
inline constexpr const char *kBase = "base", *kSetting = "setting", *kBatch = "batch", *kFinish = "finish",
                            *kMeasure = "measure", *kUndo = "undo", *kEnd = "end";
}  // namespace entry_kind

/// Throws: ConfigError "PLACE: expected ..., got ..." if a value is missing or has another type than lancet writes, if
/// a batch's report does not fit its edits, or if the job of a setting lacks a job's sections. Entries of unknown
/// kinds, and keys that the table does not have, are ignored.
void check_entry(const EntryJson& entry);

EntryJson to_entry(const JournalBase& base);
EntryJson to_entry(const EditSetting& setting);
EntryJson to_entry(const BatchEntry& batch);
EntryJson to_entry(const UndoEntry& undo);
EntryJson measure_entry(const std::string& on, const std::vector<WeightHash>& weights,
                        const std::map<std::string, MeasuredEdit>& edits);

/// The inverse functions, for entries that check_entry() accepted. Throw: exceptions of nlohmann::json, and ConfigError
/// for values that no entry can have.
JournalBase base_of_entry(const EntryJson& entry);
EditSetting setting_of_entry(const EntryJson& entry);
/// Returns the weights of a batch or of a measure.
std::vector<WeightHash> weights_of_entry(const EntryJson& entry);
BatchEntry batch_of_entry(const EntryJson& entry);
UndoEntry undo_of_entry(const EntryJson& entry);
std::map<std::string, MeasuredEdit> measured_of_entry(const EntryJson& entry);

}  // namespace lancet
