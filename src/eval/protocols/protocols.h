// The rows of protocol_table(). The file of each protocol has its name, its metrics and the function that makes it.
#pragma once

#include <array>

#include "lancet/eval/protocol.h"

namespace lancet {

std::unique_ptr<Protocol> make_efficacy(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_paraphrase(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_specificity(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_subject(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_generation(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_distracted(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_chat(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_thinking(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_belief(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_counterfact(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_zsre(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_easyedit(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_mquake(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_ultraedit(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_judge(const EvaluationOptions& options);
std::unique_ptr<Protocol> make_long_form(const EvaluationOptions& options);

inline constexpr std::array<std::string_view, 2> kEfficacyMetrics{"efficacy_prob", "efficacy_argmax"};
inline constexpr ProtocolRow kEfficacyProtocol{"efficacy", "the target after the edited prompts", make_efficacy,
                                               kEfficacyMetrics};

inline constexpr std::array<std::string_view, 3> kParaphraseMetrics{"paraphrase_prob", "paraphrase_argmax",
                                                                    "paraphrase_old"};
inline constexpr ProtocolRow kParaphraseProtocol{"paraphrase", "the target after other wordings of the edited prompts",
                                                 make_paraphrase, kParaphraseMetrics};

inline constexpr std::array<std::string_view, 2> kSpecificityMetrics{"specificity_prob", "specificity_argmax"};
inline constexpr ProtocolRow kSpecificityProtocol{"specificity", "the true answer after prompts about other subjects",
                                                  make_specificity, kSpecificityMetrics};

inline constexpr std::array<std::string_view, 2> kSubjectMetrics{"subject_kept", "subject_leak"};
inline constexpr ProtocolRow kSubjectProtocol{
    "subject", "what else the model says about the edited subjects", make_subject, kSubjectMetrics, {}, true};

inline constexpr std::array<std::string_view, 4> kGenerationMetrics{"generation_starts", "generation_exact",
                                                                    "generation_alias", "generation_contains"};
inline constexpr ProtocolRow kGenerationProtocol{"generation", "what the model writes after the edited prompts",
                                                 make_generation, kGenerationMetrics};

inline constexpr std::array<std::string_view, 4> kDistractedMetrics{"distracted_starts", "distracted_exact",
                                                                    "distracted_alias", "distracted_contains"};
inline constexpr ProtocolRow kDistractedProtocol{
    "distracted", "what the model writes after the edited prompts with another sentence before them", make_distracted,
    kDistractedMetrics};

inline constexpr std::array<std::string_view, 5> kChatMetrics{"chat_starts", "chat_exact", "chat_alias",
                                                              "chat_contains", "chat_old"};
inline constexpr ProtocolRow kChatProtocol{"chat", "what an instruct model answers to the edited prompts", make_chat,
                                           kChatMetrics};

inline constexpr std::array<std::string_view, 6> kThinkingMetrics{
    "thinking_starts", "thinking_exact", "thinking_alias", "thinking_contains", "thinking_old", "thinking_ended"};
inline constexpr ProtocolRow kThinkingProtocol{"thinking",
                                               "what a thinking model answers to the edited prompts after its thoughts",
                                               make_thinking, kThinkingMetrics};

inline constexpr std::array<std::string_view, 2> kJudgeMetrics{"generation_judged", "generation_judged_unclear"};
inline constexpr ProtocolRow kJudgeProtocol{
    "judge", "what the model writes after the edited prompts, judged by your program or server", make_judge,
    kJudgeMetrics};

inline constexpr std::array<std::string_view, 8> kLongFormMetrics{"long_form_rouge_l",
                                                                  "long_form_rouge_l_recall",
                                                                  "long_form_bleu",
                                                                  "long_form_recalled",
                                                                  "long_form_asked",
                                                                  "long_form_paraphrase_rouge_l",
                                                                  "long_form_paraphrase_rouge_l_recall",
                                                                  "long_form_paraphrase_bleu"};
inline constexpr ProtocolRow kLongFormProtocol{"long_form",
                                               "long answers compared with the target: ROUGE-L, BLEU, recalled facts",
                                               make_long_form, kLongFormMetrics};

inline constexpr std::array<std::string_view, 3> kBeliefMetrics{"belief_prob", "belief_choice", "belief_old"};
inline constexpr ProtocolRow kBeliefProtocol{
    "belief", "a multiple choice of the target, the old answer and two other options", make_belief, kBeliefMetrics};

inline constexpr std::array<std::string_view, 13> kCounterFactMetrics{
    "counterfact_es", "counterfact_es_acc", "counterfact_em",     "counterfact_ps", "counterfact_ps_acc",
    "counterfact_pm", "counterfact_ns",     "counterfact_ns_acc", "counterfact_nm", "counterfact_score",
    "counterfact_ge", "counterfact_rs",     "counterfact_essence"};
inline constexpr std::array<std::string_view, 6> kCounterFactNoShares{
    "counterfact_em", "counterfact_pm", "counterfact_nm", "counterfact_ge", "counterfact_rs", "counterfact_essence"};
inline constexpr ProtocolRow kCounterFactProtocol{"counterfact", "the CounterFact protocol of ROME and MEMIT",
                                                  make_counterfact, kCounterFactMetrics, kCounterFactNoShares};

inline constexpr std::array<std::string_view, 3> kZsreMetrics{"zsre_efficacy", "zsre_paraphrase", "zsre_locality"};
inline constexpr ProtocolRow kZsreProtocol{"zsre", "the zsRE protocol of memit", make_zsre, kZsreMetrics};

inline constexpr std::array<std::string_view, 5> kEasyEditMetrics{"easyedit_rewrite_acc", "easyedit_rephrase_acc",
                                                                  "easyedit_locality_*", "easyedit_portability_*",
                                                                  "easyedit_fluency"};
inline constexpr std::array<std::string_view, 1> kEasyEditNoShares{"easyedit_fluency"};
inline constexpr ProtocolRow kEasyEditProtocol{"easyedit", "EasyEdit's teacher-forced metrics", make_easyedit,
                                               kEasyEditMetrics, kEasyEditNoShares};

inline constexpr std::array<std::string_view, 3> kMquakeMetrics{"mquake_multihop", "mquake_multihop_acc",
                                                                "mquake_multihop_examples"};
inline constexpr ProtocolRow kMquakeProtocol{"mquake", "multi-hop questions", make_mquake, kMquakeMetrics};

inline constexpr std::array<std::string_view, 3> kUltraEditMetrics{"ultraedit_efficacy", "ultraedit_generalization",
                                                                   "ultraedit_specificity"};
inline constexpr ProtocolRow kUltraEditProtocol{"ultraedit", "the metrics of UltraEdit", make_ultraedit,
                                                kUltraEditMetrics};

}  // namespace lancet
