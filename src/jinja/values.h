// The values of a running template, which behave as in Python as far as templates use them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lancet {

class JinjaRun;
struct JinjaStatement;

enum class JinjaKind : uint8_t {
  kMissing,  ///< a name without a value; templates never see it
  kUndefined,
  kNone,
  kBoolean,
  kInteger,
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kRange,
  kView,  ///< the result of keys(), values() and items()
  kIterator,
  kFunction,
  kLoop
};

/// An object to which a value points. It exists until the end of the run.
struct JinjaObject {
  JinjaObject() = default;
  virtual ~JinjaObject() = default;
  JinjaObject(const JinjaObject&) = delete;
  JinjaObject& operator=(const JinjaObject&) = delete;
};

struct JinjaUndefined;
struct JinjaText;
struct JinjaItems;
struct JinjaDict;
struct JinjaRange;
struct JinjaView;
struct JinjaIterator;
struct JinjaFunction;
struct JinjaLoop;

class JinjaValue {
 public:
  JinjaValue() : kind_(JinjaKind::kMissing) { held_.integer = 0; }
  JinjaValue(JinjaKind kind, JinjaObject* object) : kind_(kind) { held_.object = object; }
  static JinjaValue none() { return JinjaValue(JinjaKind::kNone, nullptr); }
  static JinjaValue of(bool truth) {
    JinjaValue value(JinjaKind::kBoolean, nullptr);
    value.held_.integer = truth ? 1 : 0;
    return value;
  }
  static JinjaValue of(int64_t integer) {
    JinjaValue value(JinjaKind::kInteger, nullptr);
    value.held_.integer = integer;
    return value;
  }
  static JinjaValue of(size_t count) { return of(static_cast<int64_t>(count)); }
  static JinjaValue of(double real) {
    JinjaValue value(JinjaKind::kFloat, nullptr);
    value.held_.real = real;
    return value;
  }

  JinjaKind kind() const { return kind_; }
  bool is(JinjaKind kind) const { return kind_ == kind; }
  bool is_missing() const { return is(JinjaKind::kMissing); }
  bool is_undefined() const { return is(JinjaKind::kUndefined); }
  bool is_none() const { return is(JinjaKind::kNone); }
  bool is_text() const { return is(JinjaKind::kText); }
  bool is_sequence() const { return is(JinjaKind::kList) || is(JinjaKind::kTuple); }
  /// Whether it is a whole number. As in Python, True and False count as such.
  bool is_whole() const { return is(JinjaKind::kInteger) || is(JinjaKind::kBoolean); }
  bool is_number() const { return is_whole() || is(JinjaKind::kFloat); }

  /// For a whole number.
  int64_t integer() const { return held_.integer; }
  /// For a number.
  double real() const { return is(JinjaKind::kFloat) ? held_.real : static_cast<double>(held_.integer); }
  const JinjaObject* object() const { return held_.object; }

  // For a value of that kind.
  const JinjaUndefined& undefined() const;
  const std::string& text() const;
  bool is_safe_text() const;  ///< text that was marked as safe: Markup
  const std::vector<JinjaValue>& items() const;
  JinjaDict& dict() const;
  const JinjaRange& range() const;
  const JinjaView& view() const;
  JinjaIterator& iterator() const;
  const JinjaFunction& function() const;
  JinjaLoop& loop() const;

 private:
  JinjaKind kind_;
  union {
    int64_t integer;
    double real;
    JinjaObject* object;
  } held_;
};

struct JinjaUndefined : JinjaObject {
  std::string reason;  ///< the error for the use of the value
};

struct JinjaText : JinjaObject {
  std::string text;
  bool is_safe = false;
};

struct JinjaItems : JinjaObject {
  std::vector<JinjaValue> items;
};

/// A dict, or the values of a namespace. Keys are compared by their spelling (run.key_of).
struct JinjaDict : JinjaObject {
  struct Entry {
    JinjaValue key, value;
  };
  std::vector<Entry> entries;
  std::unordered_map<std::string, size_t> places;

  const JinjaValue* find(const std::string& spelt_key) const {
    const auto found = places.find(spelt_key);
    return found == places.end() ? nullptr : &entries[found->second].value;
  }
};

struct JinjaRange : JinjaObject {
  int64_t start = 0, stop = 0, step = 1, length = 0;
};

struct JinjaView : JinjaObject {
  enum class Part { kKeys, kValues, kItems };
  const JinjaDict* dict = nullptr;
  Part part = Part::kKeys;
};

/// Gives its items once, one after another.
struct JinjaIterator : JinjaObject {
  std::function<std::optional<JinjaValue>()> next;
};

struct JinjaArguments {
  std::vector<JinjaValue> positional = {};
  std::vector<std::pair<std::string, JinjaValue>> named = {};
};

struct JinjaFunction : JinjaObject {
  std::string name;
  std::function<JinjaValue(JinjaArguments&)> call;
  const JinjaStatement* macro = nullptr;  ///< the macro's statement
};

/// The value of `loop` in a for loop.
struct JinjaLoop : JinjaObject {
  JinjaIterator* source = nullptr;
  std::optional<int64_t> known_length;
  int64_t index0 = -1;
  int64_t depth0 = 0;
  bool has_looked_ahead = false;
  std::optional<JinjaValue> ahead;  ///< the next item, if it was already read
  JinjaValue before, current;
  std::optional<std::vector<JinjaValue>> last_changed;
  std::function<JinjaValue(const JinjaValue& items)> recurse;  ///< empty: the loop is not recursive
};

inline const JinjaUndefined& JinjaValue::undefined() const { return static_cast<const JinjaUndefined&>(*held_.object); }
inline const std::string& JinjaValue::text() const { return static_cast<const JinjaText&>(*held_.object).text; }
inline bool JinjaValue::is_safe_text() const {
  return is_text() && static_cast<const JinjaText&>(*held_.object).is_safe;
}
inline const std::vector<JinjaValue>& JinjaValue::items() const {
  return static_cast<const JinjaItems&>(*held_.object).items;
}
inline JinjaDict& JinjaValue::dict() const { return static_cast<JinjaDict&>(*held_.object); }
inline const JinjaRange& JinjaValue::range() const { return static_cast<const JinjaRange&>(*held_.object); }
inline const JinjaView& JinjaValue::view() const { return static_cast<const JinjaView&>(*held_.object); }
inline JinjaIterator& JinjaValue::iterator() const { return static_cast<JinjaIterator&>(*held_.object); }
inline const JinjaFunction& JinjaValue::function() const { return static_cast<const JinjaFunction&>(*held_.object); }
inline JinjaLoop& JinjaValue::loop() const { return static_cast<JinjaLoop&>(*held_.object); }

}  // namespace lancet
