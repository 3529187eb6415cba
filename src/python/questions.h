// Questions from Python to a model, as token ids: to a session's model, or to the model of a running job.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lancet/eval/askable_model.h"

namespace lancet::python {

using Ids = std::vector<TokenId>;

/// Returns the sum of log p over the tokens of each target after its prompt, and whether every token is the likeliest
/// one.
std::vector<std::pair<double, bool>> score(const AskableModel& model, std::vector<std::pair<Ids, Ids>> pairs);

/// Continues each prompt greedily with at most the given number of ids, up to EOS, or to a text that contains one of
/// `stops`.
std::vector<Ids> continue_greedily(const AskableModel& model, std::vector<std::pair<Ids, int64_t>> prompts,
                                   const std::vector<std::string>& stops);

/// Adds these functions to a class. `ask(self, work)` gives the model to `work`, and returns its result. The questions
/// and results are not Python objects, so `work` can run without the GIL, on another thread.
template <typename Class, typename Ask>
void bind_questions(nanobind::class_<Class>& bound, const Ask& ask) {
  namespace nb = nanobind;
  bound
      .def(
          "score",
          [ask](Class& self, std::vector<std::pair<Ids, Ids>> pairs) {
            return ask(self, [&](const AskableModel& model) { return score(model, std::move(pairs)); });
          },
          nb::arg("pairs"))
      .def(
          "continue_greedily",
          [ask](Class& self, std::vector<std::pair<Ids, int64_t>> prompts, const std::vector<std::string>& stops) {
            return ask(self,
                       [&](const AskableModel& model) { return continue_greedily(model, std::move(prompts), stops); });
          },
          nb::arg("prompts"), nb::arg("stops"))
      .def(
          "encode",
          [ask](Class& self, const std::vector<std::string>& texts, const std::string& special) {
            const SpecialTokens tokens = special == "none" ? SpecialTokens::kNone : SpecialTokens::kAdd;
            return ask(self, [&](const AskableModel& model) {
              std::vector<Ids> ids;
              for (const std::string& text : texts) ids.push_back(model.tokenizer().ids(text, tokens));
              return ids;
            });
          },
          nb::arg("texts"), nb::arg("special"))
      .def(
          "decode",
          [ask](Class& self, const std::vector<Ids>& rows) {
            return ask(self, [&](const AskableModel& model) {
              std::vector<std::string> texts;
              for (const Ids& ids : rows) texts.push_back(model.tokenizer().decode(ids));
              return texts;
            });
          },
          nb::arg("rows"))
      .def("bos_id",
           [ask](Class& self) {
             return ask(self, [](const AskableModel& model) { return model.tokenizer().bos_id(); });
           })
      .def("eos_id",
           [ask](Class& self) {
             return ask(self, [](const AskableModel& model) { return model.tokenizer().eos_id(); });
           })
      .def("piece",
           [ask](Class& self, TokenId id) {
             return ask(self, [&](const AskableModel& model) { return model.tokenizer().piece(id); });
           })
      .def("max_positions", [ask](Class& self) {
        return ask(self, [](const AskableModel& model) { return model.config().max_positions; });
      });
}

}  // namespace lancet::python
