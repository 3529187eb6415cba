// Options of an editor: those of locate-then-edit methods.
#pragma once

#include "lancet/spec/solve_weight_spec.h"
#include "lancet/spec/values_spec.h"

namespace lancet {

inline constexpr std::string_view kLayeredMethods = "memit rome r-rome emmet alphaedit pmet nse evoedit betaedit";
inline constexpr std::string_view kLocatingMethods =
    "memit rome r-rome emmet alphaedit pmet nse evoedit betaedit zerounlearn";
inline constexpr std::string_view kLambda =
    "lambda: the weight of the statistics against the requests; a larger one gives milder edits";
inline constexpr std::string_view kHeldKeys = "keep the outputs for the keys of earlier batches as they are";

struct LayeredSpec {
  static constexpr IntegersOption kLayers{
      {.key = "layers",
       .meaning = "layers whose down projection is changed, in ascending order; values are found at the output of the "
                  "last one",
       .methods = kLocatingMethods,
       .affects = Affects::kState},
      {.min = 0},
      "the last five layers of the first 3/10 of the model; `rome`, `r-rome`: one layer, at 1/6 of the depth; "
      "`zerounlearn`: consecutive layers from 3/5 of the depth on, as many as 1/8 of all layers, at most five"};
  static constexpr SectionOption kValues{
      {.key = "values", .meaning = "how the value of each request is optimised", .methods = kLocatingMethods},
      ValuesSpec::kAll};
  static constexpr SectionOption kContexts{
      {.key = "contexts",
       .meaning = "texts that are put before each prompt; or a list of templates with one `{}` each for the prompt, "
                  "one of which is `\"{}\"`: `[\"{}\", \"I know that. {}\"]`",
       .methods = kLocatingMethods},
      ContextsSpec::kAll,
      Shape::kKeysOrTexts};
  static constexpr SectionOption kEntities{
      {.key = "entities",
       .meaning = "what the model says about other subjects is kept, in addition to ordinary text",
       .methods = kLayeredMethods,
       .affects = Affects::kState},
      EntitiesSpec::kAll};

