// The one value optimiser: for each request the hidden state z* at the subject's last token, at one site of one layer,
// that makes the model say the target. Source: MEMIT (arXiv 2210.07229, section 4.2 and eq. 16), from ROME
// (arXiv 2202.05262, eq. 4); PMET (arXiv 2308.08742, section 3.3). Differs from the references: many requests at once,
// each with its own loss, stop and clamp; layers up to the edited one are run once; logits only where the loss needs
// them; target ids are spliced, not re-tokenised.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// Where the optimised vector is added, at the lookup token of every row.
enum class ValueSite {
  kBlockOut,      ///< the layer's output (MEMIT)
  kMlpOut,        ///< the MLP's output (ROME): moves the model as kBlockOut does, but h0 is the MLP's part of it
  kMlpAndAttnOut  ///< one vector at the MLP's output, one at the attention's (PMET); z is the MLP's
};

/// When a request is done before its steps are.
enum class ValueStop {
  kLoss,            ///< its loss is below stop_loss
  kLossOrPredicted  ///< or every target token is the most probable one in every context and the weighted KL is at most
                    ///< 0.01; while the former holds, the NLL counts a tenth (PMET's public code)
};

/// Defaults: the published MEMIT configuration for Llama-2-7B.
struct ValueOptions {
  int64_t steps = 25;             ///< forward passes at most; the last one makes no update
  double lr = 0.5;                ///< Adam (0.9, 0.999, 1e-8)
  double weight_decay = 1e-3;     ///< times ||delta|| / ||h0||^2
  double clamp = 4.0;             ///< ||delta|| <= clamp * ||h0||
  double kl = 0.0625;             ///< weight of KL(now || before) at "{subject} is a"
  double stop_loss = 0.05;        ///< a request is done when its total loss, over all contexts, is below
  int64_t contexts_per_step = 0;  ///< a step sees these of a request's contexts, the next one others, in turn; 0: all
  int64_t batch = 0;  ///< requests optimised together, beyond rounding without effect; 0: by memory and caches
  ValueSite site = ValueSite::kBlockOut;  ///< the method's choice, as are the next two
  ValueStop stop = ValueStop::kLoss;
  double nll_factor = 1.0;  ///< weight of the NLL; a job's key where the method's site is kMlpAndAttnOut
};

/// `values:` of a job over a method's own defaults. Problems go to the section.
ValueOptions parse_value_options(ConfigSection section, const ValueOptions& defaults = {});

/// The total loss and its parts at one step of one request.
struct ValueLoss {
  double total = 0;
  double nll = 0;           ///< weighted; mean over contexts of the mean over target tokens of -log p
  double kl = 0;            ///< weighted
  double weight_decay = 0;  ///< weighted
};

/// How the requests were run.
struct ValueBatching {
  int64_t batches = 0;
  int64_t largest = 0;   ///< requests of the largest batch
  int64_t halvings = 0;  ///< of batches that memory did not suffice for
  int64_t resumed = 0;   ///< requests whose values an interrupted run had found
};

struct OptimizedValues {
  Tensor z_ND;                                 ///< value dtype, on the edited layer's device
  std::vector<std::vector<ValueLoss>> losses;  ///< per request, per step run
  std::vector<double> initial_norms;           ///< ||h0||, of the site that z is of
  std::vector<double> delta_norms;             ///< ||z - h0||
  ValueBatching batching;
};

class ValueStore;

/// With whom the work of an edit is done, and where finished values are kept against interruption.
struct Sharing {
  Communicator& communicator;
  const ValueStore* values = nullptr;  ///< may be null
};

/// Collective: batches are spread over ranks, all of which get the whole.
/// Hidden states at the options' site of `layer`. On the weights as they are; changes none of them. Batches that the
/// store holds are taken from there, the others put there when they are done. A batch that memory does not suffice for
/// is halved.
/// Throws: PlacementError when memory does not suffice for one request, NumericError when a loss is not finite.
OptimizedValues optimize_values(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                const ValueOptions& options, const Sharing& sharing);

}  // namespace lancet
