// Causal tracing: which hidden states carry a fact from the subject to the answer.
// Source: Meng et al. 2022, "Locating and Editing Factual Associations in GPT" (arXiv 2202.05262), section 2 and
// appendix B. Three runs of a prompt: clean; corrupted, with Gaussian noise on the embeddings of the subject's tokens;
// and corrupted with one clean state put back. Each tells the probability of the object token that the clean run
// predicts. Protocol and definitions: docs/trace.md.
// Differs from the reference: only what can change is run. A state put back at a token and layer changes nothing below
// that layer and nothing before that token, so the corrupted runs' hidden states at every layer's input, and their keys
// and values, are kept, and a row begins there.
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

/// What is put back.
enum class TraceKind : uint8_t {
  kHidden,    ///< the output of one layer
  kMlp,       ///< the MLP's outputs of a window of layers
  kAttention  ///< the attention's outputs of a window of layers
};

/// "hidden", "mlp", "attention".
std::string_view trace_kind_name(TraceKind kind);

struct TraceOptions {
  std::vector<TraceKind> kinds{TraceKind::kHidden, TraceKind::kMlp, TraceKind::kAttention};
  int64_t samples = 10;  ///< samples of the noise, for each fact
  double noise = 0;      ///< its standard deviation
  int64_t window = 10;   ///< layers, for mlp and attention
  uint64_t seed = 0;
  int64_t batch_tokens = kForwardTokens;  ///< most tokens under way, prefixes included; at least one place's samples
};

/// What follows a prompt, to the model.
struct Prediction {
  TokenId token = 0;
  double probability = 0;
};

/// Collective: every rank gets all. The likeliest next token of each prompt, each of at least one token.
/// Throws: NumericError when a probability is not finite.
std::vector<Prediction> predict_next(const CausalLM& model, std::span<const std::vector<TokenId>> prompts,
                                     Communicator& communicator);

/// A fact to trace.
struct TracedFact {
  SubjectTokens prompt;
  TokenId object = 0;  ///< whose probability is read after the prompt
  int64_t index = 0;   ///< which fact it is to the noise
};

/// Probabilities of the object token, means over the samples where there is noise.
struct FactTrace {
  double clean = 0;
  double corrupted = 0;
  std::vector<Tensor> restored_TL;  ///< one for each of TraceOptions::kinds: [T, L] f64, host
};

/// The layers whose outputs are put back for the map's layer: `window` of them around it, cut at the ends.
LayerRange trace_window(int64_t layer, int64_t window, int64_t n_layers);

/// Standard deviation over all entries of these tokens' embeddings, each token as often as it is named.
double embedding_deviation(const CausalLM& model, const std::vector<TokenId>& tokens);

/// Tokens of whose hidden states a rank keeps every layer's input, keys and values.
int64_t kept_trace_tokens(std::span<const TracedFact> facts, int64_t samples);

/// Collective: facts are spread over ranks, all of which get the whole. One trace per fact.
std::vector<FactTrace> trace_facts(const CausalLM& model, std::span<const TracedFact> facts,
                                   const TraceOptions& options, Communicator& communicator);

}  // namespace lancet
