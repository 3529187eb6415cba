#include "lancet/tracing/causal_trace.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/host_workers.h"
#include "restorations.h"
#include "trace_states.h"

namespace lancet {
namespace {

/// The number of tokens of base rows whose states a group keeps. A group has at least one fact.
constexpr int64_t kKeptTraceTokens = 2048;

constexpr std::array<std::string_view, 3> kKindNames{"hidden", "mlp", "attention"};

/// One group of facts: their base runs, and the runs that restore states.
class GroupTrace {
 public:
  GroupTrace(const CausalLM& model, std::vector<TracedFact> facts, const TraceOptions& options, TraceProgress& progress)
      : model_(model),
        facts_(std::move(facts)),
        options_(options),
        progress_(progress),
        states_(model, facts_, options) {}

  /// Returns for every token of every fact in turn the clean and the corrupted probability, and then by kind and layer
  /// the probability with the state restored. [tokens, 2 + kinds * L] f64, host.
  Tensor run();

 private:
  std::vector<Restoration> restorations() const;
  void run_batch(const std::vector<Restoration>& all, const std::vector<int64_t>& batch, double* out) const;
  Tensor start(const std::vector<Restoration>& rows, int64_t width) const;
  KeyValues prefix(const std::vector<Restoration>& rows, int64_t layer) const;
  HookSet hooks(const std::vector<Restoration>& rows, int64_t layer) const;

  int64_t n_layers() const { return model_.config().n_layers; }
  int64_t length(const Restoration& row) const {
    return static_cast<int64_t>(facts_[row.fact].prompt.ids.size()) - row.token;
  }
  int64_t columns() const { return 2 + static_cast<int64_t>(options_.kinds.size()) * n_layers(); }
  /// Returns the row of a restoration in the result, in which the tokens of a fact follow one another.
  int64_t place(const Restoration& row) const {
    int64_t token = row.token;
    for (size_t f = 0; f < row.fact; ++f) token += static_cast<int64_t>(facts_[f].prompt.ids.size());
    return token * columns() + 2 + static_cast<int64_t>(row.kind) * n_layers() + row.layer;
  }

