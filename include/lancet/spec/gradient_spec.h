// Options of an editor: those of methods that go by gradients and need no subject.
#pragma once

#include "lancet/spec/values_spec.h"

namespace lancet {

inline constexpr std::string_view kOneStepMethods = "ultraedit stableedit";
inline constexpr std::string_view kTuningMethods = "ft ft-l ft-m crispedit";

struct ModulesSpec {
  static constexpr std::string_view kOfAnyInput = "ultraedit ft ft-l ft-m";
  static constexpr IntegersOption kGate{
      {.key = "gate", .meaning = "layers whose gate projection is changed", .methods = kOfAnyInput}, {.min = 0}};
  static constexpr IntegersOption kUp{
      {.key = "up", .meaning = "layers whose up projection is changed", .methods = kOfAnyInput}, {.min = 0}};
  static constexpr IntegersOption kDown{{.key = "down", .meaning = "layers whose down projection is changed"},
                                        {.min = 0}};
  static constexpr AnyOption kAll[] = {&kGate, &kUp, &kDown};
};

struct GradientSpec {
  static constexpr SectionOption kModules{
      {.key = "modules",
       .meaning = "the projections that are changed, by layer",
       .methods = "ultraedit stableedit ft ft-l ft-m crispedit",
       .affects = Affects::kState},
      ModulesSpec::kAll,
      Shape::kKeysOrAuto,
      "`ultraedit`: gate and up, from 1/2 of the depth on; `stableedit`, `crispedit`: down, from 3/5 of the depth on; "
      "both in as many consecutive layers as 1/8 of all layers, at most five; `ft*`: down, in one layer at 2/3 of the "
      "depth"};
  static constexpr NumberOption kUltraLr{
      {.key = "lr", .meaning = "learning rate of the single step", .methods = kOneStepMethods},
      {.min = 1e-300},
      1e-6,
      kTriedFar};
  static constexpr IntegerOption kUltraBatch{
      {.key = "batch", .meaning = "requests in one backward pass", .methods = kOneStepMethods, .unit = "requests"},
      {.min = 1},
      10};
  static constexpr std::string_view kTokenNames[] = {"answer", "all"};
  static constexpr ChoiceOption kTokens{{.key = "tokens",
                                         .meaning = "which token positions are used: `answer`: those that predict the "
                                                    "target; `all`: all of the prompt and the target",
                                         .methods = kOneStepMethods},
                                        kTokenNames};
  static constexpr NumberOption kStableRidge{
      {.key = "ridge",
       .meaning = "added to the diagonal of the solve: it keeps the change small",
       .methods = "stableedit"},
      {.min = 1e-300},
      1.0};
  static constexpr IntegerOption kWarmUp{
      {.key = "warm_up",
       .meaning = "for this many requests at the beginning of a stream, gradients are only standardised, not whitened",
       .methods = "stableedit",
       .unit = "requests"},
      {.min = 0},
      0};
  static constexpr IntegerOption kSteps{
      {.key = "steps", .meaning = "largest number of passes over all requests", .methods = kTuningMethods},
      {.min = 1},
      25};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of Adam (0.9, 0.999, 1e-8)", .methods = kTuningMethods},
      {.min = 1e-12},
      5e-4,
      kTriedFar};
  static constexpr NumberOption kWeightDecay{
      {.key = "weight_decay",
       .meaning = "weight decay: this number times the edited weight is added to its gradient",
       .methods = kTuningMethods},
      {.min = 0},
      0.0};
  static constexpr std::string_view kOrderNames[] = {"given", "breadth-first"};
  static constexpr ChoiceOption kOrder{{.key = "order",
                                        .meaning = "order of the requests in each pass: `given`: as in the requests; "
                                                   "`breadth-first`: each pass draws other batches, with `run.seed`",
                                        .methods = "ft-m crispedit"},
                                       kOrderNames};
  static constexpr IntegerOption kRevisit{
      {.key = "revisit",
       .meaning = "each pass also trains on this many earlier requests of the stream; they are taken in turn, in a "
                  "random order drawn with `run.seed`",
       .methods = "ft-m",
       .affects = Affects::kState,
       .unit = "requests"},
      {.min = 0},
      0};
  static constexpr IntegerOption kBatch{
      {.key = "batch", .meaning = "requests in one update", .methods = "ft ft-l ft-m", .unit = "requests"},
      {.min = 1},
      1};
  static constexpr IntegerOption kCrispBatch{
      {.key = "batch", .meaning = "requests in one update", .methods = "crispedit", .unit = "requests"},
      {.min = 1},
      32};
  static constexpr NumberOption kStopLoss{
      {.key = "stop_loss",
       .meaning =
           "a batch with a loss below this gets no update; training ends when the mean loss of a pass is below this",
       .methods = kTuningMethods},
      {.min = 0},
      1e-2};
  static constexpr NumberOption kNormConstraint{
      {.key = "norm_constraint", .meaning = "largest change of any entry of the weights", .methods = "ft-l"},
      {.min = 1e-12},
      5e-5,  // EasyEdit's Mistral-7B
      kTriedFar};
  static constexpr NumberOption kOwnNormConstraint{{.key = "norm_constraint",
                                                    .meaning = "largest change of any entry of the weights",
                                                    .methods = "ft-m",
                                                    .absent = "no limit"},
                                                   {.min = 1e-12},
                                                   {},
                                                   kTriedFar};
  static constexpr NumberOption kMargin{
      {.key = "margin",
       .meaning = "updates leave out requests whose target tokens all lead every other token by this much in log p; "
                  "training ends when this holds for all requests",
       .methods = "ft-m crispedit",
       .absent = "no request is left out"},
      {.min = 0},
      {}};
  static constexpr NumberOption kWhiten{
      {.key = "whiten",
       .meaning = "directions of keys that are rare in text get longer steps: Adam optimises A in Delta = A (C / mean "
                  "+ `whiten` I)^{-1/2}, where mean is the mean eigenvalue of C; needs `statistics`, and works only "
                  "for down projections",
       .methods = "ft-m",
       .absent = "no whitening"},
      {.min = 1e-9},
      {}};
  static constexpr NumberOption kEnergy{
      {.key = "energy",
       .meaning =
           "gamma: directions that together have this share of the curvature of the loss on text are not changed",
       .methods = "crispedit"},
      {.min = 1e-12, .max = 1 - 1e-12},
      0.99};
  static constexpr std::string_view kProjectedNames[] = {"gradients", "steps"};
  static constexpr ChoiceOption kProjected{
      {.key = "projected",
       .meaning = "what is projected onto the directions in which the loss on text has low curvature: `gradients`: "
                  "only the gradients, as published; `steps`: Adam's steps, too",
       .methods = "crispedit"},
      kProjectedNames};
  static constexpr IntegerOption kNeighbours{
      {.key = "neighbours",
       .meaning =
           "for each request, this many more prompts count as text: its own prompt with the subjects of other requests",
       .methods = "crispedit",
       .unit = "texts"},
      {.min = 0},
      0};
  static constexpr NumberOption kNeighbourWeight{{.key = "neighbour_weight",
                                                  .meaning = "each neighbour counts as this many tokens of text",
                                                  .methods = "crispedit"},
                                                 {.min = 1e-12},
                                                 1.0,
                                                 kTriedFar};
  static constexpr AnyOption kAll[] = {
      &kModules,     &kUltraLr, &kUltraBatch, &kTokens,         &kStableRidge,       &kWarmUp,    &kSteps,   &kLr,
      &kWeightDecay, &kBatch,   &kStopLoss,   &kNormConstraint, &kOwnNormConstraint, &kOrder,     &kRevisit, &kMargin,
      &kWhiten,      &kEnergy,  &kProjected,  &kNeighbours,     &kNeighbourWeight,   &kCrispBatch};
};

}  // namespace lancet
