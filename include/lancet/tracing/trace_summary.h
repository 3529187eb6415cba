// What causal traces of many facts have in common: averages by what a token is to its fact, and where they peak.
// Source: Meng et al. 2022 (arXiv 2202.05262), figure 2 and appendix B.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lancet/tracing/causal_trace.h"

namespace lancet {

/// Each token from the subject on is in one class. One that could be in two is the subject's last token, or else the
/// prompt's last one.
enum class TokenClass : uint8_t { kFirstSubject, kMiddleSubject, kLastSubject, kFirstSubsequent, kFurther, kLast };
inline constexpr int64_t kTokenClasses = 6;

/// "first subject token".
std::string_view token_class_name(TokenClass token_class);

/// nullopt: a token before the subject, which no corruption reaches.
std::optional<TokenClass> token_class(const SubjectTokens& prompt, int64_t token);

/// Averages of one kind.
struct KindSummary {
  TraceKind kind = TraceKind::kHidden;
  Tensor effect_CL;        ///< average indirect effect by class and layer, f64, host; 0 for a class without facts
  int64_t peak_layer = 0;  ///< layer where it is largest at the subject's last token; the first of several
  double peak = 0;
};

struct TraceSummary {
  double clean = 0;  ///< average probability
  double corrupted = 0;
  double total_effect = 0;              ///< average total effect: clean - corrupted
  std::vector<int64_t> facts_by_class;  ///< facts that have such a token
  std::vector<KindSummary> kinds;
  /// The layers around the peak of `mlp` at the subject's last token whose effect is at least kSuggestedShare of it;
  /// empty where mlp was not traced or nothing is restored.
  std::vector<int64_t> suggested_layers;
};

inline constexpr double kSuggestedShare = 0.9;

/// Averages over each fact's tokens of a class, then over the facts that have any. At least one fact.
TraceSummary summarize(std::span<const TracedFact> facts, std::span<const FactTrace> traces,
                       const TraceOptions& options);

}  // namespace lancet
