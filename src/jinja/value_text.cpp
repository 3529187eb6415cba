// Writes values as text: str(), repr() and json.dumps().
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "characters.h"
#include "lancet/core/strings.h"
#include "number_text.h"
#include "operations.h"

namespace lancet {
namespace {

std::string hex_escape(const char* form, char32_t character) {
  std::array<char, 16> escape{};
  std::snprintf(escape.data(), escape.size(), form, static_cast<unsigned>(character));
  return escape.data();
}

std::string quoted_python(std::string_view text) {
  const bool doubles = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubles ? '"' : '\'';
  std::string quoted(1, quote);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8_at(text, at);
    const char32_t c = point.value;
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      quoted += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_python_printable(c)) {
      quoted += text.substr(at, point.bytes);
    } else {
      quoted += hex_escape(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
    at += std::max<size_t>(point.bytes, 1);
  }
  return quoted + quote;
}

std::string quoted_json(std::string_view text, bool is_ascii) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8_at(text, at);
    const char32_t c = point.value;
    constexpr std::string_view kLetters = "\"\\\n\r\t\f\b", kSpelt = "\"\\nrtfb";
    if (const size_t found = c < 0x80 ? kLetters.find(static_cast<char>(c)) : std::string_view::npos;
        found != std::string_view::npos) {
      quoted += '\\';
      quoted += kSpelt[found];
    } else if (c < 0x20 || (is_ascii && c >= 0x7F && c < 0x10000)) {
      quoted += hex_escape("\\u%04x", c);
    } else if (is_ascii && c >= 0x10000) {
      quoted += hex_escape("\\u%04x", 0xD800 + ((c - 0x10000) >> 10U)) + hex_escape("\\u%04x", 0xDC00 + (c & 0x3FFU));
    } else {
      quoted += text.substr(at, point.bytes);
    }
    at += std::max<size_t>(point.bytes, 1);
  }
  return quoted + "\"";
}

/// A growing text whose memory is counted.
class CountedText {
 public:
  explicit CountedText(JinjaRun& run) : run_(run) {}
  void add(std::string_view part) {
    run_.charge_bytes(part.size());
    run_.charge_memory(static_cast<int64_t>(part.size()));
    text_ += part;
  }
  std::string take() { return std::move(text_); }

 private:
  JinjaRun& run_;
  std::string text_;
};

void write_repr(JinjaRun& run, const JinjaValue& value, CountedText& out);

void write_items(JinjaRun& run, const std::vector<JinjaValue>& items, CountedText& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ");
    write_repr(run, items[i], out);
  }
}

void write_dict(JinjaRun& run, const JinjaDict& dict, CountedText& out) {
  out.add("{");
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out.add(", ");
    write_repr(run, dict.entries[i].key, out);
    out.add(": ");
    write_repr(run, dict.entries[i].value, out);
  }
  out.add("}");
}

void write_view(JinjaRun& run, const JinjaValue& value, CountedText& out) {
  const JinjaView::Part part = value.view().part;
  out.add(part == JinjaView::Part::kKeys     ? "dict_keys(["
          : part == JinjaView::Part::kValues ? "dict_values(["
                                             : "dict_items([");
  write_items(run, items_of(run, value), out);
  out.add("])");
}

std::string range_text(const JinjaRange& range) {
  return cat("range(", range.start, ", ", range.stop, range.step == 1 ? "" : cat(", ", range.step), ")");
}

void write_object(JinjaRun& run, const JinjaValue& value, CountedText& out) {
  if (value.is(JinjaKind::kFunction) && value.function().macro != nullptr)
    return out.add(value.function().name.empty() ? "<Macro anonymous>"
                                                 : cat("<Macro ", quoted_python(value.function().name), ">"));
  if (value.is(JinjaKind::kLoop))
    return out.add(cat("<LoopContext ", value.loop().index0 + 1, "/", length_of(run, value), ">"));
  run.fail(cat("the text of a value that has none of its own (", type_name(value),
               value.is(JinjaKind::kFunction) ? cat(" ", value.function().name, ", which is not called") : "",
               "): Python would print an address; is `|list` or `()` missing?"));
}

