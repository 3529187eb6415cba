// Options of an editor: those of locate-then-edit methods.
#pragma once

#include "lancet/spec/values_spec.h"

namespace lancet {

inline constexpr std::string_view kLayeredMethods = "memit rome r-rome emmet alphaedit pmet nse evoedit betaedit";
inline constexpr std::string_view kLocatingMethods =
    "memit rome r-rome emmet alphaedit pmet nse evoedit betaedit zerounlearn";
inline constexpr std::string_view kShareRule =
    "by layer, such that at least half of the requests get this share of their residual alone";

/// A weight of a solve that is a number, {realised_share: A}, or auto.
constexpr NumberOption solve_weight(std::string_view key, std::string_view meaning, std::string_view methods,
                                    double share) {
  return {{.key = key, .meaning = meaning, .methods = methods, .affects = Affects::kChosenState},
          {.min = 1e-300},
          {},
          kTriedFar,
          kShareRule,
          "realised_share",
          share};
}

inline constexpr std::string_view kLambda = "lambda: how much the statistics weigh against the requests";
inline constexpr std::string_view kHeldKeys = "keys of earlier batches are held in place";

struct LayeredSpec {
  static constexpr IntegersOption kLayers{
      {.key = "layers",
       .meaning = "layers whose down projection is changed, ascending; values are found at the output of the last",
       .methods = kLocatingMethods,
       .affects = Affects::kState},
      {.min = 0},
      "the last five of the first three tenths of the layers; `rome`, `r-rome`: one, at a sixth of the depth; "
      "`zerounlearn`: from three fifths on an eighth of the depth, at most five"};
  static constexpr SectionOption kValues{
      {.key = "values", .meaning = "how the value of each request is found", .methods = kLocatingMethods},
      ValuesSpec::kAll};
  static constexpr SectionOption kContexts{
      {.key = "contexts",
       .meaning = "openings before each prompt; or a list of templates with one `{}` each, `\"{}\"` among them: "
                  "`[\"{}\", \"I know that. {}\"]`",
       .methods = kLocatingMethods},
      ContextsSpec::kAll,
      Shape::kKeysOrTexts};

