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
      {.key = "steps", .meaning = "forward passes at most; the last one makes no update"},
      {.min = 1},
      {},
      "a request goes on while its loss falls, 100 at most; it is done where 25 took less than 1 % off the lowest"};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of Adam (0.9, 0.999, 1e-8)"}, {.min = 1e-12}, 0.5, kTriedNear};
  static constexpr NumberOption kWeightDecay{
      {.key = "weight_decay", .meaning = "weight of decay in the loss, times norm(delta) / norm(h0)^2"},
      {.min = 0.0},
      1e-3};
  static constexpr NumberOption kClamp{
      {.key = "clamp", .meaning = "norm(delta) at most, times norm(h0)"}, {.min = 1e-12}, 4.0, kTriedNear};
  static constexpr NumberOption kKl{
      {.key = "kl", .meaning = "weight of KL(now, before) at \"{subject} is a\" in the loss"}, {.min = 0.0}, 0.0625};
  static constexpr NumberOption kStopLoss{
      {.key = "stop_loss", .meaning = "a request is done when its total loss, over all contexts, is below"},
      {.min = 0.0},
      0.05};
  static constexpr std::string_view kStopNames[] = {"loss", "predicted"};
  static constexpr ChoiceOption kStop{
      {.key = "stop",
       .meaning = "a request is done by its `loss` alone, or also when every token of its target is `predicted`, the "
                  "likeliest in every context, at two checks in a row",
       .methods = "memit rome r-rome emmet alphaedit nse evoedit betaedit zerounlearn"},
      kStopNames};
  static constexpr IntegerOption kContextsPerStep{
      {.key = "contexts_per_step",
       .meaning = "a step sees so many of the contexts, the next one others, in turn; 0: all of them at every step"},
      {.min = 0},
      0};
  static constexpr IntegerOption kBatch{{.key = "batch",
                                         .meaning = "requests optimised together; 0: by caches and memory",
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
       .meaning = "a target is cut into chunks of so many tokens, each with a value of its own at the token before it, "
                  "for long answers: no subject is needed, and `kl` is 0; 0: one value, at the subject's last token",
       .methods = "memit",
       .unit = "tokens"},
      {.min = 0},
      0};
  static constexpr AnyOption kAll[] = {&kSteps,           &kLr,    &kWeightDecay, &kClamp, &kKl,         &kStopLoss,
                                       &kContextsPerStep, &kBatch, &kNllFactor,   &kStop,  &kChunkTokens};
};

/// What targets end with: in values and training, and in what is judged.
inline constexpr std::string_view kTargetEndNames[] = {"none", "eos", "auto"};

struct ContextsSpec {
  static constexpr IntegerOption kGenerate{
      {.key = "generate",
       .meaning = "openings that the model writes, beside the plain prompt: they continue The, Therefore, Because, I, "
                  "You, in turn, sampled with `run.seed`",
       .unit = "texts"},
      {.min = 0, .max = 1000},
      5};
  static constexpr IntegerOption kLength{
      {.key = "length", .meaning = "length of each, its beginning included", .unit = "tokens"},
      {.min = 3, .max = 1000},
      10};
  static constexpr TextOption kChat{
      {.key = "chat",
       .meaning =
           "the prompt as a user's message too, with the target as the answer: `model` (by the checkpoint's chat "
           "template), or text with one `{}`",
       .absent = "none"}};
  static constexpr AnyOption kAll[] = {&kGenerate, &kLength, &kChat};
};

struct NormAnchorSpec {
  static constexpr std::string_view kModes[] = {"off", "rescale", "skip"};
  static constexpr ChoiceOption kMode{
      {.key = "mode",
       .meaning = "`rescale`: every value gets the unedited model's mean norm, but for those beyond `limit`, which are "
                  "left out; `skip`: these are left out, and the others stay as they are"},
      kModes};
  static constexpr NumberOption kLimit{
      {.key = "limit", .meaning = "norm of a value beyond which its request is left out", .unit = "mean norms"},
      {.min = 1.0},
      2.0};
  static constexpr AnyOption kAll[] = {&kMode, &kLimit};
};

}  // namespace lancet
