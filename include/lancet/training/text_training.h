// Losses on requests' texts and their gradients, for methods that train: the single backward pass of UltraEdit, and the
// dense optimiser of fine-tuning. No weight is changed: a change during training is an extra term in its weight's
// output. Source: UltraEdit (arXiv 2505.14679, section 3.1); FT and FT-L as ROME's baselines (arXiv 2202.05262,
// appendix), FT-M (EasyEdit). Differs from the references: layers below the lowest weight are run once; where the
// factors of the weights' gradients suffice, only they are computed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/gradient_spec.h"
#include "lancet/training/gradient_projection.h"

namespace lancet {

/// The positions of a text at which a weight is observed.
enum class TokenChoice {
  kAnswer,  ///< positions that predict a target token
  kAll      ///< all positions of prompt and target, except the last one, which predicts nothing
};

/// One weight's inputs, and the loss's gradients at its outputs: one row per token, f64, on the layer's solve device.
struct TokenGradients {
  Tensor inputs_MI;
  Tensor gradients_MO;
};

struct CapturedGradients {
  std::vector<TokenGradients> weights;  ///< one entry per weight, in the order of the weights
  std::vector<int64_t> owners;          ///< index of the request of each row
  std::vector<int64_t> pass_sizes;      ///< number of rows of each backward pass, in order
  std::vector<double> losses;           ///< mean NLL of each request's target tokens
};

struct CaptureOptions {
  TokenChoice tokens = TokenChoice::kAnswer;
  int64_t batch = *GradientSpec::kUltraBatch.fallback;  ///< requests per backward pass; their loss is one mean
};

/// Collective. Captures the gradients, with batches spread over the ranks; every rank gets the whole result. The loss
/// of a batch is the mean NLL over the target tokens of all its requests. `weights`: gate, up and down projections.
CapturedGradients capture_token_gradients(const CausalLM& model, std::span<const TokenizedRequest> requests,
                                          std::span<const WeightId> weights, const CaptureOptions& options,
                                          Communicator& communicator);

/// The loss that fine-tuning minimises.
enum class TrainingObjective {
  kPromptLast,  ///< mean over target tokens of -log p, all at the prompt's last token (FT, FT-L)
  kTarget       ///< mean NLL of the target tokens, teacher-forced (FT-M)
};

/// How a training pass forms its batches.
enum class TrainingOrder {
  kGiven,        ///< batches in the order of the requests
  kBreadthFirst  ///< other batches in each pass, drawn from a seed (LocFT-BF)
};

/// What is projected, if anything.
enum class Projected {
  kGradients,  ///< gradients, before Adam (CrispEdit)
  kSteps       ///< gradients, and also the steps that Adam makes from them
};

/// The options that GradientSpec describes. Defaults: as published for 7-8B models.
struct TrainingOptions {
  TrainingObjective objective = TrainingObjective::kTarget;
  int64_t steps = *GradientSpec::kSteps.fallback;
  double lr = *GradientSpec::kLr.fallback;
  double weight_decay = *GradientSpec::kWeightDecay.fallback;
  int64_t batch = *GradientSpec::kBatch.fallback;
  double stop_loss = *GradientSpec::kStopLoss.fallback;
  std::optional<double> norm_constraint = {};  ///< largest change of any entry (FT-L)
  /// Updates skip requests whose target tokens all lead every other token by this margin of log p. Not for kPromptLast.
  std::optional<double> margin = {};
  TrainingOrder order = TrainingOrder::kGiven;
  uint64_t seed = 0;    ///< seed of the random draws
  int64_t revisit = 0;  ///< number of texts of `earlier` that join each pass, one after another in a random order
  /// The requests of earlier batches.
  std::vector<TokenizedRequest> earlier = {};
  Projected projected = Projected::kGradients;
  /// Makes the projection of a weight's gradients, on any device. It is called on root, when training begins. Empty: no
  /// projection.
  std::function<GradientProjection(WeightId id)> projection = {};
};

struct TrainedWeights {
  /// The changes in the order of the weights, value dtype, each on its weight's device. Only root has them: see
  /// EditContext::solve().
  std::vector<Tensor> deltas_OI;
  std::vector<double> initial_losses, final_losses;  ///< one per request; final: in the last pass, before its update
  int64_t steps = 0;
};

/// Collective. Trains `weights` (gate, up and down projections) with Adam. Each update depends on the one before, so
/// root trains and the other ranks wait. Throws: NumericError when a loss is not finite.
TrainedWeights train_weights(const CausalLM& model, std::span<const TokenizedRequest> requests,
                             std::span<const WeightId> weights, const TrainingOptions& options,
                             Communicator& communicator);

}  // namespace lancet
