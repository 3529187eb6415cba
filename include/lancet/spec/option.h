// One option of a job file, declared once: key, type, default, range, unit, meaning, and what hangs on it. Declarations
// are data, grouped by section in the files *_spec.h beside this one. What reads a job, `lancet schema`,
// docs/options.md, completion, `lancet tune` and continue_from all take them from there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/core/strings.h"

namespace lancet {

/// What hangs on an option.
enum class Affects {
  kResults,
  kState,        ///< results, and what a stream's state is made of: continue_from refuses another value
  kChosenState,  ///< results, and where it is no number what a state keeps: continue_from refuses another rule
  kWork          ///< how work is run, shown or kept: results stay, but for rounding
};

/// What every option has. One without a default, an `automatic` and an `absent` is required.
struct Option {
  std::string_view key;           ///< name within its section
  std::string_view meaning;       ///< Markdown, without a full stop
  std::string_view methods = {};  ///< methods that have an editor's option: "memit emmet"; empty: all
  Affects affects = Affects::kResults;
  std::string_view unit = {};
  std::string_view absent = {};    ///< what counts where it is absent and no value stands for that: "all records"
  std::string_view replaces = {};  ///< keys of its section that have no meaning beside it
  std::string_view beside = {};    ///< the key of its section without which it has none
};

/// Range of every share that takes a number's place.
inline constexpr ConfigRange<double> kShareRange{.min = 1e-6, .max = 1 - 1e-6};

/// Names that tables elsewhere in the program list.
enum class Vocabulary { kFree, kMethods, kProtocols, kMetrics, kFormats };

struct IntegerOption : Option {
  ConfigRange<int64_t> range = {};
  std::optional<int64_t> fallback = {};
  std::string_view automatic = {};  ///< what `auto` stands for, which is then the default; empty: may not be auto
};

struct NumberOption : Option {
  ConfigRange<double> range = {};
  std::optional<double> fallback = {};
  std::span<const double> tried = {};  ///< multiples of the job's own value that a tune tries
  std::string_view automatic = {};     ///< like IntegerOption's
  std::string_view share_key = {};     ///< {share_key: A} may take the number's place; auto is that with `share`
  double share = 0;
};

struct FlagOption : Option {
  bool fallback = false;
};

/// The first name is the default; enumerators are in this order.
struct ChoiceOption : Option {
  std::span<const std::string_view> names;
};

struct TextOption : Option {
  std::optional<std::string_view> fallback = {};
  Vocabulary of = Vocabulary::kFree;
};

struct PathOption : Option {
  std::string_view fallback = {};  ///< documented default; the reader has it
  std::string_view pattern = {};   ///< a regular expression that the path has a place of
};

struct IntegersOption : Option {
  ConfigRange<int64_t> range = {};
  std::string_view automatic = {};  ///< like IntegerOption's; empty: the default is an empty list
};

struct TextsOption : Option {
  std::span<const std::string_view> fallback = {};
  Vocabulary of = Vocabulary::kFree;
  std::string_view alone = {};  ///< a single text may take the list's place, and this one is the default
};

struct SectionOption;

using AnyOption =
    std::variant<const IntegerOption*, const NumberOption*, const FlagOption*, const ChoiceOption*, const TextOption*,
                 const PathOption*, const IntegersOption*, const TextsOption*, const SectionOption*>;

/// What may stand in a section besides, or in the place of, its keys.
enum class Shape {
  kKeys,            ///< nothing
  kKeysOrAuto,      ///< the word auto
  kKeysOrTexts,     ///< a list of texts
  kKeysOrTasks,     ///< a list of names of tasks
  kKeysOrNames,     ///< a list of names of protocols
  kKeysOrRecords,   ///< a list of records
  kShares,          ///< no keys: metrics with shares
  kLabelledShares,  ///< no keys: labels with metrics with shares
  kLists,           ///< no keys: keys of an editor with lists of values
  kEditors          ///< no keys: labels with editors
};

struct SectionOption : Option {
  std::span<const AnyOption> keys = {};
  Shape shape = Shape::kKeys;
  std::string_view automatic = {};  ///< kKeysOrAuto
};

/// The options of several arrays, one after the other.
template <size_t... N>
constexpr std::array<AnyOption, (N + ...)> joined(const AnyOption (&... arrays)[N]) {
  std::array<AnyOption, (N + ...)> all{};
  size_t at = 0;
  const auto add = [&](std::span<const AnyOption> options) {
    for (const AnyOption& option : options) all[at++] = option;
  };
  (add(arrays), ...);
  return all;
}

const Option& base_of(const AnyOption& option);
bool is_required(const AnyOption& option);

/// Whether an editor's option is one of `method`.
bool has_option(const Option& option, std::string_view method);

/// An option with the dotted key of its place: "values.lr".
struct PlacedOption {
  std::string key;
  AnyOption option;
};

/// Options of `method`, or of all methods where it is empty; those of sections after their section.
std::vector<PlacedOption> placed_options(std::span<const AnyOption> keys, std::string_view method);

// An option in words.

/// "`warn`, `mean`": names of any type of text.
template <typename Names>
std::string quoted_names(const Names& names) {
  std::vector<std::string> quoted;
  for (const auto& name : names) quoted.push_back(cat("`", name, "`"));
  return join(quoted);
}

/// Returns the default as it is written in a job: "25", "auto", "[]"; empty: none.
std::string default_text(const AnyOption& option);

/// "integer of at least 1", "`auto` or a list of integers", "integer of at least 2, in tokens".
std::string type_text(const AnyOption& option);

/// Its names, in order; empty: it is no choice.
std::vector<std::string> choices_of(const AnyOption& option);

/// What its type takes of all integers or numbers: " of at least 1"; empty: all of them, or it takes none.
std::string range_text(const AnyOption& option);

/// The meaning, and what auto stands for.
std::string description_of(const AnyOption& option);

}  // namespace lancet
