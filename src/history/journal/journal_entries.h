// The journal's entries as JSON. What an entry holds is a table: each is held to it once, before anything is read from
// it.
#pragma once

#include <nlohmann/json.hpp>

#include "lancet/journal/journal.h"

namespace lancet {

using EntryJson = nlohmann::ordered_json;

/// What an entry is, as its "kind" says.
namespace entry_kind {
inline constexpr const char *kBase = "base", *kSetting = "setting", *kBatch = "batch", *kFinish = "finish",
                            *kMeasure = "measure", *kUndo = "undo", *kEnd = "end";
}  // namespace entry_kind

/// Throws: ConfigError "PLACE: expected ..., got ..." for a value that is absent or of another type than lancet writes.
/// The same where a batch's report is not of its edits, or a setting's job has no sections of a job.
/// Entries of unknown kinds, and keys that the table does not have, are not looked at.
void check_entry(const EntryJson& entry);

EntryJson to_entry(const JournalBase& base);
EntryJson to_entry(const EditSetting& setting);
EntryJson to_entry(const BatchEntry& batch);
EntryJson to_entry(const UndoEntry& undo);
EntryJson measure_entry(const std::string& on, const std::vector<WeightHash>& weights,
                        const std::map<std::string, MeasuredEdit>& edits);

/// The inverse ones, of what check_entry() let pass. Throw: nlohmann's exceptions and ConfigError for what no entry
/// has.
JournalBase base_of_entry(const EntryJson& entry);
EditSetting setting_of_entry(const EntryJson& entry);
/// Returns the weights of a batch or a measure.
std::vector<WeightHash> weights_of_entry(const EntryJson& entry);
BatchEntry batch_of_entry(const EntryJson& entry);
UndoEntry undo_of_entry(const EntryJson& entry);
std::map<std::string, MeasuredEdit> measured_of_entry(const EntryJson& entry);

}  // namespace lancet
