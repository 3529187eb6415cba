// What an entry of the journal holds, as a table: each is held to it once, before anything is read from it.
#pragma once

#include "journal_entries.h"

namespace lancet {

/// Throws: ConfigError "PLACE: expected ..., got ..." for a value that is absent or of another type than lancet writes.
/// The same where a batch's report is not of its edits, or a setting's job has no sections of a job.
/// Entries of unknown kinds, and keys that the table does not have, are not looked at.
void check_entry(const EntryJson& entry);

}  // namespace lancet
