// `statistics:` of a job.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct StatisticsSpec {
  static constexpr PathOption kCorpus{{.key = "corpus",
                                       .meaning = "text: a document per line, or .jsonl with the field `text`, or .gz "
                                                  "of both; `self`: text that the model writes"},
                                      "self"};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "how much of the text is read or written, BOS included", .unit = "tokens"},
      {.min = 1},
      {},
      "1000000 of a file; with `corpus: self` 4 for each dimension of the model's keys, from 3000 to 1000000"};
  /// Length of a file's documents. Documents that models write wander the more the longer they are:
  /// kSelfDocumentTokens.
  static constexpr IntegerOption kDocumentTokens{
      {.key = "document_tokens",
       .meaning = "longer documents are cut; never more than the model's positions. Default with `corpus: self`: 256",
       .unit = "tokens"},
      {.min = 2},
      2048};
  static constexpr int64_t kSelfDocumentTokens = 256;
  static constexpr PathOption kImport{
      {.key = "import",
       .meaning = "second moments that memit, EasyEdit or AlphaEdit computed: files with `{}` where the layer's number "
                  "goes",
       .absent = "none",
       .replaces = "corpus tokens document_tokens"},
      {},
      R"(\{\})"};
  static constexpr PathOption kImportGradients{
      {.key = "import_gradients",
       .meaning = "for `crispedit` beside `import`: second moments of gradients at the outputs of down projections, "
                  "files of the same form",
       .absent = "none"},
      {},
      R"(\{\})"};
  static constexpr PathOption kImportNullSpace{
      {.key = "import_null_space",
       .meaning =
           "for `alphaedit`: projections that AlphaEdit's or EasyEdit's code stored, in the place of moments and "
           "of `null_space_below`",
       .absent = "none",
       .replaces = "import import_gradients corpus tokens document_tokens ridge save_every_s cache"}};
  static constexpr NumberOption kRidge{
      {.key = "ridge", .meaning = "added to C before it is factored, relative to trace(C) / n"}, {.min = 0.0}, 0.0};
  static constexpr NumberOption kSaveEvery{
      {.key = "save_every_s",
       .meaning = "a killed pass goes on from its last save; 0: after every chunk of at most 8192 tokens",
       .affects = Affects::kWork,
       .unit = "seconds"},
      {.min = 0.0},
      30.0};
  static constexpr PathOption kCache{
      {.key = "cache",
       .meaning = "folder of covariances and their factors, found by content: weights, config.json, token ids, dtype",
       .affects = Affects::kWork},
      "~/.cache/lancet"};
  static constexpr AnyOption kAll[] = {&kCorpus,          &kTokens, &kDocumentTokens, &kImport, &kImportGradients,
                                       &kImportNullSpace, &kRidge,  &kSaveEvery,      &kCache};
};

}  // namespace lancet