  const CausalLM& model_;
  std::vector<TracedFact> facts_;
  const TraceOptions& options_;
  TraceProgress& progress_;
  TraceStates states_;
};

std::vector<Restoration> GroupTrace::restorations() const {
  const HasPart has_part = [&](TraceKind kind, const LayerRange& window) { return states_.has_any(kind, window); };
  std::vector<Restoration> all = restorations_of(facts_, options_, n_layers(), has_part);
  // rows that begin at the same layer run together, sorted by length
  std::stable_sort(all.begin(), all.end(), [&](const Restoration& a, const Restoration& b) {
    return std::pair(a.run.begin, length(a)) < std::pair(b.run.begin, length(b));
  });
  return all;
}

/// Returns the corrupted runs' states at the rows' first layer, from the restored token on: [B, width, D]. If the
/// hidden state itself is restored, the first position has the clean run's state.
Tensor GroupTrace::start(const std::vector<Restoration>& rows, int64_t width) const {
  std::vector<int64_t> places;
  for (const Restoration& row : rows)
    for (int64_t sample = 0; sample < options_.samples; ++sample)
      for (int64_t j = 0; j < width; ++j) {
        const bool is_clean = j == 0 && options_.kinds[row.kind] == TraceKind::kHidden;
        const int64_t base = states_.clean_row(row.fact) + (is_clean ? 0 : 1 + sample);
        places.push_back(base * states_.width + std::min(row.token + j, states_.width - 1));
      }
  const Tensor& input_BTD = states_.inputs_BTD[static_cast<size_t>(rows.front().run.begin)];
  return input_BTD.flatten(0, 1).index_select(0, to_index(places, input_BTD.device())).unflatten(0, {-1, width});
}

/// Returns keys and values of the corrupted runs before the restored token, for one layer, and the inputs that its
/// mixer reads of them.
KeyValues GroupTrace::prefix(const std::vector<Restoration>& rows, int64_t layer) const {
  std::vector<int64_t> base, lengths;
  for (const Restoration& row : rows)
    for (int64_t sample = 0; sample < options_.samples; ++sample) {
      base.push_back(states_.clean_row(row.fact) + 1 + sample);
      lengths.push_back(row.token);
    }
  const int64_t width = *std::max_element(lengths.begin(), lengths.end());
  const auto select = [&](const KeyValuePair& all) {
    const auto taken = [&](const Tensor& x_BKTC) {
      return x_BKTC.narrow(2, 0, width).index_select(0, to_index(base, x_BKTC.device())).transpose(1, 2);
    };
    return KeyValuePair{taken(all.key), taken(all.value)};
  };
  KeyValues some;
  if (const KeyValuePair attended = states_.cache.layer(layer); attended.key.defined())
    some.record(layer, select(attended));
  if (const KeyValuePair mixed = states_.cache.mixer_tokens(layer); mixed.key.defined())
    some.record_tokens(layer, select(mixed));
  some.end_pass(torch::arange(width).unsqueeze(0) < torch::tensor(lengths, torch::kLong).unsqueeze(1));
  return some;
}

/// Restores the clean outputs of `layer` if its window has the layer. The restored token is at each row's first
/// position. The last layer computes only the rows' last positions.
HookSet GroupTrace::hooks(const std::vector<Restoration>& rows, int64_t layer) const {
  struct Places {
    std::vector<int64_t> rows, states;
  };
  std::map<TraceKind, Places> by_kind;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Restoration& row = rows[i];
    if (layer < row.window.begin || layer >= row.window.end) continue;
    if (layer + 1 == n_layers() && length(row) > 1) continue;
    if (!states_.has_any(options_.kinds[row.kind], {layer, layer + 1})) continue;
    Places& places = by_kind[options_.kinds[row.kind]];
    for (int64_t sample = 0; sample < options_.samples; ++sample) {
      places.rows.push_back(static_cast<int64_t>(i) * options_.samples + sample);
      places.states.push_back(static_cast<int64_t>(row.fact) * states_.width + row.token);
    }
  }
  HookSet hooks;
  for (const auto& [kind, places] : by_kind) {
    const bool is_mlp = kind == TraceKind::kMlp;
    const Tensor& clean_FTD = states_.outputs(kind)[static_cast<size_t>(layer)];
    const Tensor state_ND = clean_FTD.flatten(0, 1).index_select(0, to_index(places.states, clean_FTD.device()));
    const Tensor row_N = to_index(places.rows, clean_FTD.device());
    hooks.replace({is_mlp ? HookPoint::kMlpOut : HookPoint::kAttnOut, layer}, [=](const Tensor& value_BTD) {
      Tensor replaced = value_BTD.clone();
      replaced.select(1, 0).index_copy_(0, row_N, state_ND);
      return replaced;
    });
  }
  return hooks;
}

void GroupTrace::run_batch(const std::vector<Restoration>& all, const std::vector<int64_t>& batch, double* out) const {
  const torch::NoGradGuard no_grad_in_this_thread;
  std::vector<Restoration> rows;
  SequenceInfo sequence;
  std::vector<int64_t> first, objects;
  for (const int64_t i : batch) {
    rows.push_back(all[static_cast<size_t>(i)]);
    const auto samples = static_cast<size_t>(options_.samples);
    sequence.lengths.insert(sequence.lengths.end(), samples, length(rows.back()));
    first.insert(first.end(), samples, rows.back().token);
    objects.insert(objects.end(), samples, facts_[rows.back().fact].object);
  }
  const int64_t width = *std::max_element(sequence.lengths.begin(), sequence.lengths.end());
  sequence.positions_BT = torch::tensor(first, torch::kLong).unsqueeze(1) + torch::arange(width);
  Tensor h_BTD = start(rows, width);
  for (int64_t layer = rows.front().run.begin; layer < n_layers(); ++layer) {
    const KeyValues before = prefix(rows, layer);
    sequence.prefix = &before;
    if (layer + 1 == n_layers()) sequence.outputs_BO = torch::tensor(sequence.lengths, torch::kLong).unsqueeze(1) - 1;
    h_BTD = model_.run_layers(h_BTD, sequence, {layer, layer + 1}, hooks(rows, layer));
  }
  const Tensor probability_RS = token_probabilities(model_, h_BTD.squeeze(1), objects).view({-1, options_.samples});
  const std::vector<double> means = to_doubles(probability_RS.mean(1));
  for (size_t i = 0; i < rows.size(); ++i) out[place(rows[i])] = means[i];
  progress_.put_back(rows, facts_);
}

Tensor GroupTrace::run() {
  int64_t n_tokens = 0, longest = 0;
  for (const TracedFact& fact : facts_) {
    n_tokens += static_cast<int64_t>(fact.prompt.ids.size());
    longest = std::max(longest, static_cast<int64_t>(fact.prompt.ids.size()));
  }
  Tensor result = torch::empty({n_tokens, columns()}, torch::kDouble);
  double* out = result.mutable_data_ptr<double>();
  // restorations without an effect get the corrupted probability; from the last layer's output only the last token is
  // read
  int64_t token = 0;
  for (size_t f = 0; f < facts_.size(); ++f) {
    const auto length = static_cast<int64_t>(facts_[f].prompt.ids.size());
    const Tensor rows = result.narrow(0, token, length);
    rows.fill_(states_.corrupted[f]);
    rows.select(1, 0).fill_(states_.clean[f]);
    for (size_t k = 0; k < options_.kinds.size(); ++k)
      if (options_.kinds[k] == TraceKind::kHidden)
        rows[length - 1][2 + (static_cast<int64_t>(k) + 1) * n_layers() - 1] = states_.clean[f];
    token += length;
  }

  const std::vector<Restoration> all = restorations();
  progress_.begin_group(facts_, std::ssize(all));
  const int64_t tokens = options_.batch_tokens / pieces_at_once(model_.placement());
  const auto most = static_cast<size_t>(std::max<int64_t>(1, tokens / (options_.samples * longest)));
  std::vector<std::vector<int64_t>> batches;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool fits = i > 0 && batches.back().size() < most && all[i].run.begin == all[i - 1].run.begin;
    if (!fits) batches.emplace_back();
    batches.back().push_back(static_cast<int64_t>(i));
  }
  run_independent(model_.placement(), static_cast<int64_t>(batches.size()),
                  [&](int64_t i) { run_batch(all, batches[static_cast<size_t>(i)], out); });
  progress_.end_group(facts_);
  return result;
}

