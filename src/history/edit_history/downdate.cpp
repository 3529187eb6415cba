// Takes edits out of a whole history: first out of the solves of their own batches, then out of the stored keys with
// which later batches were solved.
#include "lancet/edit_history/downdate.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "history_keys.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "solved_rows.h"

namespace lancet {
namespace {

/// One pass over the batches. It has the states as they were, and the states as they become.
class HistoryDowndate {
 public:
  HistoryDowndate(const EditHistory& history, const std::set<std::string>& ids, const DowndateHelp& help)
      : history_(history), help_(help) {
    find_places(ids);
  }

  Downdated run() {
    const std::vector<BatchEntry>& entries = history_.journal().batches();
    result_.keeps = static_cast<size_t>(
        std::ranges::find_if(places_, [](const std::set<int64_t>& places) { return !places.empty(); }) -
        places_.begin());
    check_solved();
    for (size_t i = 0; i < entries.size(); ++i) take(i);
    result_.approximation = join(approximations_, "; ");
    return std::move(result_);
  }

 private:
  void find_places(std::set<std::string> ids) {
    if (ids.empty()) throw std::logic_error("without_edits: expected ids of edits");
    for (const BatchEntry& entry : history_.journal().batches()) {
      std::set<int64_t>& places = places_.emplace_back();
      for (size_t i = 0; i < entry.edits.size(); ++i)
        if (ids.erase(entry.edits[i].request.id) > 0) places.insert(static_cast<int64_t>(i));
    }
    if (!ids.empty()) throw ConfigError(cat("edit ", *ids.begin(), ": none of this id stands"));
  }

  /// Throws if the stored solves are missing: without them it is not known with which keys later batches were solved.
  void check_solved() const {
    const std::vector<BatchEntry>& entries = history_.journal().batches();
    for (size_t i = result_.keeps; i < entries.size(); ++i)
      if (!history_.has_solved() && places_[i].size() < entries[i].edits.size())
        throw ConfigError(
            "the edits were written without what their changes were solved from: none can leave but the last batches; "
            "use --mode replay");
  }

  void take(size_t index) {
    const BatchEntry& entry = history_.journal().batches()[index];
    const EditedBatch& batch = history_.batches()[index];
    const std::set<int64_t>& places = places_[index];
    const bool is_gone = places.size() == entry.edits.size();
    ReducedBatch reduced{.batch = {.changes = batch.changes, .systems = batch.systems}};
    if (!is_gone && !places.empty()) {
      reduced = without_edits(batch, entry, places);
      note_what_is_given_up(batch, index);
    }
    BatchEntry fewer = without_edits(entry, places, help_.report);
    if (!is_gone && solve_again(fewer, reduced.batch)) reduced.error = 0;
    const StateStep step = step_without(index, is_gone);
    if (index < result_.keeps || is_gone) return;
    if (places.empty()) {
      fewer.report = entry.report;
      ++n_later_;
      if (n_later_ == 1)
        approximations_.push_back(
            "the values, keys and residuals of later batches were found on weights that had the edits");
    }
    reduced.batch.state = step;
    result_.error = std::max(result_.error, reduced.error);
    result_.entries.push_back(std::move(fewer));
    result_.batches.push_back(std::move(reduced.batch));
  }

  void give_up(const std::string& what) {
    if (std::ranges::find(approximations_, what) == approximations_.end()) approximations_.push_back(what);
  }

  /// Notes which exactness is lost in a batch that keeps some of its edits.
  void note_what_is_given_up(const EditedBatch& batch, size_t index) {
    size_t n_changes = 0;
    bool has_left_out = false;
    for (const WeightChanges& weight : batch.changes)
      for (const WeightDelta& delta : weight.deltas) {
        ++n_changes;
        const Tensor& right_RF = std::get<LowRankDelta>(delta).right_RI;
        has_left_out =
            has_left_out || (!is_zero(std::get<LowRankDelta>(delta)) && (right_RF == 0).all(0).any().item<bool>());
      }
    if (n_changes > 1)
      give_up("keys and residuals of later layers and passes were found with the edits in the weights of earlier ones");
    if (has_left_out) give_up("which inputs change was chosen with the edits' keys");
    for (const auto& [name, tensor] : history_.batches()[index].state.replaced)
      if (!is_history(name, tensor))
        give_up("what the method measured once, at a first batch, it measured with the edits");
  }

