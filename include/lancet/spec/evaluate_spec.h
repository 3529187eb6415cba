// `evaluate:` of a job.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

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
    "mirage", "what an edit is worth outside teacher forcing; with `side_effects.text`", kMirageProtocols};
inline constexpr ProtocolSet kProtocolSets[] = {kMirage};

struct SideEffectsSpec {
  static constexpr PathOption kText{
      {.key = "text", .meaning = "held-out text, as a corpus: what the edit cost in predicting it", .absent = "none"}};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "tokens of its first documents", .unit = "tokens", .beside = "text"},
      {.min = 2},
      10'000};
  static constexpr IntegerOption kDocumentTokens{
      {.key = "document_tokens", .meaning = "longer documents are cut", .unit = "tokens", .beside = "text"},
      {.min = 2},
      512};
  static constexpr SectionOption kProbes{
      {.key = "probes", .meaning = "facts that are not edited, whose answers shall stay", .absent = "none"},
      RequestsSpec::kFile};
  static constexpr PathOption kChoices{
      {.key = "choices", .meaning = "questions with several answers to choose from", .absent = "none"}};
  static constexpr AnyOption kAll[] = {&kText, &kTokens, &kDocumentTokens, &kProbes, &kChoices};
};

struct TasksSpec {
  static constexpr TextsOption kTasks{
      {.key = "tasks", .meaning = "names of lm-evaluation-harness's tasks; `[]`: none"}};
  static constexpr PathOption kInclude{
      {.key = "include", .meaning = "a folder with definitions of your own tasks", .absent = "none"}};
  static constexpr IntegerOption kShots{
      {.key = "shots", .meaning = "examples before each question", .absent = "as the task says"},
      {.min = 0, .max = 100}};
  static constexpr IntegerOption kLimit{
      {.key = "limit", .meaning = "questions of each task, the first ones", .absent = "all"}, {.min = 1}};
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
  static constexpr PathOption kExamples{{.key = "examples", .meaning = "text that is put before multi-hop questions"}};
  static constexpr AnyOption kAll[] = {&kExamples};
};

struct BeliefSpec {
  static constexpr std::string_view kOrderNames[] = {"rotations", "all"};
  static constexpr ChoiceOption kOrders{
      {.key = "orders", .meaning = "of the four options: 4, in which each stands once at each letter, or all 24"},
      kOrderNames};
  static constexpr AnyOption kAll[] = {&kOrders};
};

struct JudgeSpec {
  static constexpr TextsOption kCommand{
      {.key = "command",
       .meaning =
           "a program and its arguments: it reads a JSON object a line (`question`: the prompt filled; `prompt`, "
           "`answer`, `target`, `aliases`), and writes `yes` or `no` a line",
       .absent = "a server",
       .replaces = "url model token_env tokens remote"}};
  static constexpr TextOption kUrl{{.key = "url",
                                    .meaning = "a server with OpenAI's chat completions: `http://127.0.0.1:8000/v1`; "
                                               "none is asked where the variable `LANCET_OFFLINE` is set",
                                    .absent = "a program"}};
  static constexpr TextOption kModel{
      {.key = "model", .meaning = "what the server calls the model that judges", .absent = "none", .beside = "url"}};
  static constexpr TextOption kTokenEnv{{.key = "token_env",
                                         .meaning = "variable of the environment with the server's token",
                                         .affects = Affects::kWork,
                                         .absent = "no token",
                                         .beside = "url"}};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "length of its answers, thoughts included", .unit = "tokens", .beside = "url"},
      {.min = 1, .max = 100'000},
      512};
  static constexpr FlagOption kRemote{
      {.key = "remote",
       .meaning = "the server may be on another machine, which then reads prompts, targets and answers",
       .beside = "url"},
      false};
  static constexpr PathOption kPrompt{{.key = "prompt",
                                       .meaning = "file of the question, with `{target}` and `{answer}`, and where "
                                                  "wanted `{prompt}`, `{aliases}`",
                                       .absent = "lancet's own (`data/judge/prompt.txt`)"}};
  static constexpr IntegerOption kSeconds{{.key = "seconds",
                                           .meaning = "time for each verdict; then it is asked once more",
                                           .affects = Affects::kWork,
                                           .unit = "s"},
                                          {.min = 1, .max = 86'400},
                                          60};
  static constexpr AnyOption kAll[] = {&kCommand, &kUrl, &kModel, &kTokenEnv, &kTokens, &kRemote, &kPrompt, &kSeconds};
};

