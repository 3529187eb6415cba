// Checks whether a text that a model wrote is one of the expected answers.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lancet {

/// Normalises an answer: lower-case ASCII letters, no ASCII punctuation, no articles (a, an, the), one space between
/// words. Source: the normalisation of the SQuAD evaluation (arXiv 1606.05250).
std::string normalized_answer(std::string_view text);

/// Returns the text up to the first line break or the end of the first sentence ('.', '!' or '?' before white space or
/// the end).
std::string_view first_statement(std::string_view text);

/// Whether the first statement is one of the answers, both normalised.
bool is_exactly(std::string_view text, std::span<const std::string> answers);

/// Whether the text is one of the answers, both normalised.
bool is_wholly(std::string_view text, std::span<const std::string> answers);

/// Whether the text's first words are those of one of the answers, all normalised, whatever text follows.
bool begins_with(std::string_view text, std::span<const std::string> answers);

/// Whether the text contains one of the answers as whole words, all normalised.
bool contains(std::string_view text, std::span<const std::string> answers);

}  // namespace lancet
