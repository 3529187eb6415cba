#include "lancet/tracing/trace_summary.h"

#include <torch/types.h>

#include <array>

namespace lancet {
namespace {

constexpr std::array<std::string_view, kTokenClasses> kClassNames{"first subject token", "middle subject tokens",
                                                                  "last subject token",  "first subsequent token",
                                                                  "further tokens",      "last token"};

/// Returns the tokens of the fact, by class.
std::vector<std::vector<int64_t>> tokens_by_class(const SubjectTokens& prompt) {
  std::vector<std::vector<int64_t>> tokens(kTokenClasses);
  for (int64_t token = 0; token < static_cast<int64_t>(prompt.ids.size()); ++token)
    if (const std::optional<TokenClass> known = token_class(prompt, token))
      tokens[static_cast<size_t>(*known)].push_back(token);
  return tokens;
}

std::vector<int64_t> layers_around_peak(const KindSummary& mlp) {
  if (mlp.peak <= 0) return {};
  const std::vector<double> effect = to_doubles(mlp.effect_CL[static_cast<int64_t>(TokenClass::kLastSubject)]);
  const auto is_high = [&](int64_t layer) {
    return layer >= 0 && layer < static_cast<int64_t>(effect.size()) &&
           effect[static_cast<size_t>(layer)] >= kSuggestedShare * mlp.peak;
  };
  int64_t first = mlp.peak_layer, last = mlp.peak_layer;
  while (is_high(first - 1)) --first;
  while (is_high(last + 1)) ++last;
  std::vector<int64_t> layers;
  for (int64_t layer = first; layer <= last; ++layer) layers.push_back(layer);
  return layers;
}

}  // namespace

std::string_view token_class_name(TokenClass token_class) { return kClassNames[static_cast<size_t>(token_class)]; }

std::optional<TokenClass> token_class(const SubjectTokens& prompt, int64_t token) {
  if (token < prompt.first) return std::nullopt;
  if (token == prompt.end - 1) return TokenClass::kLastSubject;
  if (token == static_cast<int64_t>(prompt.ids.size()) - 1) return TokenClass::kLast;
  if (token == prompt.first) return TokenClass::kFirstSubject;
  if (token < prompt.end) return TokenClass::kMiddleSubject;
  return token == prompt.end ? TokenClass::kFirstSubsequent : TokenClass::kFurther;
}

TraceSummary summarize(std::span<const TracedFact> facts, std::span<const FactTrace> traces,
                       const TraceOptions& options) {
  const int64_t n_layers = traces.front().restored_TL.front().size(1);
  TraceSummary summary;
  summary.facts_by_class.assign(kTokenClasses, 0);
  for (const TraceKind kind : options.kinds)
    summary.kinds.push_back({kind, torch::zeros({kTokenClasses, n_layers}, torch::kDouble)});
  for (size_t f = 0; f < facts.size(); ++f) {
    const double share = 1 / static_cast<double>(facts.size());
    summary.clean += share * traces[f].clean;
    summary.corrupted += share * traces[f].corrupted;
    const std::vector<std::vector<int64_t>> tokens = tokens_by_class(facts[f].prompt);
    for (size_t c = 0; c < tokens.size(); ++c) {
      if (tokens[c].empty()) continue;
      ++summary.facts_by_class[c];
      const Tensor token = torch::tensor(tokens[c], torch::kLong);
      for (size_t k = 0; k < summary.kinds.size(); ++k)
        summary.kinds[k].effect_CL[static_cast<int64_t>(c)] +=
            traces[f].restored_TL[k].index_select(0, token).mean(0) - traces[f].corrupted;
    }
  }
  summary.total_effect = summary.clean - summary.corrupted;
  for (KindSummary& kind : summary.kinds) {
    for (size_t c = 0; c < summary.facts_by_class.size(); ++c)
      if (summary.facts_by_class[c] > 0)
        kind.effect_CL[static_cast<int64_t>(c)] /= static_cast<double>(summary.facts_by_class[c]);
    const Tensor at_subject = kind.effect_CL[static_cast<int64_t>(TokenClass::kLastSubject)];
    kind.peak_layer = at_subject.argmax().item<int64_t>();
    kind.peak = at_subject[kind.peak_layer].item<double>();
    if (kind.kind == TraceKind::kMlp) summary.suggested_layers = layers_around_peak(kind);
  }
  return summary;
}

}  // namespace lancet