/// Groups facts of similar length whose base rows' states are kept together.
std::vector<std::vector<int64_t>> plan_groups(std::span<const TracedFact> facts, int64_t samples) {
  std::vector<int64_t> lengths;
  for (const TracedFact& fact : facts) lengths.push_back((samples + 1) * static_cast<int64_t>(fact.prompt.ids.size()));
  return plan_batches(lengths, {.tokens = kKeptTraceTokens});
}

}  // namespace

std::string_view trace_kind_name(TraceKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

LayerRange trace_window(int64_t layer, int64_t window, int64_t n_layers) {
  const int64_t begin = layer - window / 2;
  return {std::max<int64_t>(0, begin), std::min(n_layers, begin + window)};
}

double embedding_deviation(const CausalLM& model, const std::vector<TokenId>& tokens) {
  double sum = 0, squares = 0, entries = 0;
  for (size_t begin = 0; begin < tokens.size(); begin += kForwardTokens) {
    const size_t count = std::min<size_t>(kForwardTokens, tokens.size() - begin);
    const Tensor ids = torch::tensor(std::vector<TokenId>(tokens.begin() + static_cast<ptrdiff_t>(begin),
                                                          tokens.begin() + static_cast<ptrdiff_t>(begin + count)),
                                     torch::kLong);
    const Tensor embedded = model.embed_tokens(ids).to(Placement::host(), torch::kDouble);
    sum += embedded.sum().item<double>();
    squares += embedded.square().sum().item<double>();
    entries += static_cast<double>(embedded.numel());
  }
  return std::sqrt(std::max(0.0, squares / entries - sum * sum / (entries * entries)));
}

std::vector<Prediction> predict_next(const CausalLM& model, std::span<const std::vector<TokenId>> prompts,
                                     Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> lengths;
  for (const std::vector<TokenId>& prompt : prompts) lengths.push_back(static_cast<int64_t>(prompt.size()));
  const RowBatches batches = plan_batches(lengths, {.tokens = kForwardTokens});
  const Tensor found_N2 = scatter_rows(
      communicator, RowWork{model.placement(), "predict"}, batches, {torch::kDouble, Placement::host()},
      [&](size_t index, StageTurn& turn) {
        std::vector<std::vector<TokenId>> rows;
        for (const int64_t row : batches[index]) rows.push_back(prompts[static_cast<size_t>(row)]);
        TokenBatch batch = make_batch(rows);
        batch.sequence.turn = &turn;
        batch.sequence.outputs_BO = torch::tensor(batch.sequence.lengths, torch::kLong).unsqueeze(1) - 1;
        const Tensor h_BD =
            model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers()).squeeze(1);
        const Tensor token_B = model.logits(h_BD).argmax(1).to(Placement::host());
        const std::vector<int64_t> tokens(token_B.const_data_ptr<int64_t>(),
                                          token_B.const_data_ptr<int64_t>() + token_B.size(0));
        return torch::stack({token_B.to(torch::kDouble), token_probabilities(model, h_BD, tokens)}, 1);
      });
  std::vector<Prediction> predictions;
  const double* at = found_N2.const_data_ptr<double>();
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (!std::isfinite(at[2 * i + 1]))
      throw NumericError(cat("predict: what the model says after prompt ", i,
                             " is not finite: the model is damaged, or its numbers are too large for this dtype: "
                             "try --dtype f32"));
    predictions.push_back({static_cast<TokenId>(at[2 * i]), at[2 * i + 1]});
  }
  return predictions;
}

