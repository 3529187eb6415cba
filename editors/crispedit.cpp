// CrispEdit: fine-tuning of a few down projections in directions in which the loss on text has low curvature. Source:
// Ikram et al., arXiv 2602.15823 (zarifikram/CrispEdit). By K-FAC the curvature for a weight is the Kronecker product
// of A = E[k k^T] and B = E[g g^T]. A gradient G becomes U_B (M o (U_B^T G U_A)) U_A^T, where M leaves out the products
// of eigenvectors that together have the share `energy` of the curvature. Then Adam uses it. The texts on which earlier
// batches were trained join A and B, token by token. Differs from the reference: Adam starts anew with each batch of a
// stream; Adam's own steps may be projected, too; A and B may have neighbours of the requests: their prompts with the
// subjects of other requests.
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/automatic_options.h"
#include "lancet/editor_parts/trained_edit.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

struct CrispOptions {
  double energy = 0;
  int64_t neighbours = 0;       ///< number of further prompts for each request
  double neighbour_weight = 0;  ///< each neighbour counts as this many tokens of text
};

/// Which of the captured rows join A and B.
struct Taken {
  std::vector<int64_t> rows = {};  ///< empty: all
  double scale = 1;
};

/// Names of the tensors in which a state has the tokens that join those of the text, one token in each column.
std::string keys_name(int64_t layer) { return cat("curvature.keys.", layer); }
std::string gradients_name(int64_t layer) { return cat("curvature.gradients.", layer); }

/// Returns each request's prompt with the subjects of the next `count` requests. Texts that are requests themselves are
/// left out.
std::vector<EditRequest> neighbours_of(std::span<const EditRequest> requests, int64_t count) {
  std::set<std::string> texts;
  for (const EditRequest& request : requests) texts.insert(request.prompt.text);
  std::vector<EditRequest> neighbours;
  for (size_t i = 0; i < requests.size(); ++i) {
    int64_t found = 0;
    for (size_t step = 1; step < requests.size() && found < count; ++step) {
      EditRequest neighbour = requests[i];
      SubjectPrompt& prompt = neighbour.prompt;
      neighbour.subject = requests[(i + step) % requests.size()].subject;
      prompt.text.replace(static_cast<size_t>(prompt.subject.begin),
                          static_cast<size_t>(prompt.subject.end - prompt.subject.begin), neighbour.subject);
      prompt.subject.end = prompt.subject.begin + std::ssize(neighbour.subject);
      if (!texts.insert(prompt.text).second) continue;
      neighbour.id = cat(neighbour.id, " with the subject ", neighbour.subject);
      neighbours.push_back(std::move(neighbour));
      ++found;
    }
  }
  return neighbours;
}

/// Returns a tensor of the state with a row for each token; undefined if the state has none.
Tensor rows_of(const EditorState& state, const std::string& name) {
  const Tensor columns = columns_of(state, name);
  return columns.defined() ? columns.t() : columns;
}

class CrispEditor final : public Editor {
 public:
  CrispEditor(std::optional<std::vector<WeightId>> modules, const TrainingOptions& training,
              const CrispOptions& options, TargetEnd end)
      : modules_(std::move(modules)), training_(training), options_(options), end_(end) {}

  EditorNeeds needs() const override {
    return {.subject = options_.neighbours > 0,
            .statistics = true,
            .curvature = true,
            .backward = BackwardNeeds{.batch = training_.batch, .projects = true}};
  }
  const ContextOptions* contexts() const override { return nullptr; }
  const ValueOptions* values() const override { return nullptr; }
  TargetRule target_rule() const override { return {.end = end_}; }
  std::vector<WeightId> targets(const ModelConfig& config) const override {
    std::vector<WeightId> modules = modules_of(modules_, AutomaticModules::kLateDown, config);
    for (const WeightId& id : modules)
      if (config.has_experts(id.layer))
        throw ConfigError(cat("editor.modules.down: layer ", id.layer, " has ", config.experts.count,
                              " experts, each of which has a curvature of its own: expected layers without"));
    return modules;
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const std::vector<WeightId> modules = targets(context.config());
    const std::vector<TokenizedRequest> texts = context.tokenize(requests, target_rule());
    if (options_.neighbours > 0) add_neighbours(context, requests, modules, state);
    TrainingOptions training = training_;
    training.projection = [&](WeightId id) { return projection(context, state, id.layer); };
    const TrainedWeights trained = context.train_weights(texts, modules, training);
    EditOutcome outcome = apply_trained(context, modules, trained, state, transaction);
    add_tokens(modules, capture(context, texts, modules), state);
    return outcome;
  }

