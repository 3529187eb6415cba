// A job to begin with: what fits a model, with comments, and places for one's own facts and text.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/models/model_files.h"

namespace lancet {

struct JobTemplateOptions {
  std::filesystem::path requests;  ///< a file of facts; empty: examples stand in the job
  std::filesystem::path out = {};  ///< empty: a folder beside the job
  std::filesystem::path job = {};  ///< place where it will lie, and its paths are relative to; empty: they are absolute
};

/// YAML that runs as it is: with absolute paths wherever it lies. Options of the editor: those of the model's
/// lancet.yaml, a preset, or the method's automatic ones. Throws: ConfigError for a file of facts or a lancet.yaml that
/// cannot be read.
std::string make_job_template(const ModelFiles& files, const JobTemplateOptions& options);

}  // namespace lancet
