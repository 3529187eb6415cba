#include "lancet/plan/run_choices.h"

#include <iterator>
#include <stdexcept>
#include <string_view>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

struct NamedQuantiser {
  std::string_view name;
  Quantiser value;
};
constexpr NamedQuantiser kQuantisers[] = {
    {"int8", Quantiser::kInt8}, {"nf4", Quantiser::kNf4}, {"fp8", Quantiser::kFloat8}};

/// Whether the option's names after the first, which stands for no quantiser, are those of kQuantisers.
constexpr bool are_named_so() {
  if (std::size(RunSpec::kQuantiseBaseNames) != std::size(kQuantisers) + 1) return false;
  for (size_t i = 0; i < std::size(kQuantisers); ++i)
    if (RunSpec::kQuantiseBaseNames[i + 1] != kQuantisers[i].name) return false;
  return true;
}
static_assert(are_named_so());

}  // namespace

std::optional<Quantiser> base_quantiser(const RunOptions& run) {
  if (run.quantise_base.empty()) return std::nullopt;
  for (const NamedQuantiser& quantiser : kQuantisers)
    if (quantiser.name == run.quantise_base) return quantiser.value;
  throw std::logic_error(cat("run.quantise_base: ", run.quantise_base));
}

SolveOn solve_on(const RunOptions& run) {
  switch (run.solve_on) {
    case SolveChoice::kDevice:
      return SolveOn::kDevice;
    case SolveChoice::kHost:
      return SolveOn::kHost;
    case SolveChoice::kAuto:
      break;
  }
  return SolveOn::kAuto;
}

LaunchMode step_launch(const RunOptions& run) {
  return run.uses_graphs ? LaunchMode::kGraph : LaunchMode::kEachOperation;
}

HostShare host_share(const RunOptions& run) { return {run.on_host.rank, run.on_host.size}; }

LocalRank local_rank(HostShare share) { return {share.rank, share.size}; }

}  // namespace lancet