int64_t kept_trace_tokens(std::span<const TracedFact> facts, int64_t samples) {
  int64_t most = 0;
  for (const std::vector<int64_t>& group : plan_groups(facts, samples)) {
    const size_t longest = facts[static_cast<size_t>(group.back())].prompt.ids.size();  // facts are sorted by length
    most = std::max(most, static_cast<int64_t>(group.size() * longest) * (samples + 1));
  }
  return most;
}

std::vector<FactTrace> trace_facts(const CausalLM& model, std::span<const TracedFact> facts,
                                   const TraceOptions& options, Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> first_row;  // first row of each fact's tokens in the result
  int64_t n_rows = 0;
  for (const TracedFact& fact : facts) {
    first_row.push_back(n_rows);
    n_rows += static_cast<int64_t>(fact.prompt.ids.size());
  }
  const std::vector<std::vector<int64_t>> groups = plan_groups(facts, options.samples);
  RowBatches batches;
  std::map<int64_t, size_t> group_of_row;
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<int64_t>& rows = batches.emplace_back();
    for (const int64_t fact : groups[g])
      for (size_t token = 0; token < facts[static_cast<size_t>(fact)].prompt.ids.size(); ++token)
        rows.push_back(first_row[static_cast<size_t>(fact)] + static_cast<int64_t>(token));
    group_of_row[rows.front()] = g;
  }
  std::vector<TracedFact> own;
  for (const size_t g : own_pieces(communicator, groups.size()))
    for (const int64_t fact : groups[g]) own.push_back(facts[static_cast<size_t>(fact)]);
  TraceProgress progress(own, options, model.config().n_layers);
  const Tensor all_NX = scatter_rows(communicator, "trace", batches, {torch::kDouble, Placement::host()},
                                     [&](const std::vector<int64_t>& rows) {
                                       std::vector<TracedFact> some;
                                       for (const int64_t fact : groups[group_of_row.at(rows.front())])
                                         some.push_back(facts[static_cast<size_t>(fact)]);
                                       return GroupTrace(model, std::move(some), options, progress).run();
                                     });
  std::vector<FactTrace> traces;
  for (size_t f = 0; f < facts.size(); ++f) {
    const Tensor own_TX = all_NX.narrow(0, first_row[f], static_cast<int64_t>(facts[f].prompt.ids.size()));
    FactTrace& trace = traces.emplace_back();
    trace.clean = own_TX[0][0].item<double>();
    trace.corrupted = own_TX[0][1].item<double>();
    for (const Tensor& map_TL : own_TX.slice(1, 2).split(model.config().n_layers, 1))
      trace.restored_TL.push_back(map_TL.contiguous());
  }
  return traces;
}

}  // namespace lancet
