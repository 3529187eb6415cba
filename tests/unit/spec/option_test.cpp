// Declarations: that they are whole, and that reading by them does what they say.
#include "lancet/spec/option.h"

#include <set>

#include "lancet/core/strings.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/read_option.h"
#include "support/core_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// What a reader gives for a section with this text; a problem is its message.
template <typename Read>
std::string outcome(std::string_view text, const Read& read_one) {
  const ConfigTree tree = parsed(text);
  ConfigProblems problems("job.yaml");
  ConfigSection section(tree, "", problems);
  read_one(section);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return dump(section.resolved());
}

TEST(Option, SaysWhatItMeans) {
  for (const PlacedOption& placed : placed_options(JobSpec::kAll, "")) {
    const Option& option = base_of(placed.option);
    EXPECT_FALSE(option.key.empty());
    EXPECT_FALSE(option.meaning.empty()) << placed.key;
    EXPECT_FALSE(option.meaning.ends_with('.')) << placed.key;
    EXPECT_EQ(option.meaning.find('|'), std::string_view::npos) << placed.key << ": ends a cell of a table";
  }
}

TEST(Option, StandsOnceInItsSectionForEachMethod) {
  for (const char* method : {"memit", "rome", "r-rome", "emmet", "alphaedit", "pmet", "nse", "evoedit", "betaedit",
                             "ultraedit", "stableedit", "ft", "ft-l", "ft-m", "zerounlearn", "crispedit"}) {
    std::set<std::string> keys;
    for (const PlacedOption& placed : placed_options(JobSpec::kAll, method))
      EXPECT_TRUE(keys.insert(placed.key).second) << method << ": " << placed.key;
  }
}

TEST(Option, HasADefaultWithinItsRange) {
  for (const PlacedOption& placed : placed_options(JobSpec::kAll, "")) {
    if (const auto* number = std::get_if<const NumberOption*>(&placed.option); number && (*number)->fallback) {
      EXPECT_GE(*(*number)->fallback, (*number)->range.min) << placed.key;
      EXPECT_LE(*(*number)->fallback, (*number)->range.max) << placed.key;
    }
    if (const auto* integer = std::get_if<const IntegerOption*>(&placed.option); integer && (*integer)->fallback) {
      EXPECT_GE(*(*integer)->fallback, (*integer)->range.min) << placed.key;
      EXPECT_LE(*(*integer)->fallback, (*integer)->range.max) << placed.key;
    }
  }
}

TEST(Option, OfASectionNamesOthersOfIt) {
  for (const PlacedOption& placed : placed_options(JobSpec::kAll, "")) {
    const auto* section = std::get_if<const SectionOption*>(&placed.option);
    if (section == nullptr) continue;
    std::set<std::string, std::less<>> keys;
    for (const AnyOption& option : (*section)->keys) keys.emplace(base_of(option).key);
    for (const AnyOption& option : (*section)->keys) {
      const Option& base = base_of(option);
      EXPECT_TRUE(base.beside.empty() || keys.contains(base.beside)) << placed.key << "." << base.key;
      for (const std::string& other : split(base.replaces, ' '))
        EXPECT_TRUE(other.empty() || keys.contains(other)) << placed.key << "." << base.key << ": " << other;
    }
  }
}

TEST(ReadOption, TakesKeyRangeAndDefaultFromTheDeclaration) {
  const auto length = [](ConfigSection& section) { read(section, ContextsSpec::kLength); };
  EXPECT_EQ(outcome("{}", length), "{length=<10>}");
  EXPECT_EQ(outcome("length: 3", length), "{length=<3>}");
  EXPECT_EQ(outcome("length: 0", length), "job.yaml:1: length: expected an integer from 3 to 1000, got 0");
  const auto steps = [](ConfigSection& section) { read_or_auto(section, ValuesSpec::kSteps); };
  EXPECT_EQ(outcome("{}", steps), "{steps='auto'}");
  EXPECT_EQ(outcome("steps: auto", steps), "{steps='auto'}");
  EXPECT_EQ(outcome("steps: 0", steps), "job.yaml:1: steps: expected auto or an integer of at least 1, got 0");
  const auto lr = [](ConfigSection& section) { read(section, ValuesSpec::kLr); };
  EXPECT_EQ(outcome("{}", lr), "{lr=<0.5>}");
  EXPECT_NE(outcome("lr: 0", lr).find("expected a number"), std::string::npos);
  const auto order = [](ConfigSection& section) { EXPECT_EQ(read_index(section, ScheduleSpec::kOrder), 1u); };
  EXPECT_EQ(outcome("order: shuffled", order), "{order='shuffled'}");
  const auto limit = [](ConfigSection& section) { read_given(section, RequestsSpec::kLimit); };
  EXPECT_EQ(outcome("{}", limit), "{}");
  EXPECT_EQ(outcome("limit: 2", limit), "{limit=<2>}");
  const auto weight = [](ConfigSection& section) { read_or_auto(section, LayeredSpec::kCovarianceWeight); };
  EXPECT_EQ(outcome("{}", weight), "{covariance_weight='auto'}");
  EXPECT_EQ(outcome("covariance_weight: 20", weight), "{covariance_weight=<20>}");
}

TEST(ReadOption, RefusesWhatAnotherReplaces) {
  const auto import = [](ConfigSection& section) { refuse_replaced(section, StatisticsSpec::kImport, "so it is"); };
  EXPECT_EQ(outcome("{import: x, tokens: 3}", import),
            "job.yaml:1: tokens: has no meaning beside import, so it is: remove one of them");
  EXPECT_EQ(outcome("{import: x, tokens: null}", import), "{}");
}

TEST(TriedOptions, ComeInTheOrderThatSeedsDrawBy) {
  const auto tried = [](std::string_view method) {
    std::vector<std::string> keys;
    for (const PlacedOption& placed : placed_options(kEditorOptions, method))
      if (const auto* number = std::get_if<const NumberOption*>(&placed.option); number && !(*number)->tried.empty())
        keys.push_back(placed.key);
    return join(keys, " ");
  };
  EXPECT_EQ(tried("memit"), "values.lr values.clamp covariance_weight");
  EXPECT_EQ(tried("emmet"), "values.lr values.clamp covariance_weight slack");
  EXPECT_EQ(tried("alphaedit"), "values.lr values.clamp null_space_below ridge");
  EXPECT_EQ(tried("rome"), "values.lr values.clamp");
  EXPECT_EQ(tried("ultraedit"), "lr");
  EXPECT_EQ(tried("ft"), "lr");
  EXPECT_EQ(tried("ft-l"), "lr norm_constraint");
}

TEST(StateOptions, AreThoseThatContinueFromCompares) {
  std::set<std::string_view> state, chosen;
  for (const AnyOption& option : kEditorOptions) {
    if (base_of(option).affects == Affects::kState) state.insert(base_of(option).key);
    if (base_of(option).affects == Affects::kChosenState) chosen.insert(base_of(option).key);
  }
  EXPECT_EQ(state, (std::set<std::string_view>{"blue", "entities", "error_feedback", "history", "layers", "modules",
                                               "norm_anchor", "repair", "revisit", "text_budget"}));
  EXPECT_EQ(chosen, (std::set<std::string_view>{"covariance_weight", "ridge"}));
}

}  // namespace
}  // namespace lancet
