// `evaluate:` of a job.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "lancet/spec/judge_spec.h"
#include "lancet/spec/requests_spec.h"
#include "lancet/spec/values_spec.h"

namespace lancet {

/// What is measured when the job does not say.
inline constexpr std::string_view kDefaultProtocols[] = {"efficacy", "paraphrase", "specificity", "generation",
                                                         "subject"};
/// What a session measures when nobody says otherwise: few forward passes for each edit.
inline constexpr std::string_view kSessionProtocols[] = {"efficacy", "subject"};

/// Protocols that `evaluate:` may name together.
struct ProtocolSet {
  std::string_view name;
  std::string_view summary;
  std::span<const std::string_view> protocols;

  bool has(std::string_view protocol) const {
    return std::find(protocols.begin(), protocols.end(), protocol) != protocols.end();
  }
};

inline constexpr std::string_view kMirageProtocols[] = {"generation", "chat", "belief", "specificity"};
/// Its text is that of `side_effects.text`, which has to be there.
inline constexpr ProtocolSet kMirage{
    "mirage", "what an edit achieves without teacher forcing; needs `side_effects.text`", kMirageProtocols};
inline constexpr ProtocolSet kProtocolSets[] = {kMirage};

struct SideEffectsSpec {
  static constexpr PathOption kText{{.key = "text",
                                     .meaning = "file with held-out text, in the form of `statistics.corpus`: measures "
                                                "how the edit changes the prediction of this text",
                                     .absent = "none"}};
  static constexpr IntegerOption kTokens{{.key = "tokens",
                                          .meaning = "how many tokens of this text are used, from its beginning",
                                          .unit = "tokens",
                                          .beside = "text"},
                                         {.min = 2},
                                         10'000};
  static constexpr IntegerOption kDocumentTokens{{.key = "document_tokens",
                                                  .meaning = "length at which longer documents are cut",
                                                  .unit = "tokens",
                                                  .beside = "text"},
                                                 {.min = 2},
                                                 512};
  static constexpr SectionOption kProbes{
      {.key = "probes",
       .meaning = "facts that are not edited, and whose answers should stay the same",
       .absent = "none"},
      RequestsSpec::kFile};
  static constexpr PathOption kChoices{
      {.key = "choices", .meaning = "file with multiple-choice questions", .absent = "none"}};
  static constexpr AnyOption kAll[] = {&kText, &kTokens, &kDocumentTokens, &kProbes, &kChoices};
};

struct TasksSpec {
  static constexpr TextsOption kTasks{
      {.key = "tasks", .meaning = "names of tasks of lm-evaluation-harness; `[]`: none"}};
  static constexpr PathOption kInclude{
      {.key = "include", .meaning = "folder with definitions of your own tasks", .absent = "none"}};
  static constexpr IntegerOption kShots{
      {.key = "shots", .meaning = "number of examples before each question", .absent = "as the task says"},
      {.min = 0, .max = 100}};
  static constexpr IntegerOption kLimit{
      {.key = "limit", .meaning = "only the first so many questions of each task are asked", .absent = "all"},
      {.min = 1}};
  static constexpr AnyOption kAll[] = {&kTasks, &kInclude, &kShots, &kLimit};
};

struct CounterFactSpec {
  static constexpr PathOption kSnippets{{.key = "snippets", .meaning = "attribute_snippets.json"}};
  static constexpr PathOption kIdf{{.key = "idf", .meaning = "idf.npy", .absent = "none", .beside = "vocabulary"}};
  static constexpr PathOption kVocabulary{
      {.key = "vocabulary", .meaning = "tfidf_vocab.json", .absent = "none", .beside = "idf"}};
  static constexpr AnyOption kAll[] = {&kSnippets, &kIdf, &kVocabulary};
};

struct MquakeSpec {
  static constexpr PathOption kExamples{
      {.key = "examples", .meaning = "file with the text that is put before multi-hop questions"}};
  static constexpr AnyOption kAll[] = {&kExamples};
};

struct BeliefSpec {
  static constexpr std::string_view kOrderNames[] = {"rotations", "all"};
  static constexpr ChoiceOption kOrders{
      {.key = "orders",
       .meaning = "orders in which the four options are shown: `rotations`: 4 orders, so that each option has each "
                  "letter once; `all`: all 24 orders"},
      kOrderNames};
  static constexpr AnyOption kAll[] = {&kOrders};
};

struct LongFormSpec {
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "largest length of the answers", .unit = "tokens"}, {.min = 1, .max = 100'000}, 512};
  static constexpr FlagOption kChat{
      {.key = "chat", .meaning = "ask prompts as a user's messages, as the protocol `chat` does"}, false};
  static constexpr AnyOption kAll[] = {&kTokens, &kChat};
};

struct EvaluateSpec {
  static constexpr TextsOption kMetrics{
      {.key = "metrics", .meaning = "the protocols that are measured ([metrics.md](metrics.md)); `[]`: none"},
      kDefaultProtocols,
      Vocabulary::kProtocols};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "largest length of greedy continuations", .unit = "tokens"},
      {.min = 1, .max = 100'000},
      12};
  static constexpr TextOption kDistractor{
      {.key = "distractor", .meaning = "sentence that is put before the prompts of `distracted`"},
      "It had rained all week, and the market opened late that day."};
  static constexpr TextOption kChatTemplate{
      {.key = "chat_template",
       .meaning =
           "the chat template of `chat`, `thinking` and `subject`: `model` (the model's own), or a text with one `{}`"},
      "model"};
  static constexpr IntegerOption kThinkingTokens{
      {.key = "thinking_tokens",
       .meaning = "largest length of the answers of `thinking`, with the thoughts",
       .unit = "tokens"},
      {.min = 1, .max = 100'000},
      512};
  static constexpr ChoiceOption kTargetEnd{
      {.key = "target_end",
       .meaning = "what must end an answer for metrics that end in `_exact`: `none`: a full stop, a line break or the "
                  "largest length; `eos`: the EOS token, and the whole continuation is compared; `auto`: as `eos` if "
                  "the tokenizer has an EOS token"},
      kTargetEndNames};
  static constexpr FlagOption kStanding{
      {.key = "standing",
       .meaning = "measure earlier edits (of `continue_from`, or of the session) again after the new ones; `easyedit` "
                  "and `subject` leave them out, because they compare with the unedited model"},
      false};
  static constexpr SectionOption kSideEffects{
      {.key = "side_effects", .meaning = "what the edit changed elsewhere in the model", .absent = "not measured"},
      SideEffectsSpec::kAll};
  static constexpr SectionOption kLmEval{
      {.key = "lm_eval",
       .meaning = "tasks of lm-evaluation-harness, which show what the model can do before and after the edit; only "
                  "from Python ([python.md](python.md)); a list is short for `{tasks: [...]}`",
       .absent = "not measured"},
      TasksSpec::kAll,
      Shape::kKeysOrTasks};
  static constexpr SectionOption kCounterFact{
      {.key = "counterfact", .meaning = "files for the protocol `counterfact`", .absent = "none"},
      CounterFactSpec::kAll};
  static constexpr SectionOption kMquake{
      {.key = "mquake", .meaning = "files for the protocol `mquake`", .absent = "none"}, MquakeSpec::kAll};
  static constexpr SectionOption kBelief{
      {.key = "belief", .meaning = "settings of the protocol `belief`", .absent = "the defaults below"},
      BeliefSpec::kAll};
  static constexpr SectionOption kJudge{
      {.key = "judge",
       .meaning = "the program or server that judges answers for the protocol `judge`",
       .absent = "no judge"},
      JudgeSpec::kAll};
  static constexpr SectionOption kLongForm{
      {.key = "long_form", .meaning = "settings of the protocol `long_form`", .absent = "the defaults below"},
      LongFormSpec::kAll};
  static constexpr AnyOption kAll[] = {&kMetrics,   &kTokens,   &kDistractor,  &kChatTemplate, &kThinkingTokens,
                                       &kTargetEnd, &kStanding, &kSideEffects, &kLmEval,       &kCounterFact,
                                       &kMquake,    &kBelief,   &kJudge,       &kLongForm};
};

}  // namespace lancet
