#include "lancet/job/job_config.h"

#include <algorithm>
#include <cctype>

#include "erase_config.h"
#include "evaluation_config.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/model_file_output.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/named_values.h"
#include "lancet/spec/read_option.h"
#include "request_config.h"

namespace lancet {
namespace {

constexpr Named<DType> kDTypes[] = {
    {"f32", DType::kF32}, {"bf16", DType::kBF16}, {"f16", DType::kF16}, {"f64", DType::kF64}};
static_assert(are_named_so(RunSpec::kDTypeNames, kDTypes));

std::vector<SearchAxis> parse_search(ConfigSection& tune) {
  std::vector<SearchAxis> search;
  const ConfigTree* axes = tune.raw(TuneSpec::kSearch.key);
  if (axes == nullptr) return search;
  if (axes->kind != ConfigTree::Kind::kMap) {
    tune.problem("search", "expected a map of keys of editor to lists of values: {values.lr: [0.1, 0.5]}");
    return search;
  }
  for (const auto& [key, values] : axes->entries) {
    if (values.kind != ConfigTree::Kind::kList || values.items.empty())
      tune.problem("search", cat("'", key, "': expected a list of values to try"));
    else
      search.push_back({key, values.items});
  }
  return search;
}

TuneOptions parse_tune(ConfigSection& job, const std::filesystem::path& base, const JobTables& tables) {
  ConfigSection tune = job.section(JobSpec::kTune.key);
  TuneOptions options;
  options.takes_half = !tune.has(JobSpec::kRequests.key) && job.has(JobSpec::kRequests.key);
  options.requests = parse_request_source(options.takes_half ? job : tune, base);
  options.search = parse_search(tune);
  options.trials = read(tune, TuneSpec::kTrials);
  options.halve = read(tune, TuneSpec::kHalve);
  options.objective_is_open = !tune.has(TuneSpec::kObjective.key);
  options.objective = read(tune, TuneSpec::kObjective);
  if (options.objective.empty()) tune.problem(TuneSpec::kObjective.key, "expected at least one metric");
  for (const std::string& name : options.objective) check_metric(tune, TuneSpec::kObjective.key, name, tables);
  tune.finish();
  return options;
}

/// Returns what the method needs; nullopt if no method is known.
std::optional<MethodNeeds> parse_editor(ConfigSection& job, const JobTables& tables, ParsedJob& parsed) {
  if (!job.has(JobSpec::kEditor.key)) {
    job.problem(JobSpec::kEditor.key,
                "missing: expected {method: memit}, with options where the method's own defaults do not do, here or in "
                "the model folder's lancet.yaml");
    return std::nullopt;
  }
  ConfigSection editor = job.section(JobSpec::kEditor.key);
  std::optional<ReadEditor> read_editor = tables.read_editor(editor);
  parsed.config.method = editor.text(EditorSpec::kMethod.key, "");
  parsed.config.editor_options = editor.resolved();
  if (!read_editor) return std::nullopt;
  parsed.editor = std::move(read_editor->editor);
  return read_editor->needs;
}

/// A label must be usable as the name of a folder in the output.
bool is_label(const std::string& text) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), fits);
}

/// Refuses a threshold beside stored projections, which already are the null space. The `auto` of a resolved job was
/// not written by the user, and is accepted.
void refuse_threshold(ConfigSection& editor, const std::optional<StatisticsOptions>& statistics) {
  constexpr std::string_view kKey = LayeredSpec::kNullSpaceBelow.key;
  if (!statistics || statistics->from != StatisticsFrom::kImportedNullSpace) return;
  if (editor.has(kKey) && !editor.is_auto(kKey))
    editor.problem(kKey,
                   "has no meaning beside statistics.import_null_space, whose projections are the null space: "
                   "remove one of them");
}

struct ComparedEditors {
  std::vector<std::string> labels;
  MethodNeeds needs;  ///< needed by any of the editors
};

