// What commands that make a model of edits that are data have in common.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "lancet/history/apply_job.h"

namespace lancet::cli {

/// The end of such a command: warnings, metrics, where it was written.
ExitCode show_made(const MadeOutput& made, const Output& output);

/// What is made, and of what; its processes.
struct MadeArguments {
  std::string model;  ///< the base; empty: where the edits' lay
  OutputArguments output;
  std::vector<std::string> overrides;  ///< changes of the job that the edits were made by
  Output shown;
  RankArguments ranks;
};

/// Adds --out, which `help` describes, and --replace; the base model, whose flag is `base`; --set; what is shown; what
/// ranks need. Returns --out.
Argument add_made_options(CLI::App& command, MadeArguments& made, const std::string& base, const std::string& help);

}  // namespace lancet::cli
