// A page: one file with the documents as data, and the styles and the script that make it of them.
#pragma once

#include <string>
#include <string_view>

#include "document.h"

namespace lancet::page {

/// The JSON on one line, of which nothing can end or open an element of HTML. Invalid UTF-8 becomes U+FFFD, and a whole
/// number that JavaScript would round becomes a text.
std::string json_in_html(Json json);

/// A document up to its title. `policy`: what it may load or run, beside nothing.
std::string html_head(std::string_view title, std::string_view policy);
/// Says what the page was made of.
std::string html_footer(std::string_view source);

/// Writes the page. `documents`: what `assets/main.js` reads. `beside`: the files that say the same without a script.
std::string page_html(std::string_view title, Json documents, std::string_view beside);

}  // namespace lancet::page
