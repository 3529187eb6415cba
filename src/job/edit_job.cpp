#include "lancet/job/edit_job.h"

#include <sys/resource.h>
#include <torch/types.h>

#include <optional>
#include <stdexcept>

#include "job_statistics.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/edit/delta_file.h"
#include "lancet/edit/value_store.h"
#include "lancet/io/files.h"
#include "lancet/job/model_session.h"
#include "lancet/models/tensor_io.h"
#include "stopwatch.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReportFile = "report.json";

int64_t peak_host_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

/// Values of an unfinished run, beside the output, so that the next one with the same job finds them.
fs::path unfinished_folder(const fs::path& target) { return fs::path(target.string() + ".unfinished"); }

fs::path rejected_folder(const fs::path& target) { return fs::path(target.string() + ".rejected"); }

/// The output must not be the model, lie in it, or hold it: replacing it would delete the base.
void check_apart(const fs::path& output, const fs::path& model) {
  const auto inside = [](const fs::path& inner, const fs::path& outer) {
    const fs::path relative = fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(outer));
    return !relative.empty() && *relative.begin() != "..";
  };
  if (inside(output, model) || inside(model, output))
    throw ConfigError(cat("output.dir: ", output.string(), ": overlaps the model folder ", model.string(),
                          ": choose another folder"));
}

/// Everything about the requests that can fail without a model pass does so before any.
void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor) {
  if (editor.needs().subject) {
    const std::vector<std::string> plain{"{}"};
    prepare_requests(*files.tokenizer, requests, plain);
  } else {
    tokenize_requests(*files.tokenizer, requests);
  }
  editor.targets(files.config);
}

std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after) {
  std::vector<std::string> unmet;
  for (const auto& [name, threshold] : job.accept) {
    const auto total = after.totals.find(name);
    const std::optional<double> share = total == after.totals.end() ? std::nullopt : total->second.share();
    if (!share)
      unmet.push_back(cat(name, ": n/a for these requests, expected at least ", threshold));
    else if (*share < threshold)
      unmet.push_back(cat(name, ": ", *share, ", expected at least ", threshold));
  }
  return unmet;
}

void write_rejection(const fs::path& target, const std::string& report_json) {
  OutputFolder folder(rejected_folder(target), IfExists::kReplace, kReportFile);
  write_text_file(folder.staging() / kReportFile, report_json);
  folder.commit();
}

Tensor stored_weight(const ModelFiles& files, WeightId id) {
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint))
    if (spec.id == id) return to_tensor(files.checkpoint.view(spec.stored_name));
  throw std::logic_error("no such weight: " + weight_name(files.config, id));
}

/// The edited weights in the types they are stored in, beside the untouched rest of the checkpoint.
void export_model(const ModelFiles& files, const fs::path& folder, std::span<const WeightTransaction::Entry> entries) {
  std::vector<Tensor> edited;
  std::vector<TensorSource> sources;
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    for (const WeightTransaction::Entry& entry : entries) {
      if (entry.id != spec.id) continue;
      edited.push_back(entry.master.to(Placement::host(), entry.base.scalar_type()).contiguous());
      sources.push_back(to_source(spec.stored_name, edited.back()));
    }
  }
  export_checkpoint(files.checkpoint, sources, folder);
}

void write_records(const EditReport& report, const JobConfig& job, const ModelFiles& files,
                   std::span<const WeightTransaction::Entry> entries, const fs::path& folder) {
  DeltaProvenance provenance{report.base_hash, job.method, {}};
  std::string requests;
  for (const EditRequest& request : report.requests) requests += to_json_line(request) + "\n";
  std::vector<int64_t> columns = report.outcome.columns;
  if (columns.empty())  // dense changes have none: they are of all requests
    for (size_t i = 0; i < report.requests.size(); ++i) columns.push_back(static_cast<int64_t>(i));
  for (const int64_t column : columns)
    provenance.request_ids.push_back(report.requests[static_cast<size_t>(column)].id);
  // A folder of its own: tools that load every *.safetensors of a model folder must not find it.
  fs::create_directory(folder / "delta");
  write_delta(folder / "delta" / "delta.safetensors", files.config, entries, provenance);
  write_text_file(folder / "requests.jsonl", requests);
  ConfigTree resolved = job.resolved;
  if (job.editor->contexts() != nullptr) {
    std::vector<ConfigTree> contexts;
    for (const std::string& text : report.contexts) contexts.push_back(ConfigTree::text(text));
    ConfigTree editor = *resolved.find("editor");
    editor.set("contexts", ConfigTree::list(std::move(contexts)));  // generated templates: a rerun uses the same
    resolved.set("editor", std::move(editor));
  }
  write_text_file(folder / "job.yaml", to_yaml(resolved));
}

}  // namespace

EditReport run_edit_job(const JobConfig& job) {
  EditReport report;
  Stopwatch stopwatch(report.seconds);
  check_output_target(job.output->dir, job.output->if_exists, kReportFile);
  check_output_target(rejected_folder(job.output->dir), IfExists::kReplace, kReportFile);
  const ModelFiles files = open_model(job.model, job.ignore_config_keys);
  check_apart(job.output->dir, files.checkpoint.folder());
  report.requests = load_requests(job.requests);
  check_requests(files, report.requests, *job.editor);
  const EvaluationPlan plan(*files.tokenizer, report.requests, job.evaluation);
  std::optional<JobStatistics> statistics;
  if (job.editor->needs().statistics) statistics.emplace(job, files);
  CausalLM model = load_model(files, job.run);
  report.model_dtype = dtype_name(to_dtype(model.placement().weight_dtype()));
  report.devices = model.placement().description();
  stopwatch.lap("load");

  if (const ContextOptions* contexts = job.editor->contexts())
    report.contexts = make_contexts(model, *files.tokenizer, *contexts, job.run.seed);
  if (statistics) {
    statistics->prepare(model);
    report.statistics = statistics->report();
    stopwatch.lap("statistics");
  }
  report.base_hash = files.checkpoint.content_hash();
  const ValueStore values(unfinished_folder(job.output->dir), cat(report.base_hash, " ", report.model_dtype));
  const EditContext context(model, *files.tokenizer, report.contexts,
                            statistics ? statistics->algebra() : LayerAlgebra{}, &values);
  report.before = plan.run(model, "evaluate before");
  stopwatch.lap("evaluate before");

  WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(files, id); });
  EditorState state = job.editor->make_state();
  report.outcome = job.editor->edit(context, report.requests, state, transaction);
  job.editor->finish(transaction);
  for (const RoundingLoss& loss : transaction.round_as_stored())
    report.rounding.emplace_back(weight_name(files.config, loss.id), loss);
  stopwatch.lap("edit");
  report.after = plan.run(model, "evaluate after");
  stopwatch.lap("evaluate after");

  report.unmet = unmet_thresholds(job, report.after);
  report.peak_host_bytes = peak_host_bytes();
  if (!report.unmet.empty()) {
    write_rejection(job.output->dir, to_json(report, job));
    values.clear();
    return report;
  }
  OutputFolder folder(job.output->dir, job.output->if_exists, kReportFile);
  export_model(files, folder.staging(), transaction.entries());
  write_records(report, job, files, transaction.entries(), folder.staging());
  stopwatch.lap("export");
  write_text_file(folder.staging() / kReportFile, to_json(report, job));
  folder.commit();
  transaction.commit();
  values.clear();
  return report;
}

}  // namespace lancet