/// Parses `compare:`, which has an editor under each label.
ComparedEditors check_compared(ConfigSection& job, JobPurpose purpose, const JobTables& tables) {
  const ConfigTree* labels = job.raw(JobSpec::kCompare.key);
  const bool is_map = labels != nullptr && labels->kind == ConfigTree::Kind::kMap && !labels->entries.empty();
  if (!is_map) {
    if (labels != nullptr || purpose == JobPurpose::kCompare)
      job.problem(JobSpec::kCompare.key,
                  "expected a map from labels to editors: {memit: {method: memit, layers: [...], ...}, ...}");
    return {};
  }
  ComparedEditors compared;
  ConfigSection compare = job.section(JobSpec::kCompare.key);
  for (const auto& [label, unread] : labels->entries) {
    if (!is_label(label))
      compare.problem(label, "expected a label of letters, digits, and + - _ . inside: a folder is named after it");
    ConfigSection section = compare.section(label);
    const MethodNeeds own = tables.read_editor(section).value_or(ReadEditor{}).needs;
    compared.labels.push_back(label);
    compared.needs.statistics = compared.needs.statistics || own.statistics;
    compared.needs.values = compared.needs.values || own.values;
    compared.needs.entities = compared.needs.entities || own.entities;
  }
  if (purpose == JobPurpose::kCompare && job.has(JobSpec::kContinueFrom.key))
    job.problem(JobSpec::kContinueFrom.key,
                "expected none: every method that is compared begins with the unedited model");
  return compared;
}

std::optional<OutputOptions> parse_output(ConfigSection& job, const std::filesystem::path& base) {
  ConfigSection output = job.section(JobSpec::kOutput.key);
  OutputOptions options;
  options.place = output_place(read(output, OutputSpec::kDir, base));
  options.if_exists = read(output, OutputSpec::kReplace) ? IfExists::kReplace : IfExists::kError;
  options.keeps_state = read(output, OutputSpec::kState);
  options.format = read<OutputFormat>(output, OutputSpec::kFormat);
  options.gguf_type = read<GgufOutputType>(output, OutputSpec::kGgufType);
  options.rounding = read<OutputRounding>(output, OutputSpec::kRounding);
  options.covariance_weight = read(output, OutputSpec::kCovarianceWeight);
  output.finish();
  return options;
}

/// Refuses sections of a job that have no meaning for a session, whose calls say these things themselves.
void refuse_of_job(ConfigSection& job) {
  for (const std::string_view key :
       {JobSpec::kRequests.key, JobSpec::kSchedule.key, JobSpec::kContinueFrom.key, JobSpec::kAccept.key,
        JobSpec::kOutput.key, JobSpec::kCompare.key, JobSpec::kSeeds.key, JobSpec::kExpect.key, JobSpec::kTune.key,
        JobSpec::kErase.key})
    if (job.has(key)) job.problem(key, "expected none: it is a job's, and this is a session's: remove it");
}

enum class ValueSteps { kPossible, kNone };

