// Words of English text, as the published fluency metrics count them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Agrees with nltk.word_tokenize (nltk 3.10: sentences, then Penn Treebank words) on plain text: punctuation, quotes
/// and clitics are words; a full stop is a word only at the end of a sentence. Double quotes become `` and ''. Differs
/// in sentences: nltk uses a trained model to recognise abbreviations, lancet uses a short list.
std::vector<std::string> word_tokens(std::string_view text);

}  // namespace lancet
