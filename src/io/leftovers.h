// What killed processes left: temporary files, staging folders, and targets that stepped aside. All of them carry the
// id of their process in their name and are locked (flock) while it lives. A leftover is one whose process is gone and
// whose lock is free: an id alone means nothing to another container or machine that shares the folder. Where nothing
// can be locked (some network file systems), leftovers stay. Defined in unfinished_folder.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lancet/io/output_folder.h"

namespace lancet {

/// ".lancet-<pid>-<counter>.tmp", with this process's id.
std::string temporary_name(uint64_t counter);
bool is_temporary_name(std::string_view name);
/// Best effort: what cannot be removed stays, and harms nobody.
void remove_stale_temporaries(const std::filesystem::path& folder);

/// ".<target>.lancet-": a staging folder's name, before its process's id.
std::string staging_prefix(const std::filesystem::path& target);
/// Returns where the old target lies for the moment in which the new one takes its place.
std::filesystem::path aside_of(const std::filesystem::path& target);
/// The file that whoever writes the target locks.
std::filesystem::path lock_of(const std::filesystem::path& target);
/// Removes the lock of a process that was killed. Best effort.
void remove_free_lock(const std::filesystem::path& target);
/// ".<target>.lancet-<pid>", "...-<pid>-<n>" and "...-old-<pid>".
bool is_staging_name(std::string_view name, const std::filesystem::path& target);

/// Removes staging folders of the target and, by what lancet wrote, earlier targets that were replaced; one that
/// stepped aside for a new one that never came is put back. Temporary files beside the target go too. Best effort.
void recover_target(const std::filesystem::path& target, const OutputKind& kind);

}  // namespace lancet