  static constexpr NumberOption kCovarianceWeight = solve_weight("covariance_weight", kLambda, "memit nse", 0.8);
  static constexpr NumberOption kEmmetCovarianceWeight = solve_weight("covariance_weight", kLambda, "emmet", 0.98);
  static constexpr NumberOption kPmetCovarianceWeight = solve_weight("covariance_weight", kLambda, "pmet", 0.99);
  static constexpr NumberOption kBetaCovarianceWeight{
      {.key = "covariance_weight", .meaning = "l1: the weight of the statistics", .methods = "betaedit"},
      {.min = 1e-300},
      3000.0,  // as published
      kTriedFar};
  static constexpr NumberOption kBetaRidge{
      {.key = "ridge", .meaning = "l2: a ridge penalty that keeps the change small", .methods = "betaedit"},
      {.min = 1e-300},
      10.0,  // as published
      kTriedFar};
  static constexpr NumberOption kZeroCovarianceWeight{
      {.key = "covariance_weight", .meaning = "c: the weight of the statistics", .methods = "zerounlearn"},
      {.min = 1e-300},
      300.0,  // as published, 15000 by 50 of the requests
      kTriedFar};
  static constexpr NumberOption kZeroIdentityWeight{
      {.key = "identity_weight", .meaning = "l: a penalty on changes of the projection", .methods = "zerounlearn"},
      {.min = 0},
      0.02};  // as published, 1 by 50
  static constexpr NumberOption kIdentityWeight{
      {.key = "identity_weight", .meaning = "nu, added to the diagonal of lambda C", .methods = "memit emmet nse"},
      {.min = 0},
      0.0};
  static constexpr NumberOption kSlack{
      {.key = "slack", .meaning = "mu: allows errors of values; 0: every value is reached exactly", .methods = "emmet"},
      {.min = 0},
      0.1,  // as published
      kTriedFar};
  static constexpr NumberOption kRidge =
      solve_weight("ridge", "L2: a ridge penalty that keeps the change small", "alphaedit evoedit", 0.95);
  static constexpr IntegerOption kRefresh{{.key = "refresh",
                                           .meaning = "after this many keys of earlier batches, the null space is "
                                                      "computed again from the statistics and these keys",
                                           .methods = "betaedit",
                                           .unit = "keys"},
                                          {.min = 1},
                                          1000};
  static constexpr FlagOption kHistory{
      {.key = "history", .meaning = kHeldKeys, .methods = "memit", .affects = Affects::kState}, false};
  static constexpr FlagOption kStreamHistory{
      {.key = "history", .meaning = kHeldKeys, .methods = "alphaedit nse", .affects = Affects::kState}, true};
  static constexpr NumberOption kNullSpaceBelow{
      {.key = "null_space_below",
       .meaning = "the null space is spanned by the eigenvectors of C whose eigenvalues are below this",
       .methods = "alphaedit evoedit betaedit"},
      {.min = 1e-300},
      {},
      kTriedFar,
      "chosen for each layer so that this share of C's eigenvalues is below it",
      "share",
      0.8};
  static constexpr IntegerOption kPasses{
      {.key = "passes", .meaning = "largest number of passes over the layers", .methods = "nse"},
      {.min = 1, .max = 100},
      2};
  static constexpr NumberOption kResidualAbove{
      {.key = "residual_above", .meaning = "a pass edits only requests with a larger norm of z - h", .methods = "nse"},
      {.min = 0},
      {},
      {},
      "0.05 times the median norm of the first batch"};
  static constexpr NumberOption kResidualBelow{
      {.key = "residual_below", .meaning = "a pass edits only requests with a smaller norm of z - h", .methods = "nse"},
      {.min = 1e-300},
      {},
      {},
      "20 times the median norm of the first batch"};
  static constexpr NumberOption kNeurons{
      {.key = "neurons",
       .meaning = "only the weights of the input neurons with the largest summed absolute keys are changed; this is "
                  "the share of the total that these neurons have together; 1: all input neurons",
       .methods = "nse"},
      {.min = 1e-300, .max = 1},
      1.0};
  static constexpr FlagOption kCovariance{{.key = "covariance",
                                           .meaning = "use the covariance of `statistics`; false: the direction of the "
                                                      "update is the key itself, and no `statistics` are needed",
                                           .methods = "rome r-rome"},
                                          true};
  static constexpr std::string_view kKeyNames[] = {"prefix", "prompt", "original"};
  static constexpr ChoiceOption kKeys{
      {.key = "keys",
       .meaning = "which key the update uses: `prefix`: the mean key over all contexts; `prompt`: the key of the plain "
                  "prompt; `original`: as in ROME, the mean key for the direction and the key of the plain prompt for "
                  "the rest",
       .methods = "r-rome"},
      kKeyNames};
  static constexpr FlagOption kBlue{
      {.key = "blue",
       .meaning = "only the first and the last of `layers` are changed, and values are found for each of the two",
       .methods = "memit emmet alphaedit pmet evoedit betaedit",
       .affects = Affects::kState},
      false};
  static constexpr std::string_view kEqualKeysNames[] = {"warn", "mean", "split"};
  static constexpr ChoiceOption kEqualKeys{
      {.key = "equal_keys",
       .meaning = "what happens to requests that have the same key: `warn`: lancet only warns; `mean`: the key gets "
                  "the mean of their values; `split`: these requests are edited one after another",
       .methods = kLayeredMethods},
      kEqualKeysNames};
  static constexpr std::string_view kCompatNames[] = {"none", "memit", "easyedit"};
  static constexpr ChoiceOption kCompat{{.key = "compat",
                                         .meaning = "tokenise as the public code of `memit` or `easyedit` does "
                                                    "([methods.md](methods.md#tokenisation-as-published-compat))",
                                         .methods = kLayeredMethods},
                                        kCompatNames};
  static constexpr SectionOption kNormAnchor{
      {.key = "norm_anchor",
       .meaning = "limits the norm of values to what it is on the unedited model",
       .methods = kLayeredMethods,
       .affects = Affects::kState},
      NormAnchorSpec::kAll};
  /// Options in the order in which a tune draws: another one gives other choices from the same seed.
  static constexpr AnyOption kAll[] = {&kLayers,
                                       &kValues,
                                       &kContexts,
                                       &kEntities,
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
