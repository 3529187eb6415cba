#include "results.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "tensors.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;

nb::object delta_of(const WeightDelta& delta) {
  if (const auto* low = std::get_if<LowRankDelta>(&delta))
    return nb::make_tuple(to_capsule(low->left_OR), to_capsule(low->right_RI));
  return to_capsule(std::get<DenseDelta>(delta).full_OI);
}

/// Returns [(weight, (left, right) or full)], in the order of application.
nb::list deltas_of(const Edited& edited) {
  nb::list deltas;
  for (size_t i = 0; i < edited.batch.changes.size(); ++i)
    for (const WeightDelta& delta : edited.batch.changes[i].deltas)
      deltas.append(nb::make_tuple((*edited.weights)[i], delta_of(delta)));
  return deltas;
}

/// Returns [(weight, keys, residuals, [places of the edits of each key])].
nb::list systems_of(const Edited& edited) {
  nb::list systems;
  for (size_t i = 0; i < edited.batch.systems.size(); ++i) {
    const SolvedSystem& system = edited.batch.systems[i];
    nb::list columns;
    for (const std::vector<int64_t>& edits : system.edits) {
      nb::list places;
      for (const int64_t place : edits) places.append(place);
      columns.append(places);
    }
    systems.append(nb::make_tuple((*edited.weights)[edited.batch.changes.size() + i], to_capsule(system.keys_FN),
                                  to_capsule(system.residuals_DN), columns));
  }
  return systems;
}

nb::list losses_of(const Edited& edited) {
  nb::list losses;
  for (const RequestOutcome& outcome : edited.report->outcome.requests)
    losses.append(to_capsule(outcome.losses, edited.report));
  return losses;
}

}  // namespace

Edited edited(Session& session, EditReport report) {
  Edited made{.report_json = session.report_json(report), .batch = session.last_batch()};
  made.report = std::make_shared<const EditReport>(std::move(report));
  std::vector<std::string> names;
  const ModelConfig& config = session.files().config;
  for (const WeightChanges& change : made.batch.changes) names.push_back(weight_name(config, change.id));
  for (const SolvedSystem& system : made.batch.systems) names.push_back(weight_name(config, system.id));
  made.weights = std::make_shared<const std::vector<std::string>>(std::move(names));
  return made;
}

void bind_results(nb::module_& module) {
  nb::class_<Edited>(module, "Edited", "What an edit made: its report as JSON, and its tensors as DLPack capsules.")
      .def_prop_ro("report_json", [](const Edited& self) { return self.report_json; })
      .def("deltas", deltas_of)
      .def("systems", systems_of)
      .def("losses", losses_of);
}

}  // namespace lancet::python
