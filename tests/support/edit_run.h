// A whole edit of a tiny model, from statistics to generation, with all that it computed.
#pragma once

#include <utility>
#include <vector>

#include "lancet/eval/metrics.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/covariance.h"
#include "tiny_model.h"

namespace lancet::testing {

struct EditRun {
  Tensor logits;
  std::vector<std::vector<TokenId>> generated;
  std::vector<Covariance> covariances;               ///< root's, on the host
  std::vector<std::pair<WeightId, Tensor>> deltas;   ///< master - original
  std::vector<std::pair<WeightId, Tensor>> weights;  ///< edited weights, on the host
  Tallies metrics;
  std::vector<std::string> continuations;
};

/// The layers whose down projections it changes.
inline const std::vector<int64_t> kEditRunLayers{0, 1, 2};

/// Statistics over several chunks, values in several batches, keys, solves, transaction, evaluation, generation, in
/// f64. `quantiser`: of weights that it does not change; those that the checkpoint has quantised stay so.
EditRun run_edit(const TinyModel& tiny, const std::vector<at::Device>& devices, Communicator& communicator,
                 std::optional<Quantiser> quantiser = {}, SolveOn solve_on = SolveOn::kDevice);

/// Edits likewise a model of `tiny` that is loaded, in f64, with those layers' down projections in full precision.
EditRun run_edit(const TinyModel& tiny, CausalLM model, Communicator& communicator);

/// The fake devices first, first + 1, ...
std::vector<at::Device> fake_devices(int first, int count);

}  // namespace lancet::testing
