// The options of locate-then-edit methods: those that a job chooses, and those that each method sets itself.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/deltas/weight_update.h"
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/automatic_options.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/spec/layered_spec.h"

namespace lancet {

// How to handle requests whose texts are equal up to the end of the subject: they share one key but ask for different
// values.

enum class EqualKeys {
  kWarn,  ///< only warns: the solve compromises between them
  kMean,  ///< gives the key one target, the mean of theirs
  kSplit  ///< edits one after another, each on the weights that the previous ones edited
};

/// The indices of the requests that share each key.
using KeyGroups = std::vector<std::vector<int64_t>>;

/// Parses `equal_keys` of an editor.
EqualKeys parse_equal_keys(ConfigSection& editor);

/// Groups requests by the tokens up to the lookup token of the plain prompt. Groups and members are in request order.
KeyGroups group_by_key(std::span<const PreparedRequest> requests);

/// Returns the rounds of editing. The groups of one round are edited together, one round after another.
std::vector<KeyGroups> plan_rounds(const KeyGroups& groups, EqualKeys handling);

/// Turns the change of keys [O, G] [G, I] into a change of requests: each key's change is divided equally among the
/// requests that share it. Requests without a key get zeros.
LowRankDelta by_request(const LowRankDelta& delta, const KeyGroups& groups, int64_t n_requests);

/// Returns the groups of more than one request.
KeyGroups shared_keys(const KeyGroups& groups);
/// Returns how requests with one key are handled, as text for SharedKeys::effect.
std::string equal_keys_effect(EqualKeys handling);

/// Returns groups of columns whose keys have a cosine above 0.99 with another key: each changes the others' values.
KeyGroups near_keys(const Tensor& keys_FN);
std::string near_keys_effect();

// Keeps values at the norm that they have on the unedited model. Otherwise, in long streams of edits, values and
// weights grow by turns. Source: norm-anchor scaling (arXiv 2602.02543).

struct NormAnchor {
  enum class Mode {
    kOff,
    kRescale,  ///< every value gets the anchor's norm, but values above the limit are left out
    kSkip      ///< values above the limit are left out, the others are unchanged
  };
  Mode mode = Mode::kOff;
  double limit = *NormAnchorSpec::kLimit.fallback;  ///< as a multiple of the anchor's norm
};

/// Parses `norm_anchor: {mode, limit}` of an editor.
NormAnchor parse_norm_anchor(ConfigSection& editor);

/// Returns the norm of each row of `z_ND`, f64.
Tensor value_norms(const Tensor& z_ND);

/// Makes the mean of `norm_N` (value_norms(), on the host) the anchor of values at `layer`, if the state has none yet.
void keep_anchor(EditorState& state, int64_t layer, const Tensor& norm_N);
bool has_anchor(const EditorState& state, int64_t layer);
double anchor_norm(const EditorState& state, int64_t layer);

/// Rescales `z_ND` in place as the mode says. `norm_N` are the norms of its rows and `norm` is the anchor's. Returns
/// for each row why it is left out; empty: it is not.
std::vector<std::string> apply_anchor(const NormAnchor& anchor, double norm, const Tensor& norm_N, Tensor& z_ND);

/// The share of the remaining residual that a layer takes if n layers remain.
enum class Spread {
  kEven,  ///< 1 / n (MEMIT)
  kRoot   ///< 1 / sqrt(n) (PMET)
};

/// The target of each layer.
enum class LayerTarget {
  kLast,  ///< its share of the value found at the last layer's output
  /// Its own value, taken whole: the value is found at the first layer, and a forward pass over the plain prompt with
  /// this value gives the values of the other layers (FE, github.com/jugechengzi/FE).
  kReplay
};

/// The order in which values are found and applied.
enum class EditOrder {
  kTogether,      ///< all requests, once, at the last layer; then every layer takes its share
  kLayerByLayer,  ///< all requests, at each layer on the weights edited so far; it takes the whole residual (BLUE)
  kOneByOne       ///< one request after another, each at its layer, which takes the whole residual (ROME)
};

/// Selects the requests that a pass over the layers takes: those with ||z* - h|| between the two bounds, where h is the
/// current state. nullopt: chosen at a stream's first batch, as a multiple of its median ||z* - h||.
struct ResidualBounds {
  std::optional<double> above = -1;
  std::optional<double> below = std::numeric_limits<double>::infinity();

  bool take_all() const { return above && *above < 0 && below && std::isinf(*below); }
};

struct LayeredOptions {
  std::optional<std::vector<int64_t>> layers;  ///< ascending; nullopt: chosen by the model's depth
  TargetRule target_rule;
  ValueOptions values;
  ContextOptions contexts;
  double entity_weight = 0;  ///< EditorNeeds::entity_weight
  EqualKeys equal_keys = EqualKeys::kWarn;
  NormAnchor norm_anchor;
  LayerTarget targets = LayerTarget::kLast;
  // set by the method
  Spread spread = Spread::kEven;
  EditOrder order = EditOrder::kTogether;
  ContextMean key_mean = ContextMean::kGrouped;
  ContextMean output_mean = ContextMean::kPlain;  ///< mean of the states that the residual is taken from
  std::optional<ContextMean> direction_mean;      ///< mean for LayerProblem::directions_FN
  bool keeps_history = false;                     ///< keeps the keys of earlier batches, measured after their edits
  bool keeps_solved_keys = false;                 ///< keeps the keys of earlier batches, as they were when solved
  bool error_feedback = false;                    ///< the next change makes up for what a filter removed
  std::optional<double> text_budget;              ///< the share of a text budget: every change is solved within it
  bool values_on_unedited = false;                ///< finds values on the weights from before the first batch
  int64_t passes = 1;  ///< most passes over the layers; more than one only with EditOrder::kTogether
  ResidualBounds residuals;
  SolveWeight weight;
};

/// Parses `layers`, `values`, `contexts`, `entities`, `compat`, `equal_keys`, `norm_anchor`, with a method's own
/// defaults. If the method's order is kTogether, also parses `targets`, unless its spread is kRoot, and `blue`, if its
/// values are found on the weights edited so far.
LayeredOptions parse_layered_options(ConfigSection& editor, LayeredOptions defaults);

/// Parses `layers`; nullopt: auto.
std::optional<std::vector<int64_t>> parse_layers(ConfigSection& editor);

/// Parses `text_budget`; nullopt: none. Adds a problem if it is given beside an option that changes weights after their
/// solve.
std::optional<double> parse_text_budget(ConfigSection& editor);

/// Returns the layers to change, ascending. Throws: ConfigError if they do not fit the model.
std::vector<int64_t> layers_of(const LayeredOptions& options, const ModelConfig& config);

/// Returns the parts of those layers; the values of each part are found together.
std::vector<std::span<const int64_t>> stages_of(const LayeredOptions& options, std::span<const int64_t> layers);

/// Returns the layer of a stage at whose output its values are found.
int64_t value_layer_of(const LayeredOptions& options, std::span<const int64_t> stage);

}  // namespace lancet
