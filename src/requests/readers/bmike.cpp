// BMIKE-53's MzsRE, MCounterFact and WikiFactDiff: a record is one fact in two languages, {"en": {...}, "de": {...}},
// each with subject, prompt (`src`), new answer (`alt`), another wording, an unrelated prompt with its answer, and a
// question that follows from the fact; WikiFactDiff's also with the answer that was true (`old`).
//   bmike         edits in the language that comes first, as the benchmark does, and asks in the other one too
//   bmike-second  edits in the second one
#include <iterator>

#include "formats.h"
#include "lancet/core/strings.h"
#include "record_reader.h"

namespace lancet {
namespace {

struct Language {
  std::string name;
  Field fact;
};

std::vector<Language> languages_of(RecordReader& reader) {
  std::vector<Language> languages;
  for (const auto& [name, value] : reader.record().items()) {
    const Field fact = reader.field(name.c_str());
    if (fact && fact.value->is_object())
      languages.push_back({name, fact});
    else
      reader.problem(name, cat("expected the fact in this language, {src, alt, ...}, got ", shown(value)));
  }
  return languages;
}

EditRequest read_edited(RecordReader& reader, const Language& language) {
  const Field& fact = language.fact;
  EditRequest request;
  request.id = reader.id_in(fact);
  reader.fill(reader.text(fact.at("subject")), reader.required(fact.at("src")), request);
  request.target = reader.required(fact.at("alt"), "text (the answer to edit to)").value_or("");
  request.target_true = reader.text(fact.at("old"));
  request.paraphrases = reader.texts(fact.at("rephrase"));
  add_new_question(reader, fact.at("portability"), request);
  return request;
}

/// Adds the same questions in a language that is not edited, to measure whether the fact is known there, too.
void ask_in(RecordReader& reader, const Language& language, EditRequest& request) {
  const Field& fact = language.fact;
  const Field answer = fact.at("alt"), portability = fact.at("portability");
  std::vector<Probe> probes = read_probe(reader, fact.at("src"), answer);
  for (Probe& probe : read_probe(reader, fact.at("rephrase"), answer)) probes.push_back(std::move(probe));
  add_section(request.portability, language.name, std::move(probes));
  add_section(request.portability, cat(language.name, "_one_hop"),
              read_probe(reader, portability.at("New Question"), portability.at("New Answer")));
}

/// `edited`: index of the edited language, in the order of the record.
std::vector<EditRequest> read_fact(RecordReader& reader, size_t edited) {
  const std::vector<Language> languages = languages_of(reader);
  if (!reader.is_good()) return {};
  if (languages.size() <= edited) {
    reader.problem("the record",
                   cat("expected the fact in ", counted(edited + 1, "language"), ", got ", languages.size()));
    return {};
  }
  EditRequest request = read_edited(reader, languages[edited]);
  for (size_t i = 0; i < languages.size(); ++i) {
    if (i != edited) ask_in(reader, languages[i], request);
    const Field& fact = languages[i].fact;
    add_section(request.locality, languages[i].name, read_probe(reader, fact.at("loc"), fact.at("loc_ans")));
  }
  return {std::move(request)};
}

}  // namespace

std::vector<EditRequest> parse_bmike(RecordReader& reader) { return read_fact(reader, 0); }

std::vector<EditRequest> parse_bmike_second(RecordReader& reader) { return read_fact(reader, 1); }

}  // namespace lancet
