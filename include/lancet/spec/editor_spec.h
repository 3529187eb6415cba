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
      {.key = "keep", .meaning = "share of each change's entries that is applied, the largest beside their weight"},
      {.min = 1e-12, .max = 1.0},
      0.4};
  static constexpr AnyOption kAll[] = {&kKeep};
};

struct PruneSpec {
  static constexpr NumberOption kLogBase{
      {.key = "log_base", .meaning = "base of the logarithm that restrains singular values"},
      {.min = 1.0 + 1e-9},
      std::numbers::e};
  static constexpr AnyOption kAll[] = {&kLogBase};
};

struct ReviveSpec {
  static constexpr NumberOption kEnergy{
      {.key = "energy",
       .meaning = "share of the unedited weight's squared singular values beyond which its directions may change"},
      {.min = 1e-12, .max = 1.0 - 1e-12},
      0.1};
  static constexpr AnyOption kAll[] = {&kEnergy};
};

/// What every method has.
struct EditorSpec {
  static constexpr TextOption kMethod{
      {.key = "method", .meaning = "how weights are changed ([methods.md](methods.md))"}, {}, Vocabulary::kMethods};
  static constexpr TextOption kPreset{
      {.key = "preset",
       .meaning = "options from elsewhere, over which those beside it win: `auto` (published for this model), a name "
                  "(`lancet presets`), or a file",
       .absent = "none"}};
  static constexpr AnyOption kFirst[] = {&kMethod, &kPreset};

  static constexpr ChoiceOption kTargetEnd{
      {.key = "target_end",
       .meaning = "what targets end with in values and training: nothing more, the tokenizer's end token (`eos`), or "
                  "that where the model stops at it (`auto`)"},
      kTargetEndNames};
  static constexpr SectionOption kRect{
      {.key = "rect", .meaning = "RECT: a part of each change's entries is applied", .absent = "off"}, RectSpec::kAll};
  static constexpr SectionOption kRevive{
      {.key = "revive", .meaning = "REVIVE: the unedited weight's dominant directions stay", .absent = "off"},
      ReviveSpec::kAll};
  static constexpr SectionOption kPrune{
      {.key = "prune",
       .meaning = "PRUNE: the whole change's largest singular values are restrained, after the last batch",
       .absent = "off"},
      PruneSpec::kAll};
  static constexpr SectionOption kRepair{
      {.key = "repair",
       .meaning = "what does not hold after a batch is trained: the batch's requests, and earlier ones of the stream",
       .methods = kRepairedMethods,
       .affects = Affects::kState,
       .absent = "off"},
      RepairSpec::kAll};
  static constexpr AnyOption kLast[] = {&kTargetEnd, &kRect, &kRevive, &kPrune, &kRepair};
};

inline constexpr auto kEditorOptions =
    joined(EditorSpec::kFirst, LayeredSpec::kAll, ResidualSpec::kAll, GradientSpec::kAll, EditorSpec::kLast);

}  // namespace lancet
