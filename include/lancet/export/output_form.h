// The forms in which edited weights are written, and the weights that a reader gets from them.
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

/// Resolves `output:` of a job for this model and these weights, with `auto` replaced. `edited`: the weights that the
/// editor may change. Throws: ConfigError for a format that the model or the weights do not support.
OutputOptions resolve_output(const OutputOptions& asked, const ModelFiles& files, const std::vector<WeightId>& edited);

/// Returns whether the form needs second moments of the edited layers' keys.
bool needs_moments(const OutputOptions& resolved);

/// The form in which the weights of one job are written.
class OutputForm {
 public:
  using Entries = std::span<const WeightTransaction::Entry>;

  virtual ~OutputForm() = default;

  /// Collective. Prepares read_back() while the exact weights are in the model. `edited`: the requests so far.
  virtual void prepare(const EditContext&, std::span<const EditRequest>, Entries) {}
  /// Collective. Returns the weight as a reader of the output gets it: [d_out, d_in] in the master's type, on its
  /// device.
  virtual Tensor read_back(const WeightTransaction::Entry& entry);
  /// Writes, on root, the last results of read_back() into the existing, empty folder. Throws: CheckpointError.
  virtual void write(Entries entries, const std::filesystem::path& folder) const = 0;

  /// Describes the result of read_back(): "the weights rounded to the type they are exported in".
  virtual std::string read_back_text() const;
  /// Returns the loss of each weight, on root, in the order of the last calls of read_back(). Empty: the only loss is
  /// rounding.
  virtual std::vector<RequantisedWeight> losses() const { return {}; }
};

/// The parts that forms are made of. All must outlive the form.
struct OutputParts {
  const OutputOptions& options;  ///< resolved
  const ModelFiles& files;
  const Editor& editor;
  /// Returns E[k k^T] of a layer's keys on the unedited model, [F, F] or by expert [E, W, W]; on root. Undefined: the
  /// job has none, which is possible only if needs_moments() is false.
  std::function<Tensor(int64_t layer)> moment;
};

std::unique_ptr<OutputForm> make_output_form(OutputParts parts);

/// Returns the form that writes weights in the checkpoint's type.
std::unique_ptr<OutputForm> make_checkpoint_form(const ModelFiles& files);
/// Returns the form that writes edited weights in full precision beside packed ones.
std::unique_ptr<OutputForm> make_mixed_form(const ModelFiles& files);

// Writes edits as files beside the edited weights.

/// Writes edits/ (EditHistory::write) and requests.jsonl into the existing `folder`. Throws: CheckpointError if writing
/// fails.
void write_edits(const ModelFiles& files, const EditHistory& history, const std::filesystem::path& folder,
                 const HistoryWriting& options);

// Reads a weight as the checkpoint stores it.

/// Returns the model's own tensor if it has the stored type, and so the stored bits; else reads the weight again, into
/// new memory. `model` must be loaded from `files` and unedited, and must have the weight `id`. Throws:
/// CheckpointError.
Tensor stored_weight(const ModelFiles& files, const CausalLM& model, WeightId id);

}  // namespace lancet
