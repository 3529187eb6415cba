// The rows of protocol_table(): each protocol's file says its name, its metrics and how it is made.
#pragma once

#include <array>

#include "lancet/eval/protocol.h"

namespace lancet {

std::unique_ptr<Protocol> make_efficacy(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_paraphrase(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_specificity(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_generation(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_distracted(const EvaluationOptions& options);

inline constexpr std::array<std::string_view, 2> kEfficacyMetrics{"efficacy_prob", "efficacy_argmax"};
inline constexpr ProtocolRow kEfficacyProtocol{"efficacy", "the edited prompts", make_efficacy, kEfficacyMetrics};

inline constexpr std::array<std::string_view, 2> kParaphraseMetrics{"paraphrase_prob", "paraphrase_argmax"};
inline constexpr ProtocolRow kParaphraseProtocol{"paraphrase", "other prompts for the same facts", make_paraphrase,
                                                 kParaphraseMetrics};

inline constexpr std::array<std::string_view, 2> kSpecificityMetrics{"specificity_prob", "specificity_argmax"};
inline constexpr ProtocolRow kSpecificityProtocol{"specificity", "prompts of other subjects with the same true answer",
                                                  make_specificity, kSpecificityMetrics};

inline constexpr std::array<std::string_view, 3> kGenerationMetrics{"generation_exact", "generation_alias",
                                                                    "generation_contains"};
inline constexpr ProtocolRow kGenerationProtocol{"generation", "what the model writes behind the edited prompts",
                                                 make_generation, kGenerationMetrics};

inline constexpr std::array<std::string_view, 3> kDistractedMetrics{"distracted_exact", "distracted_alias",
                                                                    "distracted_contains"};
inline constexpr ProtocolRow kDistractedProtocol{
    "distracted", "what it writes behind another sentence and the edited prompts", make_distracted, kDistractedMetrics};

}  // namespace lancet
