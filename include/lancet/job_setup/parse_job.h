// A job with the methods and the metrics that this program has.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lancet/core/config_tree.h"
#include "lancet/job/job_config.h"
#include "lancet/job/job_tables.h"
#include "lancet/job_setup/presets.h"

namespace lancet {

/// Those of editors/registry.h and of eval/protocol.h.
const JobTables& job_tables();

/// parse_job() with these.
JobConfig parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                    JobPurpose purpose);

// What a job leaves open: sections that the model's folder has (lancet.yaml), presets, a method and its automatic
// options; and what is changed for one run.

/// What edits where nobody names a method.
inline constexpr const char* kDefaultMethod = "memit";
/// What is compared, beside the job's method, where nobody says it.
inline constexpr const char* kComparedMethods[] = {kDefaultMethod, "alphaedit", "rome"};

/// Takes `editor` and `statistics` that the job lacks from `lancet.yaml` in the model's folder, where there is one.
void apply_model_defaults(ConfigTree& job, const std::filesystem::path& base);

/// A job that parse_job() reads.
struct CompletedJob {
  ConfigTree tree;
  JobSource source;
  bool is_automatic = false;  ///< the editor's options are automatic: nobody named some, and none are published
};

/// Whether a job without `editor:` gets one.
enum class EditorChoice {
  kNamed,    ///< no: it must name its editor, or needs none
  kOpen,     ///< published options of the default method where there are some for the model, else automatic ones
  kCompared  ///< no, but sections of `compare:` are added (add_compared)
};

/// Completes a job from these, the later ones changing what the earlier ones say: the job's own keys; an override of
/// `model`; the model's lancet.yaml, for sections that the job lacks; `overrides` ("run.dtype=f32"), of which another
/// `editor.method` takes the first method's options away; a chosen editor; what compared editors take over from the
/// job's; presets, for keys that nobody gave. `compared`: names of editors that are compared; of kCompared. Says what
/// it took (log_line). Throws: ConfigError; CheckpointError when the model's config.json cannot be read.
CompletedJob complete_job(ConfigTree tree, JobSource source, std::span<const std::string> overrides,
                          EditorChoice choice, std::span<const std::string> compared = {});

/// Says what was chosen for the job (log_line). `job`: parsed from `completed`.
void tell_defaults(const CompletedJob& completed, const JobConfig& job);

}  // namespace lancet
