// `statistics:` of a job.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct StatisticsSpec {
  static constexpr PathOption kCorpus{{.key = "corpus",
                                       .meaning = "file with text: a document in each line, or .jsonl with the field "
                                                  "`text`; both also as .gz; `self`: the model writes the text"},
                                      "self"};
  static constexpr IntegerOption kTokens{
      {.key = "tokens",
       .meaning = "how many tokens of text are read, or written by the model, with BOS tokens",
       .unit = "tokens"},
      {.min = 1},
      {},
      "1000000 for a file; with `corpus: self` 4 for each dimension of the model's keys, but at least 3000 and at most "
      "1000000"};
  /// Length of a file's documents. Documents that models write wander the more the longer they are:
  /// kSelfDocumentTokens.
  static constexpr IntegerOption kDocumentTokens{
      {.key = "document_tokens",
       .meaning = "length at which longer documents are cut, at most the model's number of positions; with `corpus: "
                  "self` the default is 256",
       .unit = "tokens"},
      {.min = 2},
      2048};
  static constexpr int64_t kSelfDocumentTokens = 256;
  static constexpr PathOption kImport{{.key = "import",
                                       .meaning = "files with second moments that memit, EasyEdit or AlphaEdit "
                                                  "computed; the path has `{}` in the place of the layer's number",
                                       .absent = "none",
                                       .replaces = "corpus tokens document_tokens"},
                                      {},
                                      R"(\{\})"};
  static constexpr PathOption kImportGradients{
      {.key = "import_gradients",
       .meaning = "only for `crispedit`, with `import`: files of the same form with the second moments of gradients at "
                  "the outputs of down projections",
       .absent = "none"},
      {},
      R"(\{\})"};
  static constexpr PathOption kImportNullSpace{
      {.key = "import_null_space",
       .meaning = "only for `alphaedit`: file with the projections that AlphaEdit's or EasyEdit's code stored; it "
                  "replaces second moments and `null_space_below`",
       .absent = "none",
       .replaces = "import import_gradients corpus tokens document_tokens ridge save_every_s cache"}};
  static constexpr NumberOption kRidge{
      {.key = "ridge", .meaning = "added to the diagonal of C before C is factored, as a multiple of trace(C) / n"},
      {.min = 0.0},
      0.0};
  static constexpr NumberOption kSaveEvery{
      {.key = "save_every_s",
       .meaning = "time between saves of an unfinished pass over the text; a killed pass continues from its last save; "
                  "0: a save after every chunk of at most 8192 tokens",
       .affects = Affects::kWork,
       .unit = "seconds"},
      {.min = 0.0},
      30.0};
  static constexpr PathOption kCache{{.key = "cache",
                                      .meaning = "folder in which covariances and their factors are kept; an entry is "
                                                 "used again if weights, config.json, token ids and dtype are the same",
                                      .affects = Affects::kWork},
                                     "~/.cache/lancet"};
  static constexpr AnyOption kAll[] = {&kCorpus,          &kTokens, &kDocumentTokens, &kImport, &kImportGradients,
                                       &kImportNullSpace, &kRidge,  &kSaveEvery,      &kCache};
};

}  // namespace lancet
