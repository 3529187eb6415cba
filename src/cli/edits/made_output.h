// Shared code of the commands that make a model from stored edits.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "lancet/history/apply_job.h"

namespace lancet::cli {

/// Ends such a command: shows warnings, metrics, and where the model was written.
ExitCode show_made(const MadeOutput& made, const Output& output);

/// What such a command makes, from which edits, and with which processes.
struct MadeArguments {
  std::string model;  ///< the base model; empty: where the edits' base model was
  OutputArguments output;
  std::vector<std::string> overrides;  ///< changes of the job that made the edits
  Output shown;
  RankArguments ranks;
};

/// Adds --out, which `help` describes, and --replace; the base model, with the flag `base`; --set; the options of
/// output and of ranks. Returns --out.
Argument add_made_options(CLI::App& command, MadeArguments& made, const std::string& base, const std::string& help);

}  // namespace lancet::cli
