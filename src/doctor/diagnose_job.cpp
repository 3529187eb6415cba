// The rules about a job and the folders into which it writes.
#include <algorithm>
#include <functional>
#include <map>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/doctor/doctor.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/files.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/plan/model_session.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/statistics/cached_bytes.h"
#include "lancet/statistics/imported_null_space.h"
#include "lancet/statistics/imported_statistics.h"
#include "size_text.h"

namespace lancet {
namespace {

constexpr int64_t kLowSpace = 1'000'000'000;
constexpr int64_t kOtherFiles = 64;  ///< files that a process opens in addition to those of a checkpoint

/// Returns the text of `check`, or a problem if it throws.
Finding tried(const std::string& topic, const std::function<std::string()>& check) {
  try {
    return {FindingState::kOk, topic, check(), ""};
  } catch (const Error& error) {
    return {FindingState::kProblem, topic, error.what(), "", error.exit_code()};  // the message says what to do
  } catch (const std::exception& error) {
    return {FindingState::kProblem, topic, error.what(), "see the message"};
  }
}

/// Checks that the files for the statistics can be read.
std::string check_sources(const ResolvedJob& job, const ModelFiles& files) {
  const StatisticsOptions& options = *job.statistics;
  if (options.from == StatisticsFrom::kSelf) return "text that the model writes";
  if (options.from == StatisticsFrom::kCorpus) {
    DocumentReader(options.corpus).next();
    return options.corpus.string();
  }
  const std::vector<int64_t> layers = target_layers(*job.editor, files.config);
  if (options.from == StatisticsFrom::kImportedNullSpace) {
    ImportedNullSpaces(options.null_space, layers, files.config).check();
    return options.null_space.string();
  }
  const ImportedStatistics imported(options.import, layers, files.config);
  return cat(options.import.string(), " for ", layers.size(), " layers");
}

/// Checks that everything to measure fits the model, and that its files can be read.
std::string check_measured(const JobConfig& job, const ModelFiles& files, std::span<const EditRequest> requests) {
  EvaluationOptions measured = job.evaluation;
  measured.side_effects.tasks = {};  // these need other programs, which are only there when the job runs in Python
  const EvaluationSize size = EvaluationPlan(*files.tokenizer, requests, measured, files.config.max_positions).size();
  return cat(counted(static_cast<size_t>(size.scoring.tokens), "token"), " to score, ",
             counted(static_cast<size_t>(size.generation.rows), "text"), " to generate");
}

/// Estimates the bytes of an output: a copy of the model, and two factors for the change of each edited weight, with
/// the keys from which they were solved if other jobs may continue. While several batches run, all of this is there
/// twice.
int64_t output_bytes(const ResolvedJob& job, const ModelFiles& files, size_t n_requests) {
  int64_t sides = 0, keys = 0;
  for (const WeightId& id : job.editor->targets(files.config)) {
    const std::vector<int64_t> shape = weight_spec(files.config, id).shape;
    sides += shape[0] + shape[1];
    keys += shape[1];
  }
  const auto rank = static_cast<int64_t>(n_requests);
  const int64_t kept = 8 * rank * (sides + keys);
  return static_cast<int64_t>(files.checkpoint.tensor_bytes()) + (job.output->keeps_state ? kept : 8 * rank * sides) +
         (job.schedule.n_batches(rank) > 1 ? kept : 0);
}

/// Returns the bytes that the cache keeps for all edited layers.
int64_t cache_bytes(const ResolvedJob& job, const ModelFiles& files) {
  int64_t bytes = 0;
  for (const int64_t layer : target_layers(*job.editor, files.config))
    bytes += cached_bytes(*job.statistics, files.config.key_shape(layer));
  return bytes;
}

/// Adds the job's own folders, and what will be written there.
void add_folders(const ResolvedJob& job, const ModelFiles* files, size_t n_requests,
                 std::vector<FolderFacts>& folders) {
  FolderFacts output = look_at_folder("output", job.output->place.folder.parent_path());
  if (files != nullptr) output.expected_bytes = output_bytes(job, *files, n_requests);
  folders.push_back(std::move(output));
  if (!job.needs.statistics || job.statistics->from == StatisticsFrom::kImportedNullSpace) return;
  FolderFacts cache = look_at_folder("cache", job.statistics->cache);
  if (files != nullptr) cache.expected_bytes = cache_bytes(job, *files);
  folders.push_back(std::move(cache));
}

Finding check_open_files(const ModelFiles& files, const ProcessLimits& limits) {
  const auto shards = static_cast<int64_t>(files.checkpoint.shards().size());
  if (!limits.open_files || shards + kOtherFiles <= *limits.open_files)
    return {FindingState::kOk, "limits", "open files: enough for the model's shards", ""};
  return {FindingState::kProblem, "limits",
          cat("open files: ", *limits.open_files, ": the model has ", shards, " shards, all open at once"),
          cat("ulimit -n ", 2 * (shards + kOtherFiles))};
}

std::string device_names(const DeviceChoice& choice) {
  std::vector<std::string> names;
  for (const DeviceBudget& budget : choice.devices) names.push_back(budget.device.str());
  return join(names);
}

bool is_of_job(const FolderFacts& folder) { return folder.role == "output" || folder.role == "cache"; }

}  // namespace

std::vector<Finding> diagnose_folders(const std::vector<FolderFacts>& folders) {
  std::map<uint64_t, int64_t> expected;  // folders on the same file system share its free space
  for (const FolderFacts& folder : folders) expected[folder.file_system] += folder.expected_bytes;
  std::vector<Finding> findings;
  for (const FolderFacts& folder : folders) {
    Finding finding{FindingState::kOk, "disk",
                    cat(folder.role, ": ", folder.path.string(), ": ", size_text(folder.free_bytes), " free of ",
                        size_text(folder.total_bytes)),
                    "", ExitCode::kCheckpoint};
    const int64_t needed = expected[folder.file_system];
    if (folder.expected_bytes > 0) finding.what += cat(", the job writes ", size_text(folder.expected_bytes));
    if (!folder.is_writable) {
      finding.state = is_of_job(folder) ? FindingState::kProblem : FindingState::kNote;
      finding.what += ": is no folder that this user may write to";
      finding.remedy = "change its permissions, or name another folder in the job";
    } else if (folder.expected_bytes > 0 && needed > folder.free_bytes) {
      finding.state = FindingState::kProblem;
      if (needed > folder.expected_bytes)
        finding.what += cat(" and to its other folders on this disk, together ", size_text(needed));
      finding.remedy =
          "free space, or name a folder on another disk (statistics that the cache holds already are not written "
          "again)";
    } else if (folder.free_bytes < kLowSpace && folder.role != "/dev/shm") {
      finding.state = FindingState::kNote;
      finding.remedy = "little space: outputs are as large as their models";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> diagnose_job(const ResolvedJob& job, MachineFacts& facts) {
  std::vector<Finding> findings;
  std::optional<ModelFiles> files;
  findings.push_back(tried("model", [&] {
    files.emplace(open_model(job.model, job.ignore_config_keys));
    job.editor->targets(files->config);
    return cat(files->checkpoint.folder().string(), ": ", files->config.family->name, ", ", files->config.n_layers,
               " layers, ", bytes_text(files->checkpoint.tensor_bytes()), " in ", files->checkpoint.shards().size(),
               " shard(s)");
  }));
  const bool is_usable = findings.back().state == FindingState::kOk;
  std::vector<EditRequest> requests;
  std::string stray;
  findings.push_back(tried("requests", [&] {
    RequestFile file = load_requests(job.requests);
    requests = std::move(file.requests);
    stray = stray_white_space(requests);
    if (files) refuse_long_requests(*files->tokenizer, requests, files->config.max_positions);
    return cat(requests.size(), " request(s)", file.format.empty() ? "" : " in the format " + file.format,
               file.skipped.count > 0 ? cat(", ", file.skipped.count, " record(s) left out") : "");
  }));
  if (files && findings.back().state == FindingState::kOk)
    findings.push_back(tried("evaluate", [&] { return check_measured(job, *files, requests); }));
  if (!stray.empty())
    findings.push_back({FindingState::kNote, "requests", stray, "take it out of the texts, unless it is meant"});
  findings.push_back(tried("run.devices", [&] { return device_names(find_devices(job.run.devices)); }));
  findings.push_back(tried("output", [&] {
    check_output(job);
    return job.output->place.folder.string();
  }));
  if (is_usable && job.needs.statistics)
    findings.push_back(tried("statistics", [&] { return check_sources(job, *files); }));
  if (is_usable) findings.push_back(check_open_files(*files, facts.limits));
  add_folders(job, is_usable ? &*files : nullptr, requests.size(), facts.folders);
  return findings;
}

}  // namespace lancet