 private:
  CapturedGradients capture(const EditContext& context, std::span<const TokenizedRequest> texts,
                            std::span<const WeightId> modules) const {
    return context.capture_token_gradients(texts, modules, {TokenChoice::kAnswer, training_.batch});
  }

  /// Adds for each neighbour the key and the gradient at the token that predicts the first token of the target.
  void add_neighbours(const EditContext& context, std::span<const EditRequest> requests,
                      std::span<const WeightId> modules, EditorState& state) const {
    const std::vector<EditRequest> neighbours = neighbours_of(requests, options_.neighbours);
    if (neighbours.empty()) return;
    CapturedGradients captured = capture(context, context.tokenize(neighbours, target_rule()), modules);
    std::vector<int64_t> firsts;
    for (size_t row = 0; row < captured.owners.size(); ++row)
      if (row == 0 || captured.owners[row] != captured.owners[row - 1]) firsts.push_back(static_cast<int64_t>(row));
    add_tokens(modules, captured, state, {firsts, std::sqrt(options_.neighbour_weight)});
  }

  /// Adds tokens to A and B, for the batches that follow.
  static void add_tokens(std::span<const WeightId> modules, const CapturedGradients& captured, EditorState& state,
                         const Taken& taken = {}) {
    std::vector<double> n_labels;  // the loss of a pass is a mean over its labels, but A and B need sums
    for (const int64_t size : captured.pass_sizes)
      n_labels.insert(n_labels.end(), static_cast<size_t>(size), static_cast<double>(size));
    for (size_t i = 0; i < modules.size(); ++i) {
      const auto& [keys_MI, gradients_MO] = captured.weights[i];
      const auto columns = [&](const Tensor& rows) {
        const Tensor own = taken.rows.empty() ? rows : rows.index_select(0, to_index(taken.rows, rows.device()));
        return taken.scale * own.t();
      };
      const Tensor labels_M1 = torch::tensor(n_labels, torch::kDouble).unsqueeze(1).to(gradients_MO.device());
      append_columns(state, keys_name(modules[i].layer), columns(keys_MI));
      append_columns(state, gradients_name(modules[i].layer), columns(labels_M1 * gradients_MO));
    }
  }

  GradientProjection projection(const EditContext& context, const EditorState& state, int64_t layer) const {
    const std::string where = cat("layer ", layer);
    Curvature curvature = context.curvature(layer);
    if (const Tensor keys_MI = rows_of(state, keys_name(layer)); keys_MI.defined())
      curvature = {joined(curvature.inputs, keys_MI, where),
                   joined(curvature.gradients, rows_of(state, gradients_name(layer)), where)};
    return {curvature.gradients.vectors_NN, curvature.inputs.vectors_NN,
            find_low_curvature(curvature, options_.energy, where).allowed_OI};
  }

  std::optional<std::vector<WeightId>> modules_;
  TrainingOptions training_;
  CrispOptions options_;
  TargetEnd end_;
};

}  // namespace

std::unique_ptr<Editor> make_crispedit(ConfigSection& editor) {
  TrainingOptions training = read_training(editor, TrainingObjective::kTarget, GradientSpec::kCrispBatch);
  training.order = read<TrainingOrder>(editor, GradientSpec::kOrder);
  training.margin = read_given(editor, GradientSpec::kMargin);
  training.projected = read<Projected>(editor, GradientSpec::kProjected);
  const CrispOptions options{.energy = read(editor, GradientSpec::kEnergy),
                             .neighbours = read(editor, GradientSpec::kNeighbours),
                             .neighbour_weight = read(editor, GradientSpec::kNeighbourWeight)};
  // gate and up projections have no second moments of their inputs
  std::optional<std::vector<WeightId>> modules = parse_modules(editor, ModuleKinds::kDown);
  return std::make_unique<CrispEditor>(std::move(modules), training, options, parse_target_end(editor));
}

}  // namespace lancet
