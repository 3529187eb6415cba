// The regular expressions of a tokenizer.json are written for Oniguruma; lancet runs PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// `pattern` in the spelling of PCRE2 (flags UTF and UCP) with which it matches what Oniguruma matches. Only the part
/// of the syntax in which the two agree, or can be made to: literals, \r \n \t, \s \S, general categories (\p{L},
/// \P{Lu}), classes of these, groups, (?:...), (?i:letters and lists of them), look-ahead, alternatives, ? * + {m,n}.
/// Throws: TokenizerError "where: ..." that names what is not supported and its byte position.
std::string to_pcre2(std::string_view pattern, std::string_view where);

}  // namespace lancet