  /// Solves again the weights of layers whose stored keys lost columns. Returns whether there was such a layer.
  bool solve_again(const BatchEntry& entry, EditedBatch& batch) {
    bool any = false;
    for (WeightChanges& weight : batch.changes) {
      const std::string name = history_name(weight.id.layer);
      if (!changed_.contains(name)) continue;
      size_t column = 0;
      for (size_t i = 0; i < weight.deltas.size(); ++i) {
        const LowRankDelta& delta = low_rank(weight, i);
        const std::vector<int64_t> edits = edits_of_columns(entry, column, delta);
        column += edits.size();
        auto system = std::ranges::find_if(batch.systems, [&](const SolvedSystem& each) {
          return each.id == weight.id && each.change == static_cast<int64_t>(i);
        });
        if (system == batch.systems.end() && is_zero(delta)) continue;
        if (system == batch.systems.end() || !help_.solve)
          throw ConfigError(cat(where(weight, i), ": the batch was solved with the keys of the edits as its history: ",
                                "it must be solved again, for which the layer's statistics and what the solve was of ",
                                "must be at hand; use --mode replay"));
        rows_of_keys(*system, delta, edits, where(weight, i));  // throws if they do not belong together
        const Tensor right_NF = help_.solve({entry, *system, histories_[name]});
        system->inverse_gram_NN = Tensor();
        weight.deltas[i] = LowRankDelta{delta.left_OR, rows_of_columns(*system, right_NF, edits, delta.right_RI)};
        any = true;
      }
    }
    return any;
  }

  /// Returns the step of a batch without its removed edits, starting from the new state, and advances that state.
  StateStep step_without(size_t index, bool is_gone) {
    const EditedBatch& batch = history_.batches()[index];
    const auto n_dropped = static_cast<int64_t>(places_[index].size());
    StateStep step{.edits = batch.state.edits - n_dropped};
    for (const auto& [name, columns] : batch.state.appended)
      put_columns(step, name, kept_columns(index, name, columns, is_gone));
    for (const auto& [name, tensor] : batch.state.replaced) {
      const bool is_new = known_.insert(name).second;
      if (is_history(name, tensor))
        put_history(step, index, {name, tensor, is_new, is_gone});
      else if (!is_new && is_gone)
        continue;
      else if (!is_new && index >= result_.keeps)
        throw ConfigError(cat("batch ", index, ": it goes by running numbers of the batches before it (", name,
                              "): use --mode replay"));
      else
        constants_[name] = tensor;
    }
    if (is_gone) return step;
    // together with those of removed batches
    for (auto& [name, tensor] : constants_) {
      step.replaced[name] = tensor;
      if (index > result_.keeps && !batch.state.replaced.contains(name))
        give_up("what the method measured once, at a first batch, it measured with the edits");
    }
    constants_.clear();
    return step;
  }

  struct NewHistory {
    const std::string& name;
    const Tensor& columns;
    bool is_new, is_gone;
  };

  void put_history(StateStep& step, size_t index, const NewHistory& history) {
    const bool loses = changed_.contains(history.name) || !places_[index].empty();
    if (!history.is_new && loses && !history.is_gone)
      throw ConfigError(cat("batch ", index, ": the method's history of keys was compressed there (", history.name,
                            "), the edits' among them: use --mode replay"));
    if (!history.is_new && history.is_gone && index + 1 < places_.size())
      throw ConfigError(cat("batch ", index, ": the method's history of keys was compressed there (", history.name,
                            "): use --mode replay"));
    if (!history.is_new) {
      if (!history.is_gone) histories_[history.name] = step.replaced[history.name] = history.columns;
      return;
    }
    put_columns(step, history.name, kept_columns(index, history.name, history.columns, history.is_gone));
  }

  Tensor kept_columns(size_t index, const std::string& name, const Tensor& columns_FN, bool is_gone) {
    const std::set<int64_t>& places = places_[index];
    if (places.empty()) return columns_FN;
    changed_.insert(name);
    if (is_gone) return columns_FN.narrow(1, 0, 0);
    const std::optional<int64_t> layer = parse_whole_number(name.substr(history_name(0).size() - 1));
    if (!layer) throw CheckpointError(cat(name, ": expected the keys of a layer"));
    const auto edits =
        history_columns(history_.batches()[index], history_.journal().batches()[index], *layer, columns_FN.size(1));
    std::vector<int64_t> kept;
    for (size_t i = 0; i < edits.size(); ++i) {
      const auto is_dropped = [&](int64_t edit) { return places.contains(edit); };
      if (std::ranges::none_of(edits[i], is_dropped)) kept.push_back(static_cast<int64_t>(i));
    }
    return columns_FN.index_select(1, torch::tensor(kept, torch::kLong));
  }

  void put_columns(StateStep& step, const std::string& name, const Tensor& columns_FN) {
    if (columns_FN.size(1) == 0) return;
    Tensor& history = histories_[name];
    (history.defined() ? step.appended : step.replaced)[name] = columns_FN;
    history = joined_columns(history, columns_FN);
  }

  const EditHistory& history_;
  const DowndateHelp& help_;
  std::vector<std::set<int64_t>> places_;    ///< for each batch, the edits that leave it
  std::map<std::string, Tensor> histories_;  ///< stored keys as they are now
  std::set<std::string> changed_;            ///< names of those that changed
  std::set<std::string> known_;              ///< names in the state as it was
  std::map<std::string, Tensor> constants_;  ///< tensors that no remaining batch has put into the state yet
  std::vector<std::string> approximations_;
  int64_t n_later_ = 0;
  Downdated result_;
};

}  // namespace

Downdated without_edits(const EditHistory& history, const std::set<std::string>& ids, const DowndateHelp& help) {
  const torch::NoGradGuard no_grad;
  return HistoryDowndate(history, ids, help).run();
}

}  // namespace lancet
