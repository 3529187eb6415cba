// Plots: where marks lie, against the picture's own ticks; what is escaped; what is left out.
#include "lancet/pages/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "lancet/core/error.h"
#include "support/count_parts.h"

namespace lancet {
namespace {

using testing::count;

/// Numbers of an attribute, in order.
std::vector<double> numbers_in(const std::string& text, const std::string& pattern) {
  std::vector<double> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back(std::stod((*at)[1]));
  return found;
}

TEST(Plot, PutsValuesBetweenTheTicksOfItsAxis) {
  const PlotFrame frame{.title = "t", .y = {.low = 0, .high = 10}};
  const std::vector<PlotSeries> series{{.name = "a", .x = {0, 1, 2}, .y = {0, 5, 10}}};
  const std::string svg = line_plot(frame, series);
  const std::vector<double> y = numbers_in(svg, "<circle[^>]* cy=\"([0-9.]+)\"");
  const std::vector<double> grid = numbers_in(svg, "<line class=\"p-grid\"[^>]* y1=\"([0-9.]+)\"");
  ASSERT_EQ(y.size(), 3u);
  EXPECT_DOUBLE_EQ(y[0], grid.front());
  EXPECT_DOUBLE_EQ(y[2], grid.back());
  EXPECT_NEAR(y[1], (y[0] + y[2]) / 2, 0.1);
  for (const char* tick : {">0<", ">2<", ">10<"}) EXPECT_NE(svg.find(tick), std::string::npos) << tick;
}

TEST(Plot, ShowsSharesAsPercent) {
  const PlotFrame shares{.title = "t", .y = {.numbers = AxisNumbers::kPercent, .low = 0, .high = 1}};
  const std::vector<PlotSeries> series{{.name = "a", .x = {1, 2, 3}, .y = {0.01, 0.1, 1}}};
  EXPECT_NE(line_plot(shares, series).find(">100<"), std::string::npos);
}

TEST(Plot, LeavesGapsAndSurvivesNothingAtAll) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<PlotSeries> gap{{.name = "a", .x = {1, 2, 3, 4}, .y = {1, none, 3, 4}}};
  const std::string svg = line_plot({.title = "t"}, gap);
  EXPECT_EQ(count(svg, "<circle"), 3u);
  EXPECT_EQ(count(svg, "M"), 2u) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  for (const std::string& empty :
       {line_plot({.title = "t"}, {}), line_plot({.title = "t"}, std::vector{PlotSeries{}})}) {
    EXPECT_NE(empty.find("</svg>"), std::string::npos);
    EXPECT_EQ(empty.find("nan"), std::string::npos);
  }
}

TEST(Plot, EscapesNamesAndNamesItselfForScreenReaders) {
  const std::vector<PlotSeries> series{{.name = "<b>&\"x\"", .x = {0, 1}, .y = {0.5, 0.5}}};
  const std::string svg = line_plot({.title = "A < B"}, series);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;b&gt;&amp;&quot;x&quot;"), std::string::npos);
  EXPECT_NE(svg.find("role=\"img\""), std::string::npos);
  EXPECT_NE(svg.find("<title>A &lt; B</title>"), std::string::npos);
}

TEST(Plot, HeatMapIsStrongestWhereTheValueIs) {
  const HeatMap map{.title = "t", .rows = {"The", "<s>"}, .columns = {"0", "1", "2"}, .values = {1, 2, -4, 0, 4, 1}};
  const std::string svg = heat_map(map);
  EXPECT_EQ(numbers_in(svg, "fill-opacity=\"([0-9.]+)\""), (std::vector<double>{0.25, 0.5, 1, 0, 1, 0.25}));
  EXPECT_EQ(count(svg, "p-cell c2"), 1u) << "negative values have a colour of their own";
  EXPECT_NE(svg.find("&lt;s&gt;, 1: 4"), std::string::npos);
  HeatMap wrong = map;
  wrong.values.pop_back();
  EXPECT_THROW(heat_map(wrong), ConfigError);
}

TEST(Plot, AFileOfItsOwnHasItsColours) {
  const std::string svg = line_plot({.title = "t"}, {});
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(svg.find("<svg "), 0u);
  EXPECT_LT(svg.find("<style>"), svg.find("<title>"));
}

}  // namespace
}  // namespace lancet
