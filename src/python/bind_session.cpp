// The session behind Python's lancet.Session: it takes plain values, and returns JSON and DLPack capsules.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "call.h"
#include "errors.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/shared_tensors.h"
#include "questions.h"
#include "results.h"
#include "tensors.h"
#include "texts.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;

Delivery delivery_of(const std::string& name) {
  if (name == "none") return Delivery::kNone;
  if (name == "lines") return Delivery::kLines;
  if (name == "queued") return Delivery::kQueued;
  if (name == "awaited") return Delivery::kAwaited;
  throw ConfigError(cat("delivery: expected none, lines, queued or awaited, got ", name));
}

void open(Engine& engine, const JobText& job, int64_t planned_requests) {
  run_on_worker(engine, [&] {
    if (engine.session) throw ConfigError("a model is open already");
    engine.session.emplace(completed_job(job, EditorChoice::kOpen), engine.worker.reporter(), planned_requests);
  });
}

Edited edit(Engine& engine, const std::string& requests) {
  return call(
      engine,
      [&](Session& session) {
        EditReport report = session.edit(requests_of(requests));
        for (const std::string& warning : report.outcome.warnings) log_warning(warning);
        return edited(session, std::move(report));
      },
      [](Session& session) { session.undo(); });
}

std::vector<std::string> new_ids(Engine& engine, const std::vector<std::string>& taken, size_t count) {
  return call(engine, [&](Session& session) { return session.new_ids(taken, count); });
}

std::string evaluate(Engine& engine, const std::string& requests) {
  return call(engine, [&](Session& session) {
    const std::vector<EditRequest> asked = requests_of(requests);
    return evaluation_json(session.evaluate(asked), asked);
  });
}

/// `how`: JSON of GenerateSpec.
nb::list generate(Engine& engine, const std::vector<std::string>& prompts, const std::string& how) {
  const GenerateTextOptions options =
      parse_generate_options(tree_of_json(how), [](std::string_view key) { return std::string(key); });
  const std::vector<Answer> answers =
      call(engine, [&](Session& session) { return session.generate(prompts, options); });
  nb::list texts;
  for (const Answer& answer : answers) texts.append(nb::make_tuple(to_str(answer.text), nb::cast(answer.ids)));
  return texts;
}

nb::list tensors(Engine& engine) {
  const std::vector<SharedTensor> shared =
      call(engine, [](Session& session) { return shared_tensors(session.files(), session.model()); });
  nb::list named;
  for (const SharedTensor& each : shared) named.append(nb::make_tuple(each.name, to_capsule(each.tensor)));
  return named;
}

/// Returns the adapter's report as JSON. `how`: JSON of AdapterSpec.
std::string export_adapter(Engine& engine, const std::string& folder, const std::string& how,
                           const std::string& exists) {
  const ConfigTree given = tree_of_json(how);
  ConfigProblems problems("adapter");
  ExportAdapterJob job = parse_adapter_options(ConfigSection(given, "", problems));
  problems.throw_if_any();
  job.out = folder;
  job.if_exists = if_exists(exists);
  return call(engine, [&](Session& session) { return to_json(session.export_adapter(job), job); });
}

void bind_values(nb::module_& module) {
  nb::class_<JobText>(module, "JobText", "A job: its tree as JSON, or its file, and what changes its keys.")
      .def(
          "__init__",
          [](JobText* self, const std::string& json, const std::string& file,
             const std::vector<std::string>& overrides) {
            new (self) JobText{json, file, overrides};
          },
          nb::arg("json"), nb::arg("file"), nb::arg("overrides"));
}

}  // namespace

void bind_session(nb::module_& module) {
  bind_values(module);
  nb::class_<Engine> engine(module, "Engine", "A worker thread, and the model that it works on.");
  engine
      .def(
          "__init__",
          [](Engine* self, nb::object listener, const std::string& delivery) {
            new (self) Engine(std::move(listener), delivery_of(delivery));
          },
          nb::arg("listener"), nb::arg("delivery"))
      .def("open", open, nb::arg("job"), nb::arg("planned_requests"))
      .def(
          "use",
          [](Engine& self, const JobText& job) {
            call(self, [&](Session& session) { session.use(completed_job(job, EditorChoice::kOpen)); });
          },
          nb::arg("job"))
      .def(
          "restore",
          [](Engine& self, const std::string& folder) {
            call(self, [&](Session& session) { session.restore(folder); });
          },
          nb::arg("folder"))
      .def("edit", edit, nb::arg("requests"))
      .def("evaluate", evaluate, nb::arg("requests"))
      .def("measure", [](Engine& self) { call(self, [](Session& session) { session.measure(); }); })
      .def("new_ids", new_ids, nb::arg("taken"), nb::arg("count"))
      .def("generate", generate, nb::arg("prompts"), nb::arg("how"))
      .def("undo", [](Engine& self) { return call(self, [](Session& session) { return session.undo(); }); })
      .def(
          "undo_ids",
          [](Engine& self, const std::vector<std::string>& ids) {
            return undo_json(call(self, [&](Session& session) { return session.undo(ids); }));
          },
          nb::arg("ids"))
      .def("standing",
           [](Engine& self) { return standing_json(call(self, [](Session& session) { return session.history(); })); })
      .def(
          "save",
          [](Engine& self, const std::string& folder, const std::string& exists) {
            const IfExists policy = if_exists(exists);
            call(self, [&](Session& session) { session.save(folder, policy); });
          },
          nb::arg("folder"), nb::arg("exists"))
      .def(
          "save_edits",
          [](Engine& self, const std::string& folder) {
            call(self, [&](Session& session) { session.save_edits(folder); });
          },
          nb::arg("folder"))
      .def("export_adapter", export_adapter, nb::arg("folder"), nb::arg("how"), nb::arg("exists"))
      .def("tensors", tensors)
      .def("folder",
           [](Engine& self) {
             return call(self, [](Session& session) { return session.files().checkpoint.folder().string(); });
           })
      .def("cancel", [](Engine& self) { self.worker.cancel(); })
      .def("close", [](Engine& self) { close(self); })
      .def("close_at_exit", [](Engine& self) { close_at_exit(self); })
      .def_prop_ro("is_closed", [](Engine& self) { return self.worker.is_closed(); });
  bind_questions(engine, [](Engine& self, const auto& work) {
    return call(self, [&](Session& session) {
      std::optional<std::invoke_result_t<decltype(work), const AskableModel&>> result;
      session.ask([&](const AskableModel& model) { result.emplace(work(model)); });
      return std::move(*result);
    });
  });
}

}  // namespace lancet::python