/// Parses the sections that the purpose needs, and those that are present. Returns kNone if editors are run but none of
/// them optimises values.
ValueSteps parse_work(ConfigSection& job, const std::filesystem::path& base, JobPurpose purpose,
                      const JobTables& tables, ParsedJob& parsed) {
  JobConfig& config = parsed.config;
  const bool tunes = purpose == JobPurpose::kTune, compares = purpose == JobPurpose::kCompare;
  const bool in_session = purpose == JobPurpose::kSession, erases = purpose == JobPurpose::kErase;
  const bool edits = purpose == JobPurpose::kEdit || tunes || in_session || erases;
  if (in_session) refuse_of_job(job);
  if (erases) refuse_in_erasure(job);
  std::optional<MethodNeeds> method;  // nullopt: no method is known
  if (edits || purpose == JobPurpose::kStatistics || job.has(JobSpec::kEditor.key))
    method = parse_editor(job, tables, parsed);
  const ComparedEditors compared = check_compared(job, purpose, tables);
  const bool needs_statistics = purpose == JobPurpose::kStatistics || (edits && (!method || method->statistics)) ||
                                (compares && compared.needs.statistics);
  if (job.has(JobSpec::kStatistics.key) || needs_statistics) {
    config.statistics = parse_statistics_options(job.section(JobSpec::kStatistics.key), base);
    if (config.statistics->from == StatisticsFrom::kImportedNullSpace && method && method->statistics &&
        !method->null_space)
      job.problem(JobSpec::kStatistics.key,
                  cat("import_null_space: ", config.method, " needs moments: expected corpus or import"));
    if (config.statistics->from == StatisticsFrom::kImportedNullSpace &&
        ((method && method->entities) || compared.needs.entities))
      job.problem(JobSpec::kStatistics.key,
                  "import_null_space: has no moments, which an editor's entities need: expected entities: {weight: 0}, "
                  "or corpus or import");
    const bool has_files = config.statistics->from == StatisticsFrom::kImport;
    if (has_files && method && method->curvature && config.statistics->import_gradients.empty())
      job.problem(
          JobSpec::kStatistics.key,
          cat("import: ", config.method, " needs moments of gradients too: expected import_gradients beside it"));
    if (method && method->null_space) {
      ConfigSection editor = job.section(JobSpec::kEditor.key);
      refuse_threshold(editor, config.statistics);
    }
  }
  if (tunes || job.has(JobSpec::kTune.key)) config.tune = parse_tune(job, base, tables);
  if ((purpose != JobPurpose::kStatistics && !tunes && !in_session) || job.has(JobSpec::kRequests.key))
    config.requests = parse_request_source(job, base, erases ? TargetNeed::kOptional : TargetNeed::kRequired);
  if (erases || (job.has(JobSpec::kErase.key) && !in_session)) config.erase = parse_erase(job, base);
  config.schedule = parse_schedule(job.section(JobSpec::kSchedule.key));
  if (job.has(JobSpec::kContinueFrom.key)) config.continue_from = read(job, JobSpec::kContinueFrom, base);
  config.evaluation = parse_evaluation(job, base, config.model, tables);
  if (config.schedule.drift_alarm && !config.evaluation.side_effects.text)
    job.problem(JobSpec::kSchedule.key,
                "drift_alarm: expected evaluate.side_effects.text beside it: the text that is to stay as it is");
  config.accept = parse_accept(job, config.evaluation, tables);
  if (compares || job.has(JobSpec::kSeeds.key)) config.seeds = read(job, JobSpec::kSeeds);
  config.expected = parse_expected(job, compared.labels, config.evaluation, tables);
  if ((edits && !tunes && !in_session) || compares || job.has(JobSpec::kOutput.key))
    config.output = parse_output(job, base);
  if (compares && config.output->format != OutputFormat::kAuto)
    job.problem(JobSpec::kOutput.key, "format: expected none: lancet compare writes no model");
  if (compares && config.output->place.model_file)
    job.problem(JobSpec::kOutput.key, "dir: expected a folder for the reports, got the name of a GGUF file");
  const bool has_editor_without = edits && method && !method->values;
  return has_editor_without || (compares && !compared.needs.values) ? ValueSteps::kNone : ValueSteps::kPossible;
}

}  // namespace

RunOptions parse_run_options(ConfigSection section) {
  RunOptions run;
  const ConfigTree* devices = section.raw(RunSpec::kDevices.key);
  if (devices != nullptr && devices->kind == ConfigTree::Kind::kList)
    run.devices = section.texts(RunSpec::kDevices.key);
  else
    run.devices = {section.text(RunSpec::kDevices.key, std::string(RunSpec::kDevices.alone))};
  run.balance = read<Balance>(section, RunSpec::kBalance);
  if (const size_t dtype = read_index(section, RunSpec::kDType); dtype > 0) run.dtype = kDTypes[dtype - 1].value;
  if (const size_t quantiser = read_index(section, RunSpec::kQuantiseBase); quantiser > 0)
    run.quantise_base = RunSpec::kQuantiseBaseNames[quantiser];
  run.solve_on = read<SolveOn>(section, RunSpec::kSolveOn);
  run.seed = static_cast<uint64_t>(read(section, RunSpec::kSeed));
  run.threads = read(section, RunSpec::kThreads);
  run.timeout_s = read(section, RunSpec::kTimeout);
  run.ranks_per_model = read(section, RunSpec::kRanksPerModel);
  run.step_launch = read(section, RunSpec::kCudaGraphs) ? LaunchMode::kGraph : LaunchMode::kEachOperation;
  section.finish();
  return run;
}

