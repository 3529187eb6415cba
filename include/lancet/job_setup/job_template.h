// Makes a job to start from: settings that fit a model, comments, and places for the user's facts and text.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/models/model_files.h"

namespace lancet {

struct JobTemplateOptions {
  std::filesystem::path requests;  ///< a file of facts; empty: the job contains examples
  std::filesystem::path out = {};  ///< empty: a folder beside the job
  /// Where the job will be; its paths are relative to it. Empty: its paths are absolute.
  std::filesystem::path job = {};
};

/// Returns YAML that runs unchanged; with absolute paths it runs from any place. The editor's options are those of the
/// model's lancet.yaml, of a preset, or the method's automatic ones. Throws: ConfigError if the file of facts or
/// lancet.yaml cannot be read.
std::string make_job_template(const ModelFiles& files, const JobTemplateOptions& options);

}  // namespace lancet
