// What commands that make a model of edits that are data have in common.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "lancet/history/apply_job.h"

namespace lancet::cli {

/// The end of such a command: warnings, metrics, where it was written.
ExitCode show_made(const MadeOutput& made, const Output& output);

/// --set, of the job that the edits were made by.
void add_made_overrides(CLI::App& command, std::vector<std::string>& overrides);

}  // namespace lancet::cli