  static constexpr NumberOption kCovarianceWeight = solve_weight("covariance_weight", kLambda, "memit nse", 0.8);
  static constexpr NumberOption kEmmetCovarianceWeight = solve_weight("covariance_weight", kLambda, "emmet", 0.98);
  static constexpr NumberOption kPmetCovarianceWeight = solve_weight("covariance_weight", kLambda, "pmet", 0.99);
  static constexpr NumberOption kBetaCovarianceWeight{
      {.key = "covariance_weight", .meaning = "l1: how much the statistics weigh", .methods = "betaedit"},
      {.min = 1e-300},
      3000.0,  // as published
      kTriedFar};
  static constexpr NumberOption kBetaRidge{
      {.key = "ridge", .meaning = "l2, which keeps the change small", .methods = "betaedit"},
      {.min = 1e-300},
      10.0,  // as published
      kTriedFar};
  static constexpr NumberOption kZeroCovarianceWeight{
      {.key = "covariance_weight", .meaning = "c: how much the statistics weigh", .methods = "zerounlearn"},
      {.min = 1e-300},
      300.0,  // as published, 15000 by 50 of the requests
      kTriedFar};
  static constexpr NumberOption kZeroIdentityWeight{
      {.key = "identity_weight", .meaning = "l, which keeps the weight as it is", .methods = "zerounlearn"},
      {.min = 0},
      0.02};  // as published, 1 by 50
  static constexpr NumberOption kIdentityWeight{
      {.key = "identity_weight", .meaning = "nu, added to lambda C on the diagonal", .methods = "memit emmet nse"},
      {.min = 0},
      0.0};
  static constexpr NumberOption kSlack{
      {.key = "slack", .meaning = "mu; 0: every value is reached exactly", .methods = "emmet"},
      {.min = 0},
      0.1,  // as published
      kTriedFar};
  static constexpr NumberOption kRidge =
      solve_weight("ridge", "L2, which keeps the change small", "alphaedit evoedit", 0.95);
  static constexpr IntegerOption kRefresh{
      {.key = "refresh",
       .meaning = "earlier keys after which the null space is made again, of the statistics and these keys",
       .methods = "betaedit",
       .unit = "keys"},
      {.min = 1},
      1000};
  static constexpr FlagOption kHistory{
      {.key = "history", .meaning = kHeldKeys, .methods = "memit", .affects = Affects::kState}, false};
  static constexpr FlagOption kStreamHistory{
      {.key = "history", .meaning = kHeldKeys, .methods = "alphaedit nse", .affects = Affects::kState}, true};
  static constexpr NumberOption kNullSpaceBelow{{.key = "null_space_below",
                                                 .meaning = "eigenvalues of C below it make the null space",
                                                 .methods = "alphaedit evoedit betaedit"},
                                                {.min = 1e-300},
                                                {},
                                                kTriedFar,
                                                "by layer, such that this share of C's eigenvalues lies below",
                                                "share",
                                                0.8};
  static constexpr IntegerOption kPasses{
      {.key = "passes", .meaning = "passes over the layers, at most", .methods = "nse"}, {.min = 1, .max = 100}, 2};
  static constexpr NumberOption kResidualAbove{
      {.key = "residual_above", .meaning = "a pass takes requests whose norm of z - h is above", .methods = "nse"},
      {.min = 0},
      {},
      {},
      "0.05 times the median norm"};
  static constexpr NumberOption kResidualBelow{
      {.key = "residual_below", .meaning = "a pass takes requests whose norm of z - h is below", .methods = "nse"},
      {.min = 1e-300},
      {},
      {},
      "20 times the median norm"};
  static constexpr NumberOption kNeurons{
      {.key = "neurons",
       .meaning = "share of the keys' summed magnitudes that the changed inputs carry; 1: all inputs change",
       .methods = "nse"},
      {.min = 1e-300, .max = 1},
      1.0};
  static constexpr FlagOption kCovariance{
      {.key = "covariance",
       .meaning = "false: the update's direction is the key itself, and no `statistics` are needed",
       .methods = "rome r-rome"},
      true};
  static constexpr std::string_view kKeyNames[] = {"prefix", "prompt", "original"};
  static constexpr ChoiceOption kKeys{
      {.key = "keys",
       .meaning = "the key that the update goes by: the mean over contexts, the plain prompt's, or as ROME has it the "
                  "mean for the direction and the plain prompt's for the rest",
       .methods = "r-rome"},
      kKeyNames};
  static constexpr FlagOption kBlue{
      {.key = "blue",
       .meaning = "of `layers` the first and the last alone are changed, each with values of its own",
       .methods = "memit emmet alphaedit pmet evoedit betaedit",
       .affects = Affects::kState},
      false};
  static constexpr std::string_view kEqualKeysNames[] = {"warn", "mean", "split"};
  static constexpr ChoiceOption kEqualKeys{
      {.key = "equal_keys",
       .meaning = "requests with one key: `warn` and do nothing, one target (the `mean` of theirs), or `split` them, "
                  "one after another",
       .methods = kLayeredMethods},
      kEqualKeysNames};
  static constexpr std::string_view kCompatNames[] = {"none", "memit", "easyedit"};
  static constexpr ChoiceOption kCompat{{.key = "compat",
                                         .meaning = "tokenises as these public codes do ([methods.md](methods.md))",
                                         .methods = kLayeredMethods},
                                        kCompatNames};
  static constexpr SectionOption kNormAnchor{{.key = "norm_anchor",
                                              .meaning = "holds values to their norm on the unedited model",
                                              .methods = kLayeredMethods,
                                              .affects = Affects::kState},
                                             NormAnchorSpec::kAll};
  /// Options in the order in which a tune draws: another one gives other choices from the same seed.
  static constexpr AnyOption kAll[] = {&kLayers,
                                       &kValues,
                                       &kContexts,
                                       &kCovarianceWeight,
                                       &kEmmetCovarianceWeight,
                                       &kPmetCovarianceWeight,
                                       &kBetaCovarianceWeight,
                                       &kZeroCovarianceWeight,
                                       &kZeroIdentityWeight,
                                       &kIdentityWeight,
                                       &kHistory,
                                       &kStreamHistory,
                                       &kSlack,
                                       &kNullSpaceBelow,
                                       &kRidge,
                                       &kBetaRidge,
                                       &kRefresh,
                                       &kPasses,
                                       &kResidualAbove,
                                       &kResidualBelow,
                                       &kNeurons,
                                       &kCovariance,
                                       &kKeys,
                                       &kBlue,
                                       &kEqualKeys,
                                       &kCompat,
                                       &kNormAnchor};
};

}  // namespace lancet
