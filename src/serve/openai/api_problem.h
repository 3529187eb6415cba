// An error about a request, in the form that OpenAI's clients read. Source: OpenAI's API reference, "Error codes";
// openai/openai-python, src/openai/_exceptions.py.
#pragma once

#include <stdexcept>
#include <string>

#include "lancet/http/http_message.h"

namespace lancet {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string parameter = {};  ///< name of the wrong field; empty: none
  std::string code = {};       ///< name of the error for programs, "model_not_found"; empty: none
};

class ApiProblem : public std::runtime_error {
 public:
  explicit ApiProblem(ApiError problem) : std::runtime_error(problem.message), error(std::move(problem)) {}

  ApiError error;
};

/// Returns {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}, without a line end.
std::string api_error_text(const ApiError& error);
HttpReply api_error_reply(const ApiError& error);

}  // namespace lancet
