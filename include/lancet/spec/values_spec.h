// `values`, `contexts` and `norm_anchor` of an editor.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

/// Multiples that a tune tries of numbers that published options agree on, and of those that have a model's scale.
inline constexpr double kTriedNear[] = {0.2, 0.5, 1, 2, 4};
inline constexpr double kTriedFar[] = {0.1, 0.3, 1, 3, 10};

/// Defaults: the published MEMIT configuration for Llama-2-7B, but for its 25 steps: they are too few for many facts.
struct ValuesSpec {
  static constexpr IntegerOption kSteps{
      {.key = "steps", .meaning = "largest number of forward passes; the last one makes no update"},
      {.min = 1},
      {},
      "at most 100; a request stops earlier when its last 25 steps lowered its lowest loss by less than 1 %"};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of Adam (0.9, 0.999, 1e-8)"}, {.min = 1e-12}, 0.5, kTriedNear};
  static constexpr NumberOption kWeightDecay{
      {.key = "weight_decay", .meaning = "weight of the term norm(delta) / norm(h0)^2 in the loss"},
      {.min = 0.0},
      1e-3};
  static constexpr NumberOption kClamp{
      {.key = "clamp", .meaning = "largest norm(delta), as a multiple of norm(h0)"}, {.min = 1e-12}, 4.0, kTriedNear};
  static constexpr NumberOption kKl{
      {.key = "kl", .meaning = "weight in the loss of KL(now, before), measured after the prompt \"{subject} is a\""},
      {.min = 0.0},
      0.0625};
  static constexpr TextsOption kKeptPrompts{
      {.key = "kept_prompts",
       .meaning = "other prompts about the subject, with `{}` in its place, after which the model should go on as "
                  "before; the edited prompt itself is left out",
       .absent = "`[]`"}};
  static constexpr NumberOption kKeptWeight{
      {.key = "kept_weight", .meaning = "weight in the loss of the mean of KL(now, before) after `kept_prompts`"},
      {.min = 0.0},
      1.0};
  static constexpr NumberOption kStopLoss{
      {.key = "stop_loss", .meaning = "a request stops when its total loss over all contexts is below this"},
      {.min = 0.0},
      0.05};
  static constexpr std::string_view kStopNames[] = {"loss", "predicted"};
  static constexpr ChoiceOption kStop{
      {.key = "stop",
       .meaning = "when a request stops: `loss`: when its loss is below `stop_loss`; `predicted`: also when every "
                  "token of its target is the likeliest one in every context, at two checks in a row",
       .methods = "memit rome r-rome emmet alphaedit nse evoedit betaedit zerounlearn"},
      kStopNames};
  static constexpr IntegerOption kContextsPerStep{
      {.key = "contexts_per_step",
       .meaning = "number of contexts in each step; the steps take them in turn; 0: every step has all contexts"},
      {.min = 0},
      0};
  static constexpr IntegerOption kBatch{
      {.key = "batch",
       .meaning = "requests that are optimised together; 0: chosen from the sizes of the caches and the free memory",
       .affects = Affects::kWork,
       .unit = "requests"},
      {.min = 0},
      0};
  static constexpr NumberOption kNllFactor{
      {.key = "nll_factor", .meaning = "weight of the target's NLL in the loss", .methods = "pmet"},
      {.min = 1e-12},
      1.0};
  static constexpr IntegerOption kChunkTokens{
      {.key = "chunk_tokens",
       .meaning =
           "for long answers: each target is cut into chunks of this many tokens, and each chunk has its own value at "
           "the token before it; no subject is needed, and `kl` must be 0; 0: one value, at the subject's last token",
       .methods = "memit",
       .unit = "tokens"},
      {.min = 0},
      0};
  static constexpr AnyOption kAll[] = {&kSteps,       &kLr,         &kWeightDecay, &kClamp,           &kKl,
                                       &kKeptPrompts, &kKeptWeight, &kStopLoss,    &kContextsPerStep, &kBatch,
                                       &kNllFactor,   &kStop,       &kChunkTokens};
};

/// What targets end with: in values and training, and in what is judged.
inline constexpr std::string_view kTargetEndNames[] = {"none", "eos", "auto"};

struct ContextsSpec {
  static constexpr IntegerOption kGenerate{
      {.key = "generate",
       .meaning = "number of texts that the model writes to put before the prompt, beside the plain prompt; they begin "
                  "with The, Therefore, Because, I, You, in turn, and are sampled with `run.seed`",
       .unit = "texts"},
      {.min = 0, .max = 1000},
      5};
  static constexpr IntegerOption kLength{
      {.key = "length", .meaning = "length of each text, with its first word", .unit = "tokens"},
      {.min = 3, .max = 1000},
      10};
  static constexpr TextOption kChat{
      {.key = "chat",
       .meaning = "one more context has the prompt as a user's message and the target as the answer: `model` (with the "
                  "checkpoint's chat template), or a template with one `{}`",
       .absent = "none"}};
  static constexpr AnyOption kAll[] = {&kGenerate, &kLength, &kChat};
};

/// `entities:` of an editor.
struct EntitiesSpec {
  static constexpr NumberOption kWeight{
      {.key = "weight",
       .meaning = "w of C' = C + w (tr C / tr S) S, where S are the second moments of the keys at the last tokens of "
                  "5,000 names of other people, places, works and companies; 0: the statistics are of text alone"},
      {.min = 0, .max = 1000},
      0.0};
  static constexpr AnyOption kAll[] = {&kWeight};
};

struct NormAnchorSpec {
  static constexpr std::string_view kModes[] = {"off", "rescale", "skip"};
  static constexpr ChoiceOption kMode{
      {.key = "mode",
       .meaning = "values with a norm above `limit` are left out; `rescale`: the others get the mean norm of values on "
                  "the unedited model; `skip`: the others stay as they are; `off`: nothing is done"},
      kModes};
  static constexpr NumberOption kLimit{
      {.key = "limit", .meaning = "a request is left out if the norm of its value is above this", .unit = "mean norms"},
      {.min = 1.0},
      2.0};
  static constexpr AnyOption kAll[] = {&kMode, &kLimit};
};

}  // namespace lancet
