// What killed processes left: temporary files, staging folders, and targets that were moved aside. All of them have the
// process's id in their name, and are locked (flock) while the process lives. A leftover is one whose process is gone
// and whose lock is free; the id alone means nothing to another container or machine that shares the folder. If nothing
// can be locked (on some network file systems), leftovers stay. Defined in unfinished_folder.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lancet/io/output_folder.h"

namespace lancet {

/// Returns ".lancet-<pid>-<counter>.tmp", with this process's id.
std::string temporary_name(uint64_t counter);
bool is_temporary_name(std::string_view name);
/// Best effort: what cannot be removed stays, and does no harm.
void remove_stale_temporaries(const std::filesystem::path& folder);

/// Returns ".<target>.lancet-", the beginning of a staging folder's name, which is followed by its process's id.
std::string staging_prefix(const std::filesystem::path& target);
/// Returns the path to which the old target is moved for the moment in which the new one takes its place.
std::filesystem::path aside_of(const std::filesystem::path& target);
/// Returns the file that is locked while the target is written.
std::filesystem::path lock_of(const std::filesystem::path& target);
/// Removes the lock of a process that was killed. Best effort.
void remove_free_lock(const std::filesystem::path& target);
/// Whether the name is ".<target>.lancet-<pid>", "...-<pid>-<n>" or "...-old-<pid>".
bool is_staging_name(std::string_view name, const std::filesystem::path& target);

/// Removes staging folders of the target, and earlier targets that were replaced, if lancet wrote them. An earlier
/// target that was moved aside is moved back if the new one is missing. Also removes temporary files beside the target.
/// Best effort.
void recover_target(const std::filesystem::path& target, const OutputKind& kind);

}  // namespace lancet
