// `<output>.unfinished`: what a run has finished before its output is whole, so that the next one of the same job finds
// it. A manifest says that it is lancet's; only files that lancet gives such names are ever taken away.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/io/output_folder.h"

namespace lancet {

std::filesystem::path unfinished_folder(const std::filesystem::path& output);

/// The folder in it that holds where a job of several batches stands.
inline constexpr const char* kProgressFolder = "progress";
inline constexpr OutputKind kProgressKind{"progress", "progress.json", "lancet-progress-"};

/// Touches nothing. Throws: ConfigError when something else has the name, or anything lies in it that lancet does not
/// write there, which is named.
void check_unfinished(const std::filesystem::path& folder);
/// Makes it where it is not. Ranks may do so at once. Throws: as check_unfinished(); CheckpointError when the disk
/// refuses.
void make_unfinished(const std::filesystem::path& folder);
/// Removes it with what lancet wrote there. What else is in it stays, with a warning. Ranks may do so at once. Best
/// effort: a removal that is cut short leaves a folder that check_unfinished() takes.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace lancet
