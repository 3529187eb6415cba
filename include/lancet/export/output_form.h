// How edited weights leave a job: in which files, and what a reader gets of them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/editing/editor.h"
#include "lancet/job/job_config.h"
#include "lancet/models/model_files.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/plan/model_session.h"

namespace lancet {

/// What the job's `output:` asks for of this model and these weights; `auto` is resolved. `edited`: the weights that
/// the editor may change. Throws: ConfigError for a format that the model or the weights do not have.
OutputOptions resolve_output(const OutputOptions& asked, const ModelFiles& files, const std::vector<WeightId>& edited);

/// Whether the form needs second moments of the edited layers' keys.
bool needs_moments(const OutputOptions& resolved);

/// The weights of one job on their way out.
class OutputForm {
 public:
  using Entries = std::span<const WeightTransaction::Entry>;

  virtual ~OutputForm() = default;

  /// Collective, with the exact weights in the model: what read_back() depends on. `edited`: requests so far.
  virtual void prepare(const EditContext&, std::span<const EditRequest>, Entries) {}
  /// Collective. What a reader of the output gets: [d_out, d_in] in the master's type, on its device.
  virtual Tensor read_back(const WeightTransaction::Entry& entry);
  /// Writes, on root, the weights as read_back() gave them last into the existing, empty folder. Throws:
  /// CheckpointError.
  virtual void write(Entries entries, const std::filesystem::path& folder) const = 0;

  /// "the weights rounded to the type they are exported in".
  virtual std::string read_back_text() const;
  /// What was lost on the way, by weight, in read_back()'s last order; on root. Empty: by rounding alone.
  virtual std::vector<RequantisedWeight> losses() const { return {}; }
};

/// What forms are made of; all of it outlives the form.
struct OutputParts {
  const OutputOptions& options;  ///< resolved
  const ModelFiles& files;
  const Editor& editor;
  /// E[k k^T] of a layer's keys on the unedited model, [F, F] or by expert [E, W, W]; on root. Undefined: the job has
  /// none, which is so only where needs_moments() is not.
  std::function<Tensor(int64_t layer)> moment;
};

std::unique_ptr<OutputForm> make_output_form(OutputParts parts);

/// The form that writes weights in the type that the checkpoint has them in.
std::unique_ptr<OutputForm> make_checkpoint_form(const ModelFiles& files);
/// The form that writes edited weights in full precision among packed ones.
std::unique_ptr<OutputForm> make_mixed_form(const ModelFiles& files);

// Edits as files beside the weights that they made.

/// Writes edits/ (EditHistory::write) and requests.jsonl into `folder`, which exists. Throws: CheckpointError when the
/// disk refuses.
void write_edits(const ModelFiles& files, const EditHistory& history, const std::filesystem::path& folder,
                 const HistoryWriting& options);

// A weight as the checkpoint stores it.

/// `model`: loaded from `files` and unedited. Its own tensor where it has the stored type, and so the stored bits; else
/// read again, into memory of its own. `id`: of a weight that the model has. Throws: CheckpointError.
Tensor stored_weight(const ModelFiles& files, const CausalLM& model, WeightId id);

}  // namespace lancet
