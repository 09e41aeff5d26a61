// Holds what a thread serves against what the same copy answered before, so that a race while serving is seen.
#pragma once

#include "standard.hpp"
#include "events.hpp"
#include "values/json.hpp"
#include "values/trees.hpp"

namespace gate {

// What a module answers to its first input set once it is warm, if it can be held to that: only where the last two
// recorded answers are the same to the last bit. Before its second call a module is not warm, and one whose answers
// depend on earlier calls, or on chance, cannot be held to any of them.
class StableAnswer {
 public:
  void learn(const c10::IValue& output) {
    std::string now = described(output);
    is_known_ = last_ == now;
    last_ = std::move(now);
  }

  // Returns whether `output` is not what is known.
  bool differs_from(const c10::IValue& output) const { return is_known_ && described(output) != *last_; }

 private:
  std::optional<std::string> last_;
  bool is_known_ = false;
};

// Counts the answers of one serve step, and those that are otherwise: the mark served_otherwise:MODEL.
class ServedAnswers {
 public:
  ServedAnswers(const std::string& model, const StableAnswer& stable_answer, EventLog& log)
      : model_(model), stable_answer_(stable_answer), log_(log) {}

  std::int64_t calls() const { return calls_; }

  // Counts one answer; tells the first one that is otherwise at once, as the process may hang after it.
  void take(const c10::IValue& output) {
    ++calls_;
    if (!stable_answer_.differs_from(output)) return;
    ++different_;
    if (first_) return;
    first_ = calls_ - 1;
    tell();
  }

  // Marks what was otherwise so far, if anything was.
  void tell() const {
    if (!first_) return;
    json::Object data;
    data.integer("calls", calls_).integer("first", *first_).integer("different", different_);
    log_.mark(("served_otherwise:" + model_).c_str(), data.str());
  }

 private:
  const std::string& model_;
  const StableAnswer& stable_answer_;
  EventLog& log_;
  std::int64_t calls_ = 0;
  std::int64_t different_ = 0;
  std::optional<std::int64_t> first_;
};

}  // namespace gate
