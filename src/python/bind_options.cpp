// Keywords of Python that are declared options: their declarations, and the check of values.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/spec/adapter_spec.h"
#include "lancet/spec/generate_spec.h"
#include "lancet/spec/given_option.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/schema.h"
#include "lancet/spec/undo_spec.h"
#include "texts.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;

std::span<const AnyOption> options_of(const std::string& section) {
  if (section == JobSpec::kRun.key) return RunSpec::kAll;
  if (section == JobSpec::kEditor.key) return kEditorOptions;
  if (section == "generate") return GenerateSpec::kAll;
  if (section == "adapter") return AdapterSpec::kAll;
  if (section == "undo") return UndoSpec::kAll;
  throw ConfigError(cat("section: expected run, editor, generate, adapter or undo, got ", section));
}

/// Returns what is wrong with a value, given as JSON; empty if nothing is.
std::string option_problem(const std::string& section, const std::string& key, const std::string& json) {
  const std::span<const AnyOption> options = options_of(section);
  const auto found = std::ranges::find(options, key, [](const AnyOption& option) { return base_of(option).key; });
  if (found == options.end()) throw ConfigError(cat(section, ": expected one of its keys, got ", key));
  return given_problem(*found, tree_of_json(json));
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& words) {
  return nearest(word, words);
}

}  // namespace

void bind_options(nb::module_& module) {
  module.def(
      "option_schema", [](const std::string& section) { return section_schema(options_of(section)); },
      nb::arg("section"), "JSON Schema of a section: run, editor, generate, adapter, undo.");
  module.def("option_problem", option_problem, nb::arg("section"), nb::arg("key"), nb::arg("json"));
  module.def("nearest", nearest_word, nb::arg("word"), nb::arg("words"));
}

}  // namespace lancet::python