void write_repr(JinjaRun& run, const JinjaValue& value, CountedText& out) {
  const JinjaRun::Level level(run);
  run.charge(1);
  switch (value.kind()) {
    case JinjaKind::kUndefined:
      return out.add("Undefined");
    case JinjaKind::kNone:
      return out.add("None");
    case JinjaKind::kBoolean:
      return out.add(value.integer() != 0 ? "True" : "False");
    case JinjaKind::kInteger:
      return out.add(cat(value.integer()));
    case JinjaKind::kFloat:
      return out.add(python_float_text(value.real()));
    case JinjaKind::kText:
      run.charge_memory(static_cast<int64_t>(value.text().size()) * 4);
      return out.add(value.is_safe_text() ? cat("Markup(", quoted_python(value.text()), ")")
                                          : quoted_python(value.text()));
    case JinjaKind::kList:
      out.add("[");
      write_items(run, value.items(), out);
      return out.add("]");
    case JinjaKind::kTuple:
      out.add("(");
      write_items(run, value.items(), out);
      return out.add(value.items().size() == 1 ? ",)" : ")");
    case JinjaKind::kDict:
      return write_dict(run, value.dict(), out);
    case JinjaKind::kNamespace:
      out.add("<Namespace ");
      write_dict(run, value.dict(), out);
      return out.add(">");
    case JinjaKind::kRange:
      return out.add(range_text(value.range()));
    case JinjaKind::kView:
      return write_view(run, value, out);
    default:
      return write_object(run, value, out);
  }
}

class JsonText {
 public:
  JsonText(JinjaRun& run, const JsonForm& form) : run_(run), form_(form), out_(run) {}

  void write(const JinjaValue& value) {
    const JinjaRun::Level level(run_);
    run_.charge(1);
    switch (value.kind()) {
      case JinjaKind::kNone:
      case JinjaKind::kBoolean:
      case JinjaKind::kInteger:
      case JinjaKind::kFloat:
        return out_.add(scalar(value));
      case JinjaKind::kText:
        run_.charge_memory(static_cast<int64_t>(value.text().size()) * 2);
        return out_.add(quoted_json(value.text(), form_.is_ascii));
      case JinjaKind::kList:
      case JinjaKind::kTuple:
        return write_list(value.items());
      case JinjaKind::kDict:
        return write_dict(value.dict());
      default:
        if (value.is_undefined()) run_.fail(cat("tojson: ", value.undefined().reason));
        run_.fail(cat("tojson: ", shown_type(value), " has no form in JSON"));
    }
  }

  std::string take() { return out_.take(); }

 private:
  static std::string scalar(const JinjaValue& value) {
    if (value.is_none()) return "null";
    if (value.is(JinjaKind::kBoolean)) return value.integer() != 0 ? "true" : "false";
    if (value.is(JinjaKind::kInteger)) return cat(value.integer());
    if (std::isnan(value.real())) return "NaN";
    if (std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    return python_float_text(value.real());
  }

  void begin_line() {
    if (!form_.indent) return;
    out_.add("\n");
    for (int64_t i = 0; i < depth_; ++i) out_.add(*form_.indent);
  }

  void separate(bool is_first) {
    if (!is_first) out_.add(form_.item_separator);
    begin_line();
  }

  void write_list(const std::vector<JinjaValue>& items) {
    if (items.empty()) return out_.add("[]");
    out_.add("[");
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      separate(i == 0);
      write(items[i]);
    }
    --depth_;
    begin_line();
    out_.add("]");
  }

  std::string key_text(const JinjaValue& key) const {
    if (key.is_text()) return key.text();
    if (key.is_number() || key.is_none()) return scalar(key);
    run_.fail(cat("tojson: expected keys that are texts, got ", shown_type(key)));
  }

  void write_dict(const JinjaDict& dict) {
    if (dict.entries.empty()) return out_.add("{}");
    std::vector<JinjaDict::Entry> entries = dict.entries;
    if (form_.sorts_keys)
      std::ranges::stable_sort(entries, [&](const JinjaDict::Entry& a, const JinjaDict::Entry& b) {
        return compare(run_, "<", a.key, b.key);
      });
    out_.add("{");
    ++depth_;
    for (size_t i = 0; i < entries.size(); ++i) {
      separate(i == 0);
      out_.add(quoted_json(key_text(entries[i].key), form_.is_ascii));
      out_.add(form_.key_separator);
      write(entries[i].value);
    }
    --depth_;
    begin_line();
    out_.add("}");
  }

  JinjaRun& run_;
  const JsonForm& form_;
  CountedText out_;
  int64_t depth_ = 0;
};

}  // namespace

std::string repr_of(JinjaRun& run, const JinjaValue& value) {
  CountedText out(run);
  write_repr(run, value, out);
  return out.take();
}

std::string text_of(JinjaRun& run, const JinjaValue& value) {
  if (value.is_text()) return value.text();
  if (value.is_undefined() || value.is_missing()) return {};
  return repr_of(run, value);
}

std::string json_of(JinjaRun& run, const JinjaValue& value, const JsonForm& form) {
  JsonText text(run, form);
  text.write(value);
  return text.take();
}

}  // namespace lancet
