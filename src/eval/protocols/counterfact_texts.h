// The part of the CounterFact protocol that measures whole texts: fluency, consistency, essence.
#pragma once

#include <optional>

#include "attribute_snippets.h"
#include "lancet/eval/protocol.h"
#include "lancet/text_metrics/tfidf.h"

namespace lancet {

class CounterFactTexts {
 public:
  /// Throws: ConfigError if a file cannot be read.
  explicit CounterFactTexts(const CounterFactFiles& files);

  void ask(const EditRequest& request, QuestionCollector& collector);
  /// Adds the metrics for which there are files.
  void add_metrics(std::vector<MetricRow>& rows) const;
  void judge(size_t request, const ModelAnswers& now, Tallies& tallies) const;

 private:
  /// The score of a text's tokens after the first token.
  struct Essence {
    size_t score = 0;
    int64_t tokens = 0;  ///< number of tokens of the text, with its first token
  };
  struct RequestQuestions {
    std::vector<size_t> texts;
    std::string reference;  ///< text about the target; empty if there is none
    std::optional<Essence> essence;
  };

  std::optional<AttributeSnippets> snippets_;
  std::optional<TfIdf> tfidf_;
  std::vector<RequestQuestions> requests_;
};

}  // namespace lancet
