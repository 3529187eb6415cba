// `<output>.unfinished`: keeps what a run has finished before its output is complete, so that the next run of the same
// job can use it. A manifest marks the folder as lancet's. Only files with names that lancet uses are ever removed.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/io/output_folder.h"

namespace lancet {

std::filesystem::path unfinished_folder(const std::filesystem::path& output);

/// The folder in it with the progress of a job of several batches.
inline constexpr const char* kProgressFolder = "progress";
inline constexpr OutputKind kProgressKind{"progress"};
/// The file in that folder without which nothing else in it is used.
inline constexpr const char* kProgressFile = "progress.json";

/// Checks the folder without changing it. Throws: ConfigError if something else has the name, or if it holds something
/// that lancet does not write there, which is named.
void check_unfinished(const std::filesystem::path& folder);
/// Makes the folder if it does not exist. Ranks may do so at the same time. Throws: as check_unfinished();
/// CheckpointError if writing fails.
void make_unfinished(const std::filesystem::path& folder);
/// Removes the folder with what lancet wrote there. Other entries stay, with a warning. Ranks may do so at the same
/// time. Best effort: an interrupted removal leaves a folder that check_unfinished() accepts.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace lancet
