#include "tasks.h"

#include <nanobind/stl/shared_ptr.h>

#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "questions.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;
using TaskJson = nlohmann::json;

constexpr const char* kModule = "lancet.lm_eval";

/// The model of a running job, as Python sees it during the tasks.
struct ModelAtWork {
  const AskableModel* model = nullptr;  ///< null after the tasks

  const AskableModel& asked() const {
    if (model == nullptr) throw ConfigError("this model is a job's: it can be asked while its tasks run, not later");
    return *model;
  }
};

TaskJson to_json(const TaskOptions& options) {
  return {{"tasks", options.tasks},
          {"include", options.include.string()},
          {"shots", options.shots ? TaskJson(*options.shots) : TaskJson(nullptr)},
          {"limit", options.limit ? TaskJson(*options.limit) : TaskJson(nullptr)}};
}

/// Turns an exception of Python into an error of the job.
[[noreturn]] void rethrow(nb::python_error& error) {
  const nb::object cancelled = nb::module_::import_("lancet.errors").attr("Cancelled");
  if (error.matches(cancelled)) throw Cancelled();
  const nb::object kind = nb::borrow(error.type()).attr("__name__");
  throw ConfigError(
      cat("evaluate.lm_eval: ", nb::cast<std::string>(kind), ": ", nb::cast<std::string>(nb::str(error.value()))));
}

Unit unit_of(const std::string& name) {
  for (const Unit unit : {Unit::kShare, Unit::kPerplexity, Unit::kBits, Unit::kNumber})
    if (name == unit_name(unit)) return unit;
  throw ConfigError(cat("unit: expected share, perplexity, bits or number, got ", name));
}

std::vector<TaskScore> read_scores(const std::string& text) {
  std::vector<TaskScore> scores;
  for (const TaskJson& each : TaskJson::parse(text))
    scores.push_back({.task = each.at("task"),
                      .metric = each.at("metric"),
                      .value = each.at("value"),
                      .questions = each.at("questions"),
                      .unit = unit_of(each.at("unit")),
                      .better = each.at("higher_is_better").get<bool>() ? Better::kHigher : Better::kLower});
  return scores;
}

class PythonTasks final : public TaskRunner {
 public:
  void check(const TaskOptions& options) const override {
    const nb::gil_scoped_acquire gil;
    try {
      nb::module_::import_(kModule).attr("check_tasks")(to_json(options).dump());
    } catch (nb::python_error& error) {
      rethrow(error);
    }
  }

  std::vector<TaskScore> run(const AskableModel& model, const TaskOptions& options) const override {
    const nb::gil_scoped_acquire gil;
    const auto at_work = std::make_shared<ModelAtWork>(ModelAtWork{&model});
    try {
      const nb::object text = nb::module_::import_(kModule).attr("run_tasks")(at_work, to_json(options).dump());
      at_work->model = nullptr;
      return read_scores(nb::cast<std::string>(text));
    } catch (nb::python_error& error) {
      at_work->model = nullptr;
      rethrow(error);
    }
  }
};

}  // namespace

std::shared_ptr<const TaskRunner> make_task_runner() { return std::make_shared<PythonTasks>(); }

void bind_tasks(nb::module_& module) {
  nb::class_<ModelAtWork> bound(module, "ModelAtWork", "The model of a job, while its tasks run.");
  bind_questions(bound, [](const ModelAtWork& self, const auto& work) {
    const nb::gil_scoped_release no_gil;
    return work(self.asked());
  });
}

}  // namespace lancet::python
