// A page: one file with the documents as data, and the styles and the script that make it of them.
#pragma once

#include <string>
#include <string_view>

#include "document.h"

namespace lancet::page {

/// The JSON on one line, of which nothing can end or open an element of HTML. Invalid UTF-8 becomes U+FFFD, and a whole
/// number that JavaScript would round becomes a text.
std::string json_in_html(Json json);

/// Writes the page. `documents`: what `assets/main.js` reads. `beside`: the files that say the same without a script.
std::string page_html(std::string_view title, Json documents, std::string_view beside);

}  // namespace lancet::page
