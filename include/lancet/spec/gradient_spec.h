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
       .meaning = "projections that are changed",
       .methods = "ultraedit stableedit ft ft-l ft-m crispedit",
       .affects = Affects::kState},
      ModulesSpec::kAll,
      Shape::kKeysOrAuto,
      "`ultraedit`: gate and up, from the middle on an eighth of the depth, at "
      "most five layers; `ft*`: down, one layer "
      "at two thirds of the depth; `stableedit`, `crispedit`: down, from three fifths on "
      "an eighth of the depth, at most five layers"};
  static constexpr NumberOption kUltraLr{
      {.key = "lr", .meaning = "learning rate of the one step", .methods = kOneStepMethods},
      {.min = 1e-300},
      1e-6,
      kTriedFar};
  static constexpr IntegerOption kUltraBatch{
      {.key = "batch", .meaning = "requests of one backward pass", .methods = kOneStepMethods, .unit = "requests"},
      {.min = 1},
      10};
  static constexpr std::string_view kTokenNames[] = {"answer", "all"};
  static constexpr ChoiceOption kTokens{
      {.key = "tokens", .meaning = "the positions that predict the target, or all", .methods = kOneStepMethods},
      kTokenNames};
  static constexpr NumberOption kStableRidge{{.key = "ridge",
                                              .meaning = "added to the solve's diagonal, which keeps the change small",
                                              .methods = "stableedit"},
                                             {.min = 1e-300},
                                             1.0};
  static constexpr IntegerOption kWarmUp{
      {.key = "warm_up",
       .meaning = "first requests of a stream whose gradients are standardised alone, not whitened",
       .methods = "stableedit",
       .unit = "requests"},
      {.min = 0},
      0};
  static constexpr IntegerOption kSteps{
      {.key = "steps", .meaning = "passes over all requests, at most", .methods = kTuningMethods}, {.min = 1}, 25};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of Adam (0.9, 0.999, 1e-8)", .methods = kTuningMethods},
      {.min = 1e-12},
      5e-4,
      kTriedFar};
  static constexpr NumberOption kWeightDecay{
      {.key = "weight_decay", .meaning = "times the edited weight, added to its gradient", .methods = kTuningMethods},
      {.min = 0},
      0.0};
  static constexpr std::string_view kOrderNames[] = {"given", "breadth-first"};
  static constexpr ChoiceOption kOrder{
      {.key = "order",
       .meaning = "of the requests in each pass: as they are `given`, or `breadth-first`: drawn into other batches, by "
                  "`run.seed`",
       .methods = "ft-m crispedit"},
      kOrderNames};
  static constexpr IntegerOption kRevisit{
      {.key = "revisit",
       .meaning =
           "earlier requests of the stream that each pass is trained on too, the next of an order drawn by `run.seed`",
       .methods = "ft-m",
       .affects = Affects::kState,
       .unit = "requests"},
      {.min = 0},
      0};
  static constexpr IntegerOption kBatch{
      {.key = "batch", .meaning = "requests of one update", .methods = "ft ft-l ft-m", .unit = "requests"},
      {.min = 1},
      1};
  static constexpr IntegerOption kCrispBatch{
      {.key = "batch", .meaning = "requests of one update", .methods = "crispedit", .unit = "requests"},
      {.min = 1},
      32};
  static constexpr NumberOption kStopLoss{
      {.key = "stop_loss", .meaning = "no update below it; done when the mean is", .methods = kTuningMethods},
      {.min = 0},
      1e-2};
  static constexpr NumberOption kNormConstraint{
      {.key = "norm_constraint", .meaning = "largest change of any entry", .methods = "ft-l"},
      {.min = 1e-12},
      5e-5,  // EasyEdit's Mistral-7B
      kTriedFar};
  static constexpr NumberOption kOwnNormConstraint{
      {.key = "norm_constraint", .meaning = "largest change of any entry", .methods = "ft-m", .absent = "no limit"},
      {.min = 1e-12},
      {},
      kTriedFar};
  static constexpr NumberOption kMargin{
      {.key = "margin",
       .meaning = "no update is for a request whose target tokens all lead any other token by this much of log p; done "
                  "when it is so of all",
       .methods = "ft-m crispedit",
       .absent = "updates are for all"},
      {.min = 0},
      {}};
  static constexpr NumberOption kWhiten{
      {.key = "whiten",
       .meaning = "the less a direction of keys is used in text, the longer Adam's steps in it; added to its share of "
                  "C, in means; needs `statistics`, and down projections",
       .methods = "ft-m",
       .absent = "steps go by entries"},
      {.min = 1e-9},
      {}};
  static constexpr NumberOption kEnergy{
      {.key = "energy",
       .meaning = "gamma: the share of the curvature of the loss on text that is left alone",
       .methods = "crispedit"},
      {.min = 1e-12, .max = 1 - 1e-12},
      0.99};
  static constexpr std::string_view kProjectedNames[] = {"gradients", "steps"};
  static constexpr ChoiceOption kProjected{
      {.key = "projected",
       .meaning = "what is held where text bends the loss little: `gradients`, as published, or Adam's `steps` too",
       .methods = "crispedit"},
      kProjectedNames};
  static constexpr IntegerOption kNeighbours{
      {.key = "neighbours",
       .meaning = "texts of each request that count as text: its prompt with other requests' subjects",
       .methods = "crispedit",
       .unit = "texts"},
      {.min = 0},
      0};
  static constexpr NumberOption kNeighbourWeight{{.key = "neighbour_weight",
                                                  .meaning = "tokens of the text that each neighbour counts for",
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
