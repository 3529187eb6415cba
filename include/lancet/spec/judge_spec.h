// `evaluate.judge:` the program or server that judges answers.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct JudgeSpec {
  static constexpr TextsOption kCommand{
      {.key = "command",
       .meaning = "a program and its arguments: for each answer it reads a line with a JSON object (`question`: the "
                  "filled prompt; `prompt`, `answer`, `target`, `aliases`), and writes a line with `yes` or `no`",
       .absent = "a server",
       .replaces = "url model token_env tokens remote"}};
  static constexpr TextOption kUrl{
      {.key = "url",
       .meaning = "address of a server with OpenAI's chat completions API: `http://127.0.0.1:8000/v1`; no server is "
                  "asked if the environment variable `LANCET_OFFLINE` is set",
       .absent = "a program"}};
  static constexpr TextOption kModel{
      {.key = "model", .meaning = "the server's name of the model that judges", .absent = "none", .beside = "url"}};
  static constexpr TextOption kTokenEnv{{.key = "token_env",
                                         .meaning = "name of the environment variable that has the server's token",
                                         .affects = Affects::kWork,
                                         .absent = "no token",
                                         .beside = "url"}};
  static constexpr IntegerOption kTokens{{.key = "tokens",
                                          .meaning = "largest length of the judge's answers, with its thoughts",
                                          .unit = "tokens",
                                          .beside = "url"},
                                         {.min = 1, .max = 100'000},
                                         512};
  static constexpr FlagOption kRemote{
      {.key = "remote",
       .meaning = "allow a server on another machine, which then gets prompts, targets and answers",
       .beside = "url"},
      false};
  static constexpr PathOption kPrompt{{.key = "prompt",
                                       .meaning = "file with the question to the judge; it must have `{target}` and "
                                                  "`{answer}`, and may have `{prompt}` and `{aliases}`",
                                       .absent = "lancet's own (`data/judge/prompt.txt`)"}};
  static constexpr IntegerOption kSeconds{
      {.key = "seconds",
       .meaning = "time limit for each verdict; after it the judge is asked once more",
       .affects = Affects::kWork,
       .unit = "s"},
      {.min = 1, .max = 86'400},
      60};
  static constexpr AnyOption kAll[] = {&kCommand, &kUrl, &kModel, &kTokenEnv, &kTokens, &kRemote, &kPrompt, &kSeconds};
};

}  // namespace lancet
