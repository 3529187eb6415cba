// Estimates how much memory a job takes on each stage of a model, from its configuration and counts only. It needs no
// weights and no devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/eval/evaluate.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/training/value_memory.h"

namespace lancet {

/// Whether and how edited weights are quantised again.
enum class Packing { kNone, kPlain, kByMoments };

/// The properties of a job on which its memory and time depend.
struct Workload {
  at::ScalarType dtype = at::kFloat;  ///< type of weights and activations
  QuantiseRule quantise_rule;         ///< which weights are kept quantised
  SolveOn solve_on = SolveOn::kDevice;
  int64_t host_threads = 1;

  int64_t requests = 0;
  int64_t batch = 0;           ///< number of requests that are edited together; 0: all
  int64_t history_keys = 0;    ///< most keys of earlier batches in a solve
  int64_t changes = 1;         ///< number of changes that one batch makes to each weight
  int64_t solve_matrices = 0;  ///< EditorNeeds::solve_matrices
  Packing packing = Packing::kNone;
  int64_t measured_between = 0;        ///< number of requests that are measured between batches
  std::vector<int64_t> edited_layers;  ///< ascending; empty: nothing is edited
  LaunchMode step_launch = LaunchMode::kEachOperation;
  bool optimizes_values = false;     ///< steps run through the layers above the last edited one, or above `values_at`
  std::optional<int64_t> values_at;  ///< layer at which values are optimised, if not the last edited one
  int64_t steps_from = 0;            ///< the lowest layer at which values are optimised
  ValueShape values;
  int64_t value_batch = 0;  ///< number of requests optimised together, as the job asks; 0: as memory allows
  int64_t value_steps = 0;

  std::optional<BackwardNeeds> backward;  ///< needs of a method that trains

  std::vector<int64_t> statistics_layers;  ///< layers whose covariances are factored
  int64_t statistics_tokens = 0;           ///< tokens of the pass over text; 0: no pass (imported, or not needed)
  int64_t statistics_chunk = 0;            ///< tokens per chunk of that pass; 0: as the model and its type determine
  int64_t document_tokens = 0;             ///< tokens of the longest document
  bool takes_gradients = false;            ///< a backward pass runs over the same text, and spectra replace factors
  bool samples_text = false;               ///< corpus: self

  /// Whether all matrices of a layer are packed at a time, with second moments of their inputs over text.
  bool packs_layers = false;

  EvaluationSize evaluation;
  /// Tokens for which an evaluation keeps the inputs, keys and values of all layers (causal tracing).
  int64_t kept_tokens = 0;

  int64_t together() const { return batch > 0 ? batch : requests; }
  int64_t value_layer() const { return values_at ? *values_at : edited_layers.back(); }
};

/// The peak bytes of one stage, by purpose.
struct StageEstimate {
  Stage stage;
  int64_t weights = 0;
  int64_t loading = 0;            ///< additional bytes while weights that stay quantised are loaded
  int64_t unpacked = 0;           ///< unpacked matrices, one per batch in flight
  int64_t edited = 0;             ///< master copies and new versions of edited weights
  int64_t evaluate = 0;           ///< forward passes and generation, including keys and values
  int64_t value_activations = 0;  ///< activations of the value batches in flight
  int64_t value_prefix = 0;       ///< cached keys and values of these batches
  int64_t training = 0;           ///< backward passes, and what their gradients are used for
  int64_t statistics = 0;         ///< sums of second moments, and the pass of one chunk
  int64_t solve = 0;              ///< factor, keys, systems and the change
  int64_t kept = 0;  ///< factors and null spaces that stay on the device from one batch or edit to the next
  int64_t budget = 0;

  /// Returns the weights plus the larger of: the bytes of loading; or the edited weights, unpacked and kept matrices,
  /// and the largest of the work phases, which run one after another.
  int64_t total() const;
};

/// The batches of value optimisation. `value_requests`: requests per batch; `under_way`: batches in flight.
struct Batching {
  int64_t value_requests = 1;
  int64_t under_way = 1;
};

/// Estimates the memory of the layers of `stage` on its device, with solves where `work` says (kAuto counts as
/// kDevice). Solves on the host belong to the host's stage, which then may have no layer. A pure function.
StageEstimate estimate_stage(const ModelConfig& config, const Workload& work, const Stage& stage, Batching batching);

/// The matrices (factors or null spaces) that the solves of an edit read on one device.
struct SolveMatrices {
  int64_t count = 0;
  int64_t bytes = 0;  ///< bytes of one
};
SolveMatrices solve_matrices(const ModelConfig& config, const Workload& work, const Stage& stage);

/// Returns how many of the `wanted` matrices may stay on the stage's device in addition to its peak.
int64_t matrices_with_room(const StageEstimate& estimate, SolveMatrices wanted);

/// Returns the seconds of a stage on a device that does one multiplication and one addition per second. Use it only to
/// compare stages.
double estimate_time(const ModelConfig& config, const Workload& work, LayerRange layers);

}  // namespace lancet