struct LongFormSpec {
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "length of the answers", .unit = "tokens"}, {.min = 1, .max = 100'000}, 512};
  static constexpr FlagOption kChat{{.key = "chat", .meaning = "prompts are put as a user's messages, as `chat` does"},
                                    false};
  static constexpr AnyOption kAll[] = {&kTokens, &kChat};
};

struct EvaluateSpec {
  static constexpr TextsOption kMetrics{
      {.key = "metrics", .meaning = "what is measured ([metrics.md](metrics.md)); `[]`: nothing"},
      kDefaultProtocols,
      Vocabulary::kProtocols};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "length of greedy continuations", .unit = "tokens"}, {.min = 1, .max = 100'000}, 12};
  static constexpr TextOption kDistractor{{.key = "distractor", .meaning = "put before the prompts of `distracted`"},
                                          "It had rained all week, and the market opened late that day."};
  static constexpr TextOption kChatTemplate{
      {.key = "chat_template",
       .meaning = "how `chat`, `thinking` and `subject` put a prompt: `model` (its own), or text with one `{}`"},
      "model"};
  static constexpr IntegerOption kThinkingTokens{
      {.key = "thinking_tokens", .meaning = "length of the answers of `thinking`, thoughts included", .unit = "tokens"},
      {.min = 1, .max = 100'000},
      512};
  static constexpr ChoiceOption kTargetEnd{
      {.key = "target_end",
       .meaning = "`eos`: what free generation calls exact is the whole continuation, after which the model stops; "
                  "`auto`: that where the tokenizer has an end token"},
      kTargetEndNames};
  static constexpr FlagOption kStanding{
      {.key = "standing",
       .meaning = "edits that stood before (`continue_from`, a session's) are measured again too, after the new ones; "
                  "not by `easyedit` and `subject`, which compare with the unedited model"},
      false};
  static constexpr SectionOption kSideEffects{
      {.key = "side_effects", .meaning = "what the edit did elsewhere", .absent = "not measured"},
      SideEffectsSpec::kAll};
  static constexpr SectionOption kLmEval{
      {.key = "lm_eval",
       .meaning = "what the model can do before and after: tasks of lm-evaluation-harness, from Python "
                  "([python.md](python.md)); or a list of tasks",
       .absent = "not measured"},
      TasksSpec::kAll,
      Shape::kKeysOrTasks};
  static constexpr SectionOption kCounterFact{
      {.key = "counterfact", .meaning = "files of the protocol `counterfact`", .absent = "none"},
      CounterFactSpec::kAll};
  static constexpr SectionOption kMquake{
      {.key = "mquake", .meaning = "files of the protocol `mquake`", .absent = "none"}, MquakeSpec::kAll};
  static constexpr SectionOption kBelief{
      {.key = "belief", .meaning = "how the protocol `belief` asks", .absent = "as by default"}, BeliefSpec::kAll};
  static constexpr SectionOption kJudge{
      {.key = "judge", .meaning = "who judges for the protocol `judge`", .absent = "nobody"}, JudgeSpec::kAll};
  static constexpr SectionOption kLongForm{
      {.key = "long_form", .meaning = "how the protocol `long_form` asks", .absent = "as by default"},
      LongFormSpec::kAll};
  static constexpr AnyOption kAll[] = {&kMetrics,   &kTokens,   &kDistractor,  &kChatTemplate, &kThinkingTokens,
                                       &kTargetEnd, &kStanding, &kSideEffects, &kLmEval,       &kCounterFact,
                                       &kMquake,    &kBelief,   &kJudge,       &kLongForm};
};

}  // namespace lancet
