// Causal tracing: finds which hidden states carry a fact from the subject to the answer.
// Source: Meng et al. 2022, "Locating and Editing Factual Associations in GPT" (arXiv 2202.05262), section 2 and
// appendix B. A prompt is run in three ways: clean; corrupted, with Gaussian noise on the embeddings of the subject's
// tokens; and corrupted with one clean state restored. Each run gives the probability of the object token that the
// clean run predicts. Protocol and definitions: docs/trace.md. Differs from the reference: only what can change is
// computed. Restoring a state at a token and layer changes nothing below that layer and nothing before that token. So
// the hidden states of the corrupted runs at every layer's input, and their keys and values, are kept, and a run begins
// at the restored place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/prompt.h"

namespace lancet {

/// Which state is restored.
enum class TraceKind : uint8_t {
  kHidden,    ///< the output of one layer
  kMlp,       ///< the MLP's outputs of a window of layers
  kAttention  ///< the attention's outputs of a window of layers
};

/// Returns "hidden", "mlp" or "attention".
std::string_view trace_kind_name(TraceKind kind);

struct TraceOptions {
  std::vector<TraceKind> kinds{TraceKind::kHidden, TraceKind::kMlp, TraceKind::kAttention};
  int64_t samples = 10;  ///< noise samples per fact
  double noise = 0;      ///< standard deviation of the noise
  int64_t window = 10;   ///< number of layers that kMlp and kAttention restore
  uint64_t seed = 0;
  /// Most tokens in flight, prefixes included; at least the samples of one place.
  int64_t batch_tokens = kForwardTokens;
};

/// The model's prediction after a prompt.
struct Prediction {
  TokenId token = 0;
  double probability = 0;
};

/// Collective. Returns on every rank the likeliest next token of each prompt; each prompt has at least one token.
/// Throws: NumericError when a probability is not finite.
std::vector<Prediction> predict_next(const CausalLM& model, std::span<const std::vector<TokenId>> prompts,
                                     Communicator& communicator);

/// A fact to trace.
struct TracedFact {
  SubjectTokens prompt;
  TokenId object = 0;  ///< token whose probability after the prompt is measured
  int64_t index = 0;   ///< index of the fact for the noise
};

/// Probabilities of the object token; with noise they are means over the samples.
struct FactTrace {
  double clean = 0;
  double corrupted = 0;
  std::vector<Tensor> restored_TL;  ///< one for each of TraceOptions::kinds: [T, L] f64, host
};

/// Returns the layers whose outputs are restored for one layer of the map: `window` layers around it, cut at the ends.
LayerRange trace_window(int64_t layer, int64_t window, int64_t n_layers);

/// Returns the standard deviation over all entries of the embeddings of these tokens; a token counts as often as it is
/// listed.
double embedding_deviation(const CausalLM& model, const std::vector<TokenId>& tokens);

/// Returns the number of tokens for which a rank keeps the input, keys and values of every layer.
int64_t kept_trace_tokens(std::span<const TracedFact> facts, int64_t samples);

/// Collective. Traces the facts, which are spread over the ranks. Every rank gets all traces, one per fact.
std::vector<FactTrace> trace_facts(const CausalLM& model, std::span<const TracedFact> facts,
                                   const TraceOptions& options, Communicator& communicator);

}  // namespace lancet
