#include "rope_reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kWholeHeads = "1 or no such key, as this family turns whole heads";

/// The object from which a kind of scaling is read.
struct ScalingKeys {
  ConfigReader& keys;
  const ModelConfig& config;
  const RopeDefaults& defaults;

  int64_t original_positions() const {
    if (defaults.original_max_positions > 0) return defaults.original_max_positions;
    return keys.positive("original_max_position_embeddings", config.max_positions);
  }
};

/// Adds a problem for keys of the object that `type` does not have, because the scaling would probably differ from that
/// of the training.
void refuse_others(const ScalingKeys& from, std::string_view type, std::vector<std::string_view> known) {
  known.insert(known.end(), from.defaults.other_keys.begin(), from.defaults.other_keys.end());
  known.insert(known.end(), {"rope_type", "type", "rope_theta", "partial_rotary_factor"});
  from.keys.refuse_others(known, type);
}

void read_linear(const ScalingKeys& from, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::kLinear;
  rope.factor = from.keys.above_zero("factor");
}

void read_llama3(const ScalingKeys& from, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::kLlama3;
  rope.factor = from.keys.above_zero("factor");
  rope.low_freq_factor = from.keys.above_zero("low_freq_factor");
  rope.high_freq_factor = from.keys.above_zero("high_freq_factor");
  rope.original_max_positions = from.original_positions();
}

void read_longrope(const ScalingKeys& from, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::kLongRope;
  rope.short_factors = from.keys.numbers("short_factor", rope.dim / 2);
  rope.long_factors = from.keys.numbers("long_factor", rope.dim / 2);
  rope.original_max_positions = from.original_positions();
  const double original = static_cast<double>(rope.original_max_positions);
  const double factor = from.keys.above_zero("factor", static_cast<double>(from.config.max_positions) / original);
  rope.amplitude =
      from.keys.number("attention_factor", factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original)));
}

/// Returns the factor by which YaRN increases scores, to compensate for the divided frequencies. `share` (DeepSeek's
/// mscale) weights it.
double yarn_growth(double factor, double share) { return 1 + 0.1 * share * std::log(factor); }

double read_yarn_amplitude(ConfigReader& keys, double factor) {
  const double share = keys.at_least("mscale", 0, 0), divisor = keys.at_least("mscale_all_dim", 0, 0);
  const bool has_shares = share > 0 && divisor > 0;  // one of them alone has no effect
  const double usual = has_shares ? yarn_growth(factor, share) / yarn_growth(factor, divisor) : yarn_growth(factor, 1);
  return keys.above_zero("attention_factor", usual);
}

/// If `factor` is null, it is the quotient of the lengths, as in transformers; if it is absent, this is an error.
void read_yarn(const ScalingKeys& from, RopeConfig& rope) {
  ConfigReader& keys = from.keys;
  rope.scaling = RopeConfig::Scaling::kYarn;
  refuse_others(from, "yarn",
                {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale",
                 "mscale_all_dim", "truncate", "finetuned"});  // the last one has no effect
  rope.original_max_positions = from.original_positions();
  std::optional<double> quotient;
  if (keys.is_null("factor"))
    quotient = static_cast<double>(from.config.max_positions) / static_cast<double>(rope.original_max_positions);
  rope.factor = keys.at_least("factor", 1, quotient);
  rope.fast_turns = keys.above_zero("beta_fast", rope.fast_turns);
  rope.slow_turns = keys.above_zero("beta_slow", rope.slow_turns);
  if (rope.fast_turns < rope.slow_turns && !keys.is_wrong("beta_fast") && !keys.is_wrong("beta_slow"))
    keys.problem("beta_fast", cat("at least beta_slow, ", rope.slow_turns));
  rope.passes_at_whole_pairs = !keys.is_null("truncate") && keys.flag_or_true("truncate");
  rope.amplitude = read_yarn_amplitude(keys, rope.factor);
  if (rope.theta <= 1) keys.problem("rope_theta", cat("a base above 1, here or beside it, for yarn, not ", rope.theta));
}

/// The base only grows for texts beyond max_position_embeddings, and these are refused, so the factor has no effect.
void read_dynamic(const ScalingKeys& from, RopeConfig& rope) {
  constexpr int64_t kLeastTurned = 4;  // the base's exponent is dim / (dim - 2)
  ConfigReader& keys = from.keys;
  rope.scaling = RopeConfig::Scaling::kDynamic;
  refuse_others(from, "dynamic", {"factor", "original_max_position_embeddings"});
  rope.factor = keys.at_least("factor", 1);
  if (from.original_positions() != from.config.max_positions && !keys.is_wrong("original_max_position_embeddings"))
    keys.problem("original_max_position_embeddings",
                 cat("max_position_embeddings, ", from.config.max_positions, ", or no such key"));
  if (rope.dim < kLeastTurned)
    keys.problem("rope_type", cat("another type than dynamic where ", rope.dim, " numbers of each head turn"));
}

