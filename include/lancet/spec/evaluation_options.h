// `evaluate:` of a job as values: what is measured, and by which files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/spec/evaluate_spec.h"
#include "lancet/spec/judge_options.h"
#include "lancet/spec/requests_spec.h"

namespace lancet {

class TaskRunner;

struct HeldOutOptions {
  std::filesystem::path text;                           ///< a document per line, as a corpus of statistics
  int64_t tokens = *SideEffectsSpec::kTokens.fallback;  ///< tokens to use, of its first documents
  int64_t document_tokens = *SideEffectsSpec::kDocumentTokens.fallback;  ///< longer documents are cut
};

/// Facts of a request file; the right answer is target_true, or target where a record has that alone.
struct ProbeOptions {
  std::filesystem::path path;
  int64_t skip = *RequestsSpec::kSkip.fallback;
  std::optional<int64_t> limit = {};  ///< records that are taken; nullopt: all
  std::string format = std::string(*RequestsSpec::kFormat.fallback);
};

/// Tasks of another program (TaskRunner).
struct TaskOptions {
  std::vector<std::string> tasks = {};
  std::filesystem::path include = {};  ///< a folder with definitions of tasks; empty: those that the program has
  std::optional<int64_t> shots = {};   ///< examples before each question; nullopt: the task's own number
  std::optional<int64_t> limit = {};   ///< questions of each task, the first ones; nullopt: all
};

struct SideEffectOptions {
  std::optional<HeldOutOptions> text;
  std::optional<ProbeOptions> probes;
  std::filesystem::path choices;  ///< file for load_choices(); empty: none

  TaskOptions tasks = {};
  std::shared_ptr<const TaskRunner> task_runner = {};  ///< runner of `tasks`; null: none is at hand

  bool empty() const { return !text && !probes && choices.empty() && tasks.tasks.empty(); }
};

/// Files of the CounterFact data set that metrics of `counterfact` need; empty: such a metric is left out.
struct CounterFactFiles {
  std::filesystem::path snippets;    ///< attribute_snippets.json
  std::filesystem::path idf;         ///< idf.npy; with `vocabulary` and `snippets`
  std::filesystem::path vocabulary;  ///< tfidf_vocab.json
};

/// How `chat` and `thinking` put a prompt to an instruct model.
struct ChatSource {
  std::filesystem::path model;  ///< whose template it is, where none is given by hand
  std::string by_hand;          ///< template for ChatTemplate::by_hand; empty: the model's
};

/// What free generation has to end with to be exactly the target.
enum class JudgedEnd {
  kNone,  ///< a full stop, a line break, or the limit
  kEos,   ///< an end token
  kAuto   ///< an end token, where the tokenizer has one
};

/// Orders of the options of `belief`.
enum class OptionOrders { kRotations, kAll };

struct LongFormOptions {
  int64_t tokens = *LongFormSpec::kTokens.fallback;  ///< length of the answers
  bool as_chat = LongFormSpec::kChat.fallback;       ///< prompts are a user's messages
};

struct EvaluationOptions {
  std::vector<std::string> protocols;  ///< names of protocols, in the order in which they are shown
  int64_t generated_tokens = *EvaluateSpec::kTokens.fallback;                 ///< length of greedy continuations
  std::string distractor = std::string(*EvaluateSpec::kDistractor.fallback);  ///< text before `distracted` prompts
  ChatSource chat_template = {};
  int64_t thinking_tokens = *EvaluateSpec::kThinkingTokens.fallback;  ///< length of the answers of `thinking`
  JudgedEnd target_end = JudgedEnd::kNone;
  bool standing = EvaluateSpec::kStanding.fallback;  ///< earlier edits are measured too
  SideEffectOptions side_effects = {};
  CounterFactFiles counterfact = {};
  OptionOrders belief_orders = OptionOrders::kRotations;
  std::filesystem::path multihop_examples = {};  ///< text put before the questions of `mquake`; empty: none
  std::optional<JudgeOptions> judge = {};        ///< whoever judges for the protocol `judge`
  LongFormOptions long_form = {};
};

/// Whether a metric is among `names`, of which one that ends in '*' stands for all that begin so.
inline bool is_metric_of(std::span<const std::string_view> names, std::string_view metric) {
  return std::any_of(names.begin(), names.end(), [metric](std::string_view name) {
    return name.ends_with('*') ? metric.starts_with(name.substr(0, name.size() - 1)) : metric == name;
  });
}

}  // namespace lancet
