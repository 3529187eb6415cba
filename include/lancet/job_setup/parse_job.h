// Parses jobs with the methods and metrics of this program.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/job/job_tables.h"
#include "lancet/job_setup/presets.h"
#include "lancet/job_setup/resolved_job.h"

namespace lancet {

/// Returns the tables of editors/registry.h and eval/protocol.h.
const JobTables& job_tables();

/// Parses a job with these tables. Throws: ConfigError with every problem of the document.
ResolvedJob parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                      JobPurpose purpose);

// Fills in what a job leaves open: sections of the model's lancet.yaml, presets, a method and its automatic options;
// and applies overrides for one run.

/// The method if the job names none.
inline constexpr const char* kDefaultMethod = "memit";
/// The methods that are compared beside the job's method, if none are named.
inline constexpr const char* kComparedMethods[] = {kDefaultMethod, "alphaedit", "rome"};

/// Adds the job's missing `editor` and `statistics` from `lancet.yaml` in the model's folder, if there is one.
void apply_model_defaults(ConfigTree& job, const std::filesystem::path& base);

/// A job that is ready for parse_job().
struct CompletedJob {
  ConfigTree tree;
  JobSource source;
  bool is_automatic = false;  ///< the editor's options are automatic: the job has none, and none are published
};

/// Whether a job without `editor:` gets one.
enum class EditorChoice {
  kNamed,    ///< no: the job must name its editor, or needs none
  kOpen,     ///< yes: published options of the default method for the model if there are some, else automatic ones
  kCompared  ///< no, but sections of `compare:` are added (add_compared)
};

/// Completes a job from the following sources; later ones override earlier ones: the job's own keys; an override of
/// `model`; the model's lancet.yaml, for sections that the job lacks; `overrides` ("run.dtype=f32"), where another
/// `editor.method` removes the first method's options; a chosen editor; what compared editors inherit from the job's
/// editor; presets, for keys that are still missing. `compared`: names of the editors to compare, for kCompared. Logs
/// what it took (log_line). Throws: ConfigError; CheckpointError if the model's config.json cannot be read.
CompletedJob complete_job(ConfigTree tree, JobSource source, std::span<const std::string> overrides,
                          EditorChoice choice, std::span<const std::string> compared = {});

/// Returns the overrides for a run with another method: those of the editor are the first method's, and are left out.
std::vector<std::string> overrides_for_method(std::span<const std::string> overrides, std::string_view method);

/// Logs what was chosen for the job (log_line). `job` must be parsed from `completed`.
void tell_defaults(const CompletedJob& completed, const ResolvedJob& job);

}  // namespace lancet