struct ScalingType {
  std::string_view name;
  void (*read)(const ScalingKeys& from, RopeConfig& rope);
};
constexpr ScalingType kScalingTypes[] = {{"linear", read_linear}, {"llama3", read_llama3},
                                         {"yarn", read_yarn},     {"longrope", read_longrope},
                                         {"su", read_longrope},   {"dynamic", read_dynamic}};

void read_scaling(const ScalingKeys& from, RopeConfig& rope) {
  const std::string_view key = from.keys.has("rope_type") ? "rope_type" : "type";
  const std::string type = from.keys.text(key, "default");
  if (type == "default") return;
  const auto* found = std::ranges::find(kScalingTypes, type, &ScalingType::name);
  if (found == std::end(kScalingTypes))
    from.keys.problem(key, "default, linear, llama3, longrope, yarn or dynamic");
  else
    found->read(from, rope);
}

}  // namespace

RopeConfig read_rope_object(ConfigReader& object, const ModelConfig& config, const RopeDefaults& defaults) {
  RopeConfig rope;
  rope.dim = config.head_dim;
  rope.theta = object.above_zero("rope_theta", defaults.theta);
  const auto part = [&](double fallback) {
    return static_cast<int64_t>(static_cast<double>(config.head_dim) * object.share("partial_rotary_factor", fallback));
  };
  if (defaults.share) rope.dim = part(*defaults.share);
  read_scaling({object, config, defaults}, rope);
  // transformers' scaled embeddings read this key, and then do not fit a family that rotates whole heads
  if (!defaults.share && rope.scaling != RopeConfig::Scaling::kNone && part(1.0) != config.head_dim)
    object.problem("partial_rotary_factor", kWholeHeads);
  return rope;
}

RopeConfig read_rope_under(ConfigReader& keys, const ModelConfig& config, const RopeDefaults& defaults) {
  const Json* scaling = keys.find("rope_scaling");
  const bool is_old = scaling != nullptr && !scaling->empty();
  std::optional<ConfigReader> object = keys.object(is_old ? "rope_scaling" : "rope_parameters");
  static const Json kNothing = Json::object();
  std::vector<std::string> none;
  ConfigReader empty(kNothing, "", none);
  return read_rope_object(object ? *object : empty, config, defaults);
}

void refuse_share_beside(ConfigReader& keys, const RopeConfig& rope) {
  const Json* part = keys.find("partial_rotary_factor");
  if (rope.scaling != RopeConfig::Scaling::kNone && part != nullptr && *part != 1)
    keys.problem("partial_rotary_factor", kWholeHeads);
}

void refuse_truncate(ConfigReader& object) {
  if (!object.is_wrong("truncate") && (object.is_null("truncate") || !object.flag_or_true("truncate")))
    object.problem("truncate", "true or no such key in this family");
}

void read_rope_by_type(ConfigReader& keys, ConfigReader& parameters, const RopeDefaults& full,
                       const RopeDefaults& window, ModelConfig& config) {
  refuse_truncate(parameters);
  if (keys.has("rope_scaling")) keys.problem("rope_scaling", "no such key beside rope_parameters");
  std::optional<ConfigReader> of_full = parameters.object("full_attention");
  std::optional<ConfigReader> of_window = parameters.object("sliding_attention");
  if (!of_full || !of_window) {
    keys.problem("rope_parameters", "an object for full_attention and one for sliding_attention");
    return;
  }
  config.rope = read_rope_object(*of_full, config, full);
  config.window_rope = read_rope_object(*of_window, config, window);
  for (ConfigReader* object : {&*of_full, &*of_window}) refuse_truncate(*object);
  refuse_share_beside(keys, config.rope);
  if (!keys.is_wrong("partial_rotary_factor")) refuse_share_beside(keys, *config.window_rope);
}

RopeConfig read_rope(ConfigReader& keys, const ModelConfig& config, RopeDefaults defaults) {
  defaults.theta = keys.above_zero("rope_theta", defaults.theta);
  RopeConfig rope = read_rope_under(keys, config, defaults);
  if (!defaults.share) refuse_share_beside(keys, rope);
  return rope;
}

}  // namespace lancet
