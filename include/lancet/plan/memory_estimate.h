// How much memory a job takes on each stage of a model, from configuration and counts alone: no weights, no devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/eval/evaluate.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/training/value_memory.h"

namespace lancet {

/// How edited weights are quantised again, if they are.
enum class Packing { kNone, kPlain, kByMoments };

/// What a job does, as far as memory and time depend on it.
struct Workload {
  at::ScalarType dtype = at::kFloat;  ///< type of weights and activations
  QuantiseRule quantise_rule;         ///< which weights are kept quantised
  SolveOn solve_on = SolveOn::kDevice;
  int64_t host_threads = 1;

  int64_t requests = 0;
  int64_t batch = 0;           ///< requests edited together; 0: all
  int64_t history_keys = 0;    ///< keys of earlier batches, at most, in a solve
  int64_t changes = 1;         ///< changes of each weight by one batch
  int64_t solve_matrices = 0;  ///< EditorNeeds::solve_matrices
  Packing packing = Packing::kNone;
  int64_t measured_between = 0;        ///< requests, between batches
  std::vector<int64_t> edited_layers;  ///< ascending; empty: nothing is edited
  LaunchMode step_launch = LaunchMode::kEachOperation;
  bool optimizes_values = false;     ///< steps run through the layers above the last edited one, or above `values_at`
  std::optional<int64_t> values_at;  ///< another layer that values are optimised at
  int64_t steps_from = 0;            ///< the lowest layer whose values are optimised
  ValueShape values;
  int64_t value_batch = 0;  ///< requests together, as the job asks; 0: by memory
  int64_t value_steps = 0;

  std::optional<BackwardNeeds> backward;  ///< needs of methods that train

  std::vector<int64_t> statistics_layers;  ///< whose covariances are factored
  int64_t statistics_tokens = 0;           ///< tokens of the pass over text; 0: none (imported, or not needed)
  int64_t statistics_chunk = 0;            ///< tokens of it together; 0: as the model and its type say
  int64_t document_tokens = 0;             ///< tokens of the longest document
  bool takes_gradients = false;            ///< a pass with backward over the same text, and spectra for factors
  bool samples_text = false;               ///< corpus: self

  bool packs_layers = false;  ///< all matrices of a layer at a time, by second moments of their inputs over text

  EvaluationSize evaluation;
  int64_t kept_tokens = 0;  ///< tokens of which an evaluation keeps all layers' inputs, keys, values (causal tracing)

  int64_t together() const { return batch > 0 ? batch : requests; }
  int64_t value_layer() const { return values_at ? *values_at : edited_layers.back(); }
};

/// Bytes of one stage at its fullest, by what they are for.
struct StageEstimate {
  Stage stage;
  int64_t weights = 0;
  int64_t loading = 0;            ///< bytes beside them, while those that stay quantised are loaded
  int64_t unpacked = 0;           ///< bytes of those that are unpacked, a matrix for each batch under way
  int64_t edited = 0;             ///< masters and new versions of edited weights
  int64_t evaluate = 0;           ///< forward passes and generation, with its keys and values
  int64_t value_activations = 0;  ///< bytes of the batches under way
  int64_t value_prefix = 0;       ///< their cached keys and values
  int64_t training = 0;           ///< backward passes, and what they are taken for
  int64_t statistics = 0;         ///< sums of second moments and a chunk's pass
  int64_t solve = 0;              ///< factor, keys, systems and the change
  int64_t kept = 0;               ///< factors and null spaces that stay there from one batch or edit to the next
  int64_t budget = 0;

  /// Weights, edited weights, what is unpacked, what is kept, and the fullest of the stages of work, which come one
  /// after another; or what loading takes.
  int64_t total() const;
};

/// `value_requests`: of one batch; `under_way`: batches at a time.
struct Batching {
  int64_t value_requests = 1;
  int64_t under_way = 1;
};

/// Estimates the layers of `stage` on its device, solves as `work` says (kAuto as kDevice): on the host, they are the
/// host's stage's, which then may have no layer. Pure.
StageEstimate estimate_stage(const ModelConfig& config, const Workload& work, const Stage& stage, Batching batching);

/// Matrices that an edit's solves on one device read, factors or null spaces.
struct SolveMatrices {
  int64_t count = 0;
  int64_t bytes = 0;  ///< bytes of one
};
SolveMatrices solve_matrices(const ModelConfig& config, const Workload& work, const Stage& stage);

/// Returns how many of `wanted` may be kept on the stage's device beside the most that its work takes.
int64_t matrices_with_room(const StageEstimate& estimate, SolveMatrices wanted);

/// Seconds of a stage on a device that computes one multiplication and addition a second: for comparing stages.
double estimate_time(const ModelConfig& config, const Workload& work, LayerRange layers);

}  // namespace lancet
