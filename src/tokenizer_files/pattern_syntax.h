// The regular expressions of a tokenizer.json are written for Oniguruma; lancet runs PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// Returns `pattern` in a form with which PCRE2 (flags UTF and UCP) matches what Oniguruma matches. It accepts only the
/// part of the syntax in which the two agree, or can be made to agree: literals, . ^ $ \A \z \b, \r \n \t \f, \x41
/// \x{1F600} \u00E9, \s \w \d and their opposites, general categories and some scripts (\p{L}, \P{Lu}, \p{Han}),
/// classes of these that may contain classes and intersections ([a-z&&[^m]]), groups, (?:...), (?>...), (?i:letters and
/// lists of them), look-ahead, look-behind, alternatives, \1, ? * + {m,n}. Throws: TokenizerError "where: ..." that
/// names what is not supported and its byte position.
std::string to_pcre2(std::string_view pattern, std::string_view where);

}  // namespace lancet
