// What locate-then-edit methods let a job choose, and what each of them sets itself.
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

// Requests whose texts are equal up to the end of the subject share one key and pull it to different values: what is
// done about them.

enum class EqualKeys {
  kWarn,  ///< nothing: the solve compromises between them
  kMean,  ///< one key with one target, the mean of theirs
  kSplit  ///< one after another, each on the weights as edited by those before
};

/// Indices of the requests that share each key.
using KeyGroups = std::vector<std::vector<int64_t>>;

/// `equal_keys` of an editor.
EqualKeys parse_equal_keys(ConfigSection& editor);

/// Groups by the tokens up to the lookup token of the plain prompt; groups and members in the order of the requests.
KeyGroups group_by_key(std::span<const PreparedRequest> requests);

/// What is edited together, one element after another.
std::vector<KeyGroups> plan_rounds(const KeyGroups& groups, EqualKeys handling);

/// The change of keys [O, G] [G, I] as one of requests: each key's in equal parts to the requests that share it,
/// nothing to those that share none.
LowRankDelta by_request(const LowRankDelta& delta, const KeyGroups& groups, int64_t n_requests);

/// The groups of more than one request.
KeyGroups shared_keys(const KeyGroups& groups);
/// What is done about requests of one key, as SharedKeys::effect says it.
std::string equal_keys_effect(EqualKeys handling);

/// Keys of a cosine above 0.99 with another one, as groups of their columns: each pulls the others to its own value.
KeyGroups near_keys(const Tensor& keys_FN);
std::string near_keys_effect();

// Values kept at the norm that they have on the unedited model: stops long streams of edits from driving values and
// weights up in turn. Source: norm-anchor scaling (arXiv 2602.02543).

struct NormAnchor {
  enum class Mode {
    kOff,
    kRescale,  ///< every value gets the anchor's norm, but for those above the limit, which are left out
    kSkip      ///< values above the limit are left out, the others stay as they are
  };
  Mode mode = Mode::kOff;
  double limit = *NormAnchorSpec::kLimit.fallback;  ///< times the anchor
};

/// `norm_anchor: {mode, limit}` of an editor.
NormAnchor parse_norm_anchor(ConfigSection& editor);

/// The norm of each row of `z_ND`, f64.
Tensor value_norms(const Tensor& z_ND);

/// The mean of `norm_N` (value_norms(), on the host) becomes the anchor of values at `layer`, unless the state has one.
void keep_anchor(EditorState& state, int64_t layer, const Tensor& norm_N);
bool has_anchor(const EditorState& state, int64_t layer);
double anchor_norm(const EditorState& state, int64_t layer);

/// Rescales `z_ND`, whose norms are `norm_N`, in place as the mode says: `norm` is the anchor's. Returns for each row
/// why it is left out, or nothing.
std::vector<std::string> apply_anchor(const NormAnchor& anchor, double norm, const Tensor& norm_N, Tensor& z_ND);

/// How much of the residual that is left one of n remaining layers takes.
enum class Spread {
  kEven,  ///< 1 / n (MEMIT)
  kRoot   ///< 1 / sqrt(n) (PMET)
};

/// What each of the layers is brought towards.
enum class LayerTarget {
  kLast,   ///< its share of the value that is found at the last layer's output
  kReplay  ///< the whole of its own value: one is found at the first layer, and a forward pass over the plain prompt
           ///< with it in its place gives the others (FE, github.com/jugechengzi/FE)
};

/// What the values are found for and applied to.
enum class EditOrder {
  kTogether,      ///< all requests, once, at the last layer; every layer then takes its share
  kLayerByLayer,  ///< all requests, at each layer, on the weights as edited so far; it takes the whole residual (BLUE)
  kOneByOne       ///< one request after another, each likewise (ROME)
};

/// Which requests a pass over the layers takes: those with ||z* - h|| between the two, h being what is there by now.
/// nullopt: chosen at a stream's first batch, as a multiple of its median ||z* - h||.
struct ResidualBounds {
  std::optional<double> above = -1;
  std::optional<double> below = std::numeric_limits<double>::infinity();

  bool take_all() const { return above && *above < 0 && below && std::isinf(*below); }
};

struct LayeredOptions {
  std::optional<std::vector<int64_t>> layers;  ///< ascending; nullopt: by the model's depth
  TargetRule target_rule;
  ValueOptions values;
  ContextOptions contexts;
  EqualKeys equal_keys = EqualKeys::kWarn;
  NormAnchor norm_anchor;
  LayerTarget targets = LayerTarget::kLast;
  // the method's own
  Spread spread = Spread::kEven;
  EditOrder order = EditOrder::kTogether;
  ContextMean key_mean = ContextMean::kGrouped;
  ContextMean output_mean = ContextMean::kPlain;  ///< mean of what the residual is taken from
  std::optional<ContextMean> direction_mean;      ///< mean for LayerProblem::directions_FN
  bool keeps_history = false;                     ///< keys of earlier batches, measured after them
  bool keeps_solved_keys = false;                 ///< keys of earlier batches, as they were solved for
  bool error_feedback = false;                    ///< what a filter took off is made up for by the next change
  std::optional<double> text_budget;              ///< TextBudget's share: every change is solved under it
  bool values_on_unedited = false;                ///< values are found on the weights from before the first batch
  int64_t passes = 1;                             ///< passes over the layers, at most; EditOrder::kTogether alone
  ResidualBounds residuals;
  SolveWeight weight;
};

/// `layers`, `values`, `contexts`, `compat`, `equal_keys`, `norm_anchor`, over a method's own defaults; where its
/// order is kTogether also `targets`, but for Spread::kRoot, and `blue` where its values are found on the weights as
/// edited so far.
LayeredOptions parse_layered_options(ConfigSection& editor, LayeredOptions defaults);

/// `layers`; nullopt: auto.
std::optional<std::vector<int64_t>> parse_layers(ConfigSection& editor);

/// `text_budget`; nullopt: none. It is refused beside what changes weights after their solves.
std::optional<double> parse_text_budget(ConfigSection& editor);

/// The layers that are changed, ascending. Throws: ConfigError when they do not fit the model.
std::vector<int64_t> layers_of(const LayeredOptions& options, const ModelConfig& config);

/// The parts of those layers whose values are found together.
std::vector<std::span<const int64_t>> stages_of(const LayeredOptions& options, std::span<const int64_t> layers);

/// The layer of a stage at whose output its values are found.
int64_t value_layer_of(const LayeredOptions& options, std::span<const int64_t> stage);

}  // namespace lancet
