// Puts questions to a model. Defined in questions.cpp.
#pragma once

#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"

namespace lancet {

/// Which of the questions; indices ascend.
struct QuestionPart {
  std::vector<size_t> continuations;
  std::vector<size_t> texts;

  static QuestionPart all(const ModelQuestions& questions);
};

struct QuestionedModel {
  const CausalLM& model;
  const Tokenizer& tokenizer;
  const std::string& stage;  ///< what the progress shows
};

/// Collective: rows are spread over ranks, all of which get the whole.
ModelAnswers ask_model(const ModelQuestions& questions, const QuestionPart& part, const QuestionedModel& questioned,
                       Communicator& communicator);

/// How much that runs.
EvaluationSize size_of(const ModelQuestions& questions, const QuestionPart& part);

}  // namespace lancet
