#include "restorations.h"

#include <algorithm>

namespace lancet {

std::vector<Restoration> restorations_of(std::span<const TracedFact> facts, const TraceOptions& options,
                                         int64_t n_layers, const HasPart& has_part) {
  std::vector<Restoration> all;
  for (size_t f = 0; f < facts.size(); ++f)
    for (size_t k = 0; k < options.kinds.size(); ++k)
      for (int64_t token = facts[f].prompt.first; token < std::ssize(facts[f].prompt.ids); ++token)
        for (int64_t layer = 0; layer < n_layers; ++layer) {
          if (options.kinds[k] == TraceKind::kHidden) {
            if (layer + 1 < n_layers) all.push_back({f, k, token, layer, {layer + 1, n_layers}, {}});
          } else {
            const LayerRange window = trace_window(layer, options.window, n_layers);
            if (!has_part || has_part(options.kinds[k], window))
              all.push_back({f, k, token, layer, {window.begin, n_layers}, window});
          }
        }
  return all;
}

TraceProgress::TraceProgress(std::span<const TracedFact> facts, const TraceOptions& options, int64_t n_layers)
    : options_(options), n_layers_(n_layers), progress_("trace", std::ssize(facts), "facts") {
  const std::vector<Restoration> all = restorations_of(facts, options, n_layers);
  for (const Restoration& row : all) work_.left += cost_of(row, facts);
  work_.left += base_cost(facts);
  progress_.measure_by("state", std::ssize(all));
  progress_.estimate_by([this] {
    const std::lock_guard lock(mutex_);
    return work_;
  });
}

void TraceProgress::begin_group(std::span<const TracedFact> facts, int64_t n_states) {
  progress_.expect_pieces(n_states - std::ssize(restorations_of(facts, options_, n_layers_)));
  count(base_cost(facts));
}

void TraceProgress::put_back(std::span<const Restoration> rows, std::span<const TracedFact> facts) {
  double cost = 0;
  for (const Restoration& row : rows) cost += cost_of(row, facts);
  count(cost);
  progress_.advance_pieces(std::ssize(rows));
}

double TraceProgress::cost_of(const Restoration& row, std::span<const TracedFact> facts) const {
  const int64_t tokens = std::ssize(facts[row.fact].prompt.ids) - row.token;
  return static_cast<double>(options_.samples * tokens * (n_layers_ - row.run.begin));
}

double TraceProgress::base_cost(std::span<const TracedFact> facts) const {
  int64_t tokens = 0;
  for (const TracedFact& fact : facts) tokens += std::ssize(fact.prompt.ids);
  return static_cast<double>((options_.samples + 1) * tokens * n_layers_);
}

void TraceProgress::count(double cost) {
  const std::lock_guard lock(mutex_);
  work_.done += cost;
  work_.left = std::max(0.0, work_.left - cost);
}

}  // namespace lancet
