// Summarises the causal traces of many facts: averages by the role of a token in its fact, and where they peak.
// Source: Meng et al. 2022 (arXiv 2202.05262), figure 2 and appendix B.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lancet/tracing/causal_trace.h"

namespace lancet {

/// The class of each token from the subject on. A token that could be in two classes is the subject's last token, or
/// else the prompt's last one.
enum class TokenClass : uint8_t { kFirstSubject, kMiddleSubject, kLastSubject, kFirstSubsequent, kFurther, kLast };
inline constexpr int64_t kTokenClasses = 6;

/// Returns a name such as "first subject token".
std::string_view token_class_name(TokenClass token_class);

/// Returns the class of a token; nullopt: it is before the subject, where no corruption has an effect.
std::optional<TokenClass> token_class(const SubjectTokens& prompt, int64_t token);

/// The averages of one kind.
struct KindSummary {
  TraceKind kind = TraceKind::kHidden;
  Tensor effect_CL;  ///< average indirect effect by class and layer, f64, host; 0 for a class without facts
  /// Layer with the largest effect at the subject's last token; the first if there are several.
  int64_t peak_layer = 0;
  double peak = 0;
};

struct TraceSummary {
  double clean = 0;  ///< average probability
  double corrupted = 0;
  double total_effect = 0;              ///< average total effect: clean - corrupted
  std::vector<int64_t> facts_by_class;  ///< number of facts that have a token of the class
  std::vector<KindSummary> kinds;
  /// The layers around the peak of `mlp` at the subject's last token with an effect of at least kSuggestedShare of the
  /// peak; empty if mlp was not traced or nothing is restored.
  std::vector<int64_t> suggested_layers;
};

inline constexpr double kSuggestedShare = 0.9;

/// Averages over each fact's tokens of a class, then over the facts that have such tokens. There must be at least one
/// fact.
TraceSummary summarize(std::span<const TracedFact> facts, std::span<const FactTrace> traces,
                       const TraceOptions& options);

}  // namespace lancet
