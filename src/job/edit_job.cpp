#include "lancet/job/edit_job.h"

#include <torch/types.h>

#include <optional>

#include "edit_checks.h"
#include "edit_session.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit/delta_file.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/collectives.h"
#include "method_run.h"
#include "report_files.h"
#include "same_job.h"
#include "stored_weight.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReportFile = "report.json";

/// What an unfinished run has finished, beside the output, so that the next one with the same job finds them.
fs::path unfinished_folder(const fs::path& target) { return fs::path(target.string() + ".unfinished"); }

fs::path rejected_folder(const fs::path& target) { return fs::path(target.string() + ".rejected"); }

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

void write_records(MethodRun& method, const JobConfig& job, const ModelFiles& files,
                   std::span<const WeightTransaction::Entry> entries, const fs::path& folder) {
  const EditReport& report = method.report();
  std::string requests;
  if (method.earlier() != nullptr)
    for (const EditRequest& request : method.earlier()->requests()) requests += to_json_line(request) + "\n";
  for (const EditRequest& request : report.requests) requests += to_json_line(request) + "\n";
  // A folder of its own: tools that load every *.safetensors of a model folder must not find it.
  fs::create_directory(folder / "delta");
  write_delta(folder / "delta" / "delta.safetensors", files.config, entries,
              {report.base_hash, job.method, method.stream().request_ids});
  if (job.output->keeps_state) {
    fs::create_directory(stream_folder(folder));
    save_stream(stream_folder(folder), method.stream(), method.stream_facts(), files.config);
  }
  write_text_file(folder / "requests.jsonl", requests);
}

/// The stages of one run; every rank goes through them in this order.
class EditRun {
 public:
  EditRun(const JobConfig& job, Communicator& communicator) : job_(job), ranks_(communicator) {}

  EditReport run() {
    ranks_.together("open", [&] { open(); });
    check_same(ranks_, job_facts(job_, session_->files, session_->requests));
    CausalLM model = load_replica(session_->files, job_.run, method_->work(), ranks_);
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), session_->files.config.n_layers));
    method_->stopwatch().lap("load");
    session_->describe(model, ranks_);
    method_->prepare(model);
    session_->before = session_->plan.run(model, "evaluate before", ranks_);
    method_->stopwatch().lap("evaluate before");

    WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(session_->files, id); });
    method_->edit(model, transaction, unfinished_folder(job_.output->dir));
    EditReport& report = method_->report();
    raise_to_ranks(report.stages, ranks_);
    report.unmet = broadcast_texts(ranks_, unmet_thresholds(job_, report.after));
    write_output(transaction.entries());
    if (report.unmet.empty()) transaction.commit();
    std::error_code ignored;  // another rank may be removing it too
    fs::remove_all(unfinished_folder(job_.output->dir), ignored);
    return std::move(report);
  }

 private:
  /// What can fail before any weight is read. Outputs are root's.
  void open() {
    if (ranks_.is_root()) check_output(*job_.output);
    session_.emplace(job_);
    if (ranks_.is_root()) {
      warn_of_skipped(session_->skipped);
      warn_of_texts(session_->requests);
    }
    if (ranks_.is_root()) check_apart(job_.output->dir, session_->files.checkpoint.folder());
    method_.emplace(job_, *session_, ranks_);
  }

  /// The folder appears only when all ranks are still there after it was written.
  void write_output(std::span<const WeightTransaction::Entry> entries) {
    const EditReport& report = method_->report();
    std::optional<OutputFolder> folder;
    ranks_.together("export", [&] {
      if (!ranks_.is_root()) return;
      if (report.unmet.empty()) {
        folder.emplace(job_.output->dir, job_.output->if_exists, kReportFile);
        export_model(session_->files, folder->staging(), entries);
        write_records(*method_, job_, session_->files, entries, folder->staging());
        method_->stopwatch().lap("export");
      } else {
        folder.emplace(rejected_folder(job_.output->dir), IfExists::kReplace, kReportFile);
      }
      write_report_files(run_document(report, job_, job_.output->dir.string()), folder->staging());
    });
    if (folder) folder->commit();
  }

  const JobConfig& job_;
  Communicator& ranks_;
  std::optional<EditSession> session_;
  std::optional<MethodRun> method_;
};

}  // namespace

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