ParsedJob parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                    JobPurpose purpose, const JobTables& tables) {
  ConfigProblems problems(source);
  ConfigSection job(tree, "", problems);
  ParsedJob parsed;
  JobConfig& config = parsed.config;
  config.model = read(job, JobSpec::kModel, base);
  config.ignore_config_keys = read(job, JobSpec::kIgnoreConfigKeys);
  const ValueSteps steps = parse_work(job, base, purpose, tables, parsed);
  config.run = parse_run_options(job.section(JobSpec::kRun.key));
  if (config.run.step_launch == LaunchMode::kGraph && steps == ValueSteps::kNone)
    job.problem(JobSpec::kRun.key,
                cat(RunSpec::kCudaGraphs.key, ": has no meaning for methods that optimise no values: remove it"));
  job.finish();
  problems.throw_if_any();
  config.resolved = job.resolved();
  return parsed;
}

RequestFile load_requests(const RequestSource& source) {
  if (source.path.empty()) return {source.inline_requests, "", {}};
  return load_request_file(source.path, source.options);
}

void warn_of_skipped(const SkippedRecords& skipped) {
  if (skipped.count > 0)
    log_warning(cat("requests: ", skipped.count, " record(s) left out:\n", first_problems(skipped.messages)));
}

void warn_of_texts(std::span<const EditRequest> requests) {
  if (const std::string stray = stray_white_space(requests); !stray.empty()) log_warning("requests: " + stray);
}

ConfigTree with_format(ConfigTree resolved, const std::string& format) {
  const ConfigTree* requests = resolved.find("requests");
  if (format.empty() || requests == nullptr) return resolved;
  ConfigTree named = *requests;
  named.set("format", ConfigTree::text(format));
  resolved.set("requests", std::move(named));
  return resolved;
}

RequestFileOptions parse_file_options(ConfigSection& section) {
  RequestFileOptions options;
  options.range.skip = read(section, RequestsSpec::kSkip);
  options.range.limit = read_given(section, RequestsSpec::kLimit);
  std::vector<std::string> formats = request_formats();
  formats.emplace_back(kAutoFormat);
  options.format = section.choice(RequestsSpec::kFormat.key, formats, std::string(*RequestsSpec::kFormat.fallback));
  return options;
}

RequestSource parse_request_source(ConfigSection& job, const std::filesystem::path& base, TargetNeed target) {
  RequestSource source;
  const ConfigTree* requests = job.raw(JobSpec::kRequests.key);
  if (requests == nullptr) {
    job.problem(JobSpec::kRequests.key, "expected {path: FILE} or a list of {prompt, subject, target}");
    return source;
  }
  if (requests->kind == ConfigTree::Kind::kList) {
    try {
      source.inline_requests = parse_requests(*requests, target);
    } catch (const ConfigError& error) {
      for (const std::string& problem : split(error.what(), '\n')) job.problem(JobSpec::kRequests.key, problem);
    }
    return source;
  }
  ConfigSection section = job.section(JobSpec::kRequests.key);
  source.path = read(section, RequestsSpec::kPath, base);
  source.options = parse_file_options(section);
  source.options.target = target;
  source.options.on_bad_record = read<OnBadRecord>(section, RequestsSpec::kOnBadRecord);
  section.finish();
  return source;
}

}  // namespace lancet
