// Losses on requests' texts and their gradients, for methods that train: what UltraEdit takes from one backward pass,
// and the dense optimiser of fine-tuning. No weight is changed: a change under way is a term beside its weight's
// output. Source: UltraEdit (arXiv 2505.14679, section 3.1); FT and FT-L as ROME's baselines (arXiv 2202.05262,
// appendix), FT-M (EasyEdit). Differs from the references: layers below the lowest weight are run once; of the weights'
// gradients only the factors are taken where factors do.
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

/// Which positions of a text a weight is seen at.
enum class TokenChoice {
  kAnswer,  ///< those that predict a target token
  kAll      ///< all of prompt and target, but for the last one, which predicts nothing
};

/// One weight's inputs and the loss's gradients at its outputs, a token a row, f64 on the layer's solve device.
struct TokenGradients {
  Tensor inputs_MI;
  Tensor gradients_MO;
};

struct CapturedGradients {
  std::vector<TokenGradients> weights;  ///< one for each of the weights, in their order
  std::vector<int64_t> owners;          ///< request of each row
  std::vector<int64_t> pass_sizes;      ///< rows of each backward pass, one after another
  std::vector<double> losses;           ///< mean NLL of each request's target tokens
};

struct CaptureOptions {
  TokenChoice tokens = TokenChoice::kAnswer;
  int64_t batch = *GradientSpec::kUltraBatch.fallback;  ///< requests of one backward pass: their loss is one mean
};

/// Collective: batches are spread over ranks, all of which get the whole.
/// The loss of a batch is the mean NLL over the target tokens of its requests together. `weights`: gate, up and down
/// projections.
CapturedGradients capture_token_gradients(const CausalLM& model, std::span<const TokenizedRequest> requests,
                                          std::span<const WeightId> weights, const CaptureOptions& options,
                                          Communicator& communicator);

/// What fine-tuning lowers.
enum class TrainingObjective {
  kPromptLast,  ///< mean over target tokens of -log p, all at the prompt's last token (FT, FT-L)
  kTarget       ///< mean NLL of the target tokens, teacher-forced (FT-M)
};

/// Batches that a pass of training has the requests in.
enum class TrainingOrder {
  kGiven,        ///< those of the requests' order
  kBreadthFirst  ///< others in each pass, drawn from a seed (LocFT-BF)
};

/// What is projected, where something is.
enum class Projected {
  kGradients,  ///< gradients, before Adam (CrispEdit)
  kSteps       ///< and what Adam makes of them
};

/// Options that GradientSpec describes; defaults: as published for 7-8B models.
struct TrainingOptions {
  TrainingObjective objective = TrainingObjective::kTarget;
  int64_t steps = *GradientSpec::kSteps.fallback;
  double lr = *GradientSpec::kLr.fallback;
  double weight_decay = *GradientSpec::kWeightDecay.fallback;
  int64_t batch = *GradientSpec::kBatch.fallback;
  double stop_loss = *GradientSpec::kStopLoss.fallback;
  std::optional<double> norm_constraint = {};  ///< largest change of any entry (FT-L)
  /// Updates leave out requests all of whose target tokens lead any other token by this much of log p. Not for
  /// kPromptLast.
  std::optional<double> margin = {};
  TrainingOrder order = TrainingOrder::kGiven;
  uint64_t seed = 0;    ///< seed of what is drawn
  int64_t revisit = 0;  ///< texts of `earlier` that join each pass, one after another in a drawn order
  /// Those of earlier batches.
  std::vector<TokenizedRequest> earlier = {};
  Projected projected = Projected::kGradients;
  /// Makes what a weight's gradients are projected by, on any device: on root, when training begins. Empty: nothing is.
  std::function<GradientProjection(WeightId id)> projection = {};
};

struct TrainedWeights {
  /// Changes in the order of the weights, value dtype, each on its weight's device. Root's alone: see
  /// EditContext::solve().
  std::vector<Tensor> deltas_OI;
  std::vector<double> initial_losses, final_losses;  ///< one a request; final: at the last pass, before its update
  int64_t steps = 0;
};

/// Adam on `weights` (gate, up and down projections). Collective: each update stands on the one before, so root trains
/// and the others wait. Throws: NumericError when a loss is not finite.
TrainedWeights train_weights(const CausalLM& model, std::span<const TokenizedRequest> requests,
                             std::span<const WeightId> weights, const TrainingOptions& options,
                             Communicator& communicator);

}  // namespace lancet
