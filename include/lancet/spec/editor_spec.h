// `editor:` of a job, and each editor of `compare:`.
#pragma once

#include <numbers>

#include "lancet/spec/gradient_spec.h"
#include "lancet/spec/layered_spec.h"
#include "lancet/spec/repair_spec.h"
#include "lancet/spec/residual_spec.h"

namespace lancet {

struct RectSpec {
  static constexpr NumberOption kKeep{
      {.key = "keep",
       .meaning =
           "share of each change's entries that is applied: those that are largest relative to the weight's entry"},
      {.min = 1e-12, .max = 1.0},
      0.4};
  static constexpr AnyOption kAll[] = {&kKeep};
};

struct PruneSpec {
  static constexpr NumberOption kLogBase{
      {.key = "log_base", .meaning = "base of the logarithm that reduces singular values"},
      {.min = 1.0 + 1e-9},
      std::numbers::e};
  static constexpr AnyOption kAll[] = {&kLogBase};
};

struct ReviveSpec {
  static constexpr NumberOption kEnergy{
      {.key = "energy",
       .meaning = "the leading singular directions of the unedited weight that together have this share of its squared "
                  "singular values are not changed"},
      {.min = 1e-12, .max = 1.0 - 1e-12},
      0.1};
  static constexpr AnyOption kAll[] = {&kEnergy};
};

/// What every method has.
struct EditorSpec {
  static constexpr TextOption kMethod{
      {.key = "method", .meaning = "the method that changes the weights ([methods.md](methods.md))"},
      {},
      Vocabulary::kMethods};
  static constexpr TextOption kPreset{
      {.key = "preset",
       .meaning =
           "where to take options from: `auto` (the options published for this model), the name of a preset (`lancet "
           "presets` lists them), or a file; options given beside `preset` override those of the preset",
       .absent = "none"}};
  static constexpr AnyOption kFirst[] = {&kMethod, &kPreset};

  static constexpr ChoiceOption kTargetEnd{
      {.key = "target_end",
       .meaning = "what follows each target when values are found and in training: `none`: nothing; `eos`: the "
                  "tokenizer's EOS token; `auto`: the EOS token if the model stops at it"},
      kTargetEndNames};
  static constexpr SectionOption kRect{
      {.key = "rect", .meaning = "RECT: only a share of each change's entries is applied", .absent = "off"},
      RectSpec::kAll};
  static constexpr SectionOption kRevive{
      {.key = "revive",
       .meaning = "REVIVE: a change leaves out the dominant singular directions of the unedited weight",
       .absent = "off"},
      ReviveSpec::kAll};
  static constexpr SectionOption kPrune{
      {.key = "prune",
       .meaning = "PRUNE: after the last batch, the largest singular values of the whole change are reduced",
       .absent = "off"},
      PruneSpec::kAll};
  static constexpr SectionOption kRepair{
      {.key = "repair",
       .meaning = "after each batch, the edited weights are trained on the requests that do not hold: those of the "
                  "batch, and earlier ones of the stream",
       .methods = kRepairedMethods,
       .affects = Affects::kState,
       .absent = "off"},
      RepairSpec::kAll};
  static constexpr AnyOption kLast[] = {&kTargetEnd, &kRect, &kRevive, &kPrune, &kRepair};
};

inline constexpr auto kEditorOptions =
    joined(EditorSpec::kFirst, LayeredSpec::kAll, ResidualSpec::kAll, GradientSpec::kAll, EditorSpec::kLast);

}  // namespace lancet
