// Whether a text that a model wrote is an answer that was asked for.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lancet {

/// ASCII letters in lower case, without ASCII punctuation and the articles a, an, the; one space between words. Source:
/// the SQuAD evaluation's normalisation (arXiv 1606.05250).
std::string normalized_answer(std::string_view text);

/// What is written up to the first line break or full stop ('.', '!' or '?' before white space or the end).
std::string_view first_statement(std::string_view text);

/// The first statement is one of the answers, both normalised.
bool is_exactly(std::string_view text, std::span<const std::string> answers);

/// The text is one of the answers, both normalised.
bool is_wholly(std::string_view text, std::span<const std::string> answers);

/// The text's first words are those of one of the answers, all normalised, whatever it goes on with.
bool begins_with(std::string_view text, std::span<const std::string> answers);

/// One of the answers stands in the text as whole words, all normalised.
bool contains(std::string_view text, std::span<const std::string> answers);

}  // namespace lancet
