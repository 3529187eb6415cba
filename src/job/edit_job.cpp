#include "lancet/job/edit_job.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "edit_checks.h"
#include "job_statistics.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/edit/delta_file.h"
#include "lancet/edit/value_store.h"
#include "lancet/io/files.h"
#include "lancet/job/model_session.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/collectives.h"
#include "same_job.h"
#include "stopwatch.h"
#include "stored_weight.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReportFile = "report.json";

/// Values of an unfinished run, beside the output, so that the next one with the same job finds them.
fs::path unfinished_folder(const fs::path& target) { return fs::path(target.string() + ".unfinished"); }

/// Everything but the requests and the options that a value depends on: config.json too says what the weights compute.
std::string values_model_key(const EditReport& report, const Checkpoint& checkpoint) {
  ContentHash hash;
  return hash.add(report.base_hash).add(checkpoint.config_text()).add(report.model_dtype).hex();
}

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

/// The stages of one run; every rank goes through them in this order.
class EditRun {
 public:
  EditRun(const JobConfig& job, Communicator& communicator) : job_(job), ranks_(communicator) {}

  EditReport run() {
    ranks_.together("open", [&] { open(); });
    check_same(ranks_, job_facts(job_, *files_, report_.requests));
    CausalLM model = load_replica(*files_, job_.run, *work_, ranks_);
    describe(model);
    const std::vector<at::Device> devices = devices_with_memory(model.placement(), files_->config.n_layers);
    const MemoryWatch memory_watch(devices);
    PeakMeter::add_devices(devices);
    stopwatch_.lap("load");

    report_.base_hash = same_content_hash(ranks_, files_->checkpoint);
    if (const ContextOptions* contexts = job_.editor->contexts())
      report_.contexts = make_contexts(model, *files_->tokenizer, *contexts, job_.run.seed, ranks_);
    if (statistics_) {
      statistics_->prepare(model, report_.base_hash, ranks_);
      report_.statistics = statistics_->report();
      stopwatch_.lap("statistics");
    }
    report_.before = plan_->run(model, "evaluate before", ranks_);
    stopwatch_.lap("evaluate before");

    WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(*files_, id); });
    const ValueStore values(unfinished_folder(job_.output->dir), values_model_key(report_, files_->checkpoint));
    edit(model, values, transaction);
    report_.after = plan_->run(model, "evaluate after", ranks_);
    stopwatch_.lap("evaluate after");

    raise_to_ranks(report_.stages, ranks_);
    report_.unmet = broadcast_texts(ranks_, unmet_thresholds(job_, report_.after));
    write_output(transaction.entries());
    if (report_.unmet.empty()) transaction.commit();
    values.clear();
    return std::move(report_);
  }

 private:
  /// What can fail before any weight is read. Outputs are root's.
  void open() {
    if (ranks_.is_root()) check_output(*job_.output);
    files_.emplace(open_model(job_.model, job_.ignore_config_keys));
    if (ranks_.is_root()) check_apart(job_.output->dir, files_->checkpoint.folder());
    report_.requests = load_requests(job_.requests);
    check_requests(*files_, report_.requests, *job_.editor);
    plan_.emplace(*files_->tokenizer, report_.requests, job_.evaluation);
    if (job_.editor->needs().statistics) statistics_.emplace(job_, *files_, ranks_);
    std::vector<std::string> assumptions;  // the tokenizer leaves few, which lancet plan shows
    work_ = edit_work(job_, files_->config, {files_->tokenizer.get(), report_.requests, plan_->size()}, assumptions);
    if (statistics_) statistics_->describe(*work_);
  }

  void describe(const CausalLM& model) {
    report_.model_dtype = dtype_name(to_dtype(model.placement().weight_dtype()));
    report_.ranks = ranks_.size();
    const std::vector<std::string> devices = ranks_.gather(model.placement().description());
    report_.devices = devices.front();
    if (std::count(devices.begin(), devices.end(), devices.front()) == report_.ranks) return;
    report_.devices.clear();
    for (size_t rank = 0; rank < devices.size(); ++rank)
      report_.devices += cat(rank == 0 ? "" : "; ", "rank ", rank, ": ", devices[rank]);
  }

  void edit(const CausalLM& model, const ValueStore& values, WeightTransaction& transaction) {
    const EditContext context(model, *files_->tokenizer, report_.contexts,
                              statistics_ ? statistics_->algebra() : LayerAlgebra{}, {ranks_, &values});
    EditorState state = job_.editor->make_state();
    report_.outcome = job_.editor->edit(context, report_.requests, state, transaction);
    job_.editor->finish(context, transaction);
    for (const RoundingLoss& loss : transaction.round_as_stored())
      report_.rounding.emplace_back(weight_name(files_->config, loss.id), loss);
    stopwatch_.lap("edit");
  }

  /// The folder appears only when all ranks are still there after it was written.
  void write_output(std::span<const WeightTransaction::Entry> entries) {
    std::optional<OutputFolder> folder;
    ranks_.together("export", [&] {
      if (!ranks_.is_root()) return;
      if (report_.unmet.empty()) {
        folder.emplace(job_.output->dir, job_.output->if_exists, kReportFile);
        export_model(*files_, folder->staging(), entries);
        write_records(report_, job_, *files_, entries, folder->staging());
        stopwatch_.lap("export");
      } else {
        folder.emplace(rejected_folder(job_.output->dir), IfExists::kReplace, kReportFile);
      }
      write_text_file(folder->staging() / kReportFile, to_json(report_, job_));
    });
    if (folder) folder->commit();
  }

  const JobConfig& job_;
  Communicator& ranks_;
  EditReport report_;
  Stopwatch stopwatch_{report_.stages};
  std::optional<ModelFiles> files_;
  std::optional<EvaluationPlan> plan_;
  std::optional<JobStatistics> statistics_;
  std::optional<JobWork> work_;  ///< what memory is counted for
};

}  // namespace

void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor) {
  if (editor.needs().subject) {
    const std::vector<std::string> plain{"{}"};
    prepare_requests(*files.tokenizer, requests, plain, editor.compat());
  } else {
    tokenize_requests(*files.tokenizer, requests);
  }
  editor.targets(files.config);
}

void check_output(const OutputOptions& output) {
  check_output_target(output.dir, output.if_exists, kReportFile);
  check_output_target(rejected_folder(output.dir), IfExists::kReplace, kReportFile);
}

EditReport run_edit_job(const JobConfig& job, Communicator& communicator) {
  EditReport report;
  communicator.together("edit", [&] { report = EditRun(job, communicator).run(); });
  return report;
}

}  // namespace lancet
