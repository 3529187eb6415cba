// The parts that pages are put together from: figures as text, the frame of a page, sections.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "document.h"
#include "lancet/core/words.h"
#include "svg.h"

namespace lancet::page {

/// A text of unknown language and direction.
std::string isolated(std::string_view text, std::string_view css_class = "");

/// "98.0 %", "12.3 nats"; "n/a" without a value.
std::string value_text(const std::optional<double>& value, const MetricFigures& metric);
/// The number alone.
std::string bare_value(const std::optional<double>& value, const MetricFigures& metric);
/// "95.2 – 99.4".
std::string interval_text(const Interval& interval, const MetricFigures& metric);
/// "1.4 s", "3 min 12 s", "2 h 5 min".
std::string seconds_text(double seconds);

/// A <dt> and a <dd>, the latter as HTML; nothing for an empty one.
std::string fact(std::string_view name, const std::string& html);

struct Section {
  std::string id = {}, title = {};
  std::string lead = {};  ///< HTML; empty: none
  std::string body = {};  ///< HTML
};

struct Page {
  std::string title = {};   ///< title of the window
  std::string header = {};  ///< HTML
  std::vector<Section> sections = {};
  std::string data = {};  ///< HTML after the sections
};
/// One file that needs nothing else.
std::string page_html(const Page& page);

/// Figures of a grid of plots; `captions`: HTML below each, by place.
std::string figures(const std::vector<std::pair<std::string, std::string>>& plots_and_captions);

}  // namespace lancet::page
