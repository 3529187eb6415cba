#include "lancet/run/edit_job.h"

#include <torch/types.h>

#include <optional>

#include "edit_checks.h"
#include "edit_session.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/delta_file.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/collectives.h"
#include "method_run.h"
#include "results/report_files.h"
#include "same_job.h"
#include "stored_weight.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

fs::path rejected_folder(const fs::path& target) { return sibling_of(target, ".rejected"); }

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
  make_folders(folder / "delta");
  write_delta(folder / "delta" / "delta.safetensors", files.config, entries,
              {report.base_hash, job.method, method.stream().request_ids});
  if (job.output->keeps_state) {
    make_folders(stream_folder(folder));
    StreamFacts facts = method.stream_facts();
    facts.owner.beside = stream_owner(requests);
    save_stream(stream_folder(folder), method.stream(), facts, files.config);
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

    WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(session_->files, model, id); });
    method_->edit(model, transaction, unfinished_folder(job_.output->dir));
    EditReport& report = method_->report();
    raise_to_ranks(report.stages, ranks_);
    report.unmet = broadcast_texts(ranks_, unmet_thresholds(job_, report.after));
    write_output(transaction.entries());
    if (report.unmet.empty()) transaction.commit();
    remove_unfinished(unfinished_folder(job_.output->dir));
    return std::move(report);
  }

 private:
  /// What can fail before any weight is read. Outputs are root's; each rank keeps values of its own.
  void open() {
    check_unfinished(unfinished_folder(job_.output->dir));
    if (ranks_.is_root()) check_output(job_);
    session_.emplace(job_);
    if (ranks_.is_root()) {
      warn_of_skipped(session_->skipped);
      warn_of_texts(session_->requests);
    }
    if (ranks_.is_root()) check_apart(job_.output->dir, session_->files.checkpoint.folder());
    check_lengths(session_->files, session_->requests);
    method_.emplace(job_, *session_, ranks_);
    if (!ranks_.is_root()) return;
    lock_.emplace(job_.output->dir, kEditOutput);
    check_output(job_);  // again: another run may have ended before the lock, or a killed one been made good
  }

  /// The folder appears only when all ranks are still there after it was written; what an unfinished run keeps goes
  /// away only behind that, on every rank.
  void write_output(std::span<const WeightTransaction::Entry> entries) {
    const EditReport& report = method_->report();
    std::optional<OutputFolder> folder;
    ranks_.together("export", [&] {
      if (!ranks_.is_root()) return;
      if (report.unmet.empty()) {
        folder.emplace(job_.output->dir, job_.output->if_exists, kEditOutput);
        export_model(session_->files, folder->staging(), entries);
        write_records(*method_, job_, session_->files, entries, folder->staging());
        method_->stopwatch().lap("export");
      } else {
        folder.emplace(rejected_folder(job_.output->dir), IfExists::kReplace, kEditOutput);
      }
      write_report_files(run_document(report, job_, job_.output->dir.string()), folder->staging());
    });
    ranks_.together("export", [&] {
      if (folder) folder->commit();
    });
  }

  const JobConfig& job_;
  Communicator& ranks_;
  std::optional<OutputLock> lock_;  // root's
  std::optional<EditSession> session_;
  std::optional<MethodRun> method_;
};

}  // namespace

void check_output(const JobConfig& job) {
  const fs::path& output = job.output->dir;
  check_apart(output, job.model);
  check_output_target(output, job.output->if_exists, kEditOutput);
  check_output_target(rejected_folder(output), IfExists::kReplace, kEditOutput);
  check_unfinished(unfinished_folder(output));
  if (!job.statistics) return;
  for (const fs::path& folder : {output, rejected_folder(output), unfinished_folder(output)})
    check_cache_outside(job.statistics->cache, folder);
}

EditReport run_edit_job(const JobConfig& job, Communicator& communicator) {
  EditReport report;
  communicator.together("edit", [&] { report = EditRun(job, communicator).run(); });
  return report;
}

}  // namespace lancet
