// Outputs to files: trees to tensors.jsonl, raw little-endian bytes to tensors.bin, equal bytes once.
#pragma once

#include "standard.hpp"

#include <ATen/core/ivalue.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failures.hpp"
#include "wire.hpp"
#include "run/side_effects.hpp"
#include "values/json.hpp"
#include "values/trees.hpp"

namespace gate {

// Appends call outputs to a folder; the same bytes, trees and offsets as harness/worker/values/trees.py writes.
// Processes that are forked later may append as well.
class TensorWriter : public Trees {
 public:
  explicit TensorWriter(const std::string& folder) {
    mkdir(folder.c_str(), 0755);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    bin_ = open((folder + "/" + wire::kTensorsBin).c_str(), flags, 0644);
    index_ = open((folder + "/" + wire::kTensorsIndex).c_str(), flags | O_APPEND, 0644);
    if (bin_ < 0 || index_ < 0) throw std::runtime_error("cannot write " + folder + ": " + std::strerror(errno));
  }

  void write(const c10::IValue& value, const SideEffects& effects, const std::string& model, const std::string& set,
             std::int64_t call) {
    require_small(value);
    json::Object line;
    line.text("model", model).text("set", set).integer("call", call).raw("tree", text(value));
    const auto change = [this](const PlacedTensor& input) { return "[" + input.path + "," + text(input.tensor) + "]"; };
    if (!effects.changed.empty()) line.raw("changed", json::array(effects.changed, change));
    if (!effects.shared.empty()) line.raw("shared", effects.shared);
    const std::string whole = line.str() + "\n";
    if (whole.size() > wire::kLongestLineBytes) throw too_long();
    append(index_, whole);
  }

 private:
  // Keeps other threads out, and forked processes: they share the positions in the files.
  class Alone {
   public:
    Alone(std::mutex& threads, int file) : guard_(threads), file_(file) { set(F_WRLCK); }
    ~Alone() { set(F_UNLCK); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    void set(short kind) {
      struct flock whole {};
      whole.l_type = kind;
      while (fcntl(file_, F_SETLKW, &whole) < 0 && errno == EINTR) {
      }
    }

    const std::lock_guard<std::mutex> guard_;
    const int file_;
  };

  // What may be written of one answer, as require_small in harness/worker/values/trees.py has it.
  static void require_small(const c10::IValue& value) {
    std::vector<c10::IValue> waiting{value};
    for (std::size_t values = 0, texts = 0; !waiting.empty();) {
      const c10::IValue item = std::move(waiting.back());
      waiting.pop_back();
      if (item.isTuple()) {
        add(waiting, item.toTupleRef().elements(), values);
      } else if (item.isList()) {
        add(waiting, item.toListRef(), values);
      } else if (item.isGenericDict()) {
        const auto dict = item.toGenericDict();
        require_few(values + waiting.size() + 2 * dict.size());
        for (const auto& entry : dict) waiting.insert(waiting.end(), {entry.key(), entry.value()});
      } else {
        ++values;
        if (item.isString()) texts += item.toStringRef().size();
      }
      if (texts > wire::kLongestLineBytes) throw too_long();
      require_few(values + waiting.size());
    }
  }

  template <typename Items>
  static void add(std::vector<c10::IValue>& waiting, const Items& items, std::size_t values) {
    require_few(values + waiting.size() + items.size());
    waiting.insert(waiting.end(), items.begin(), items.end());
  }

  static void require_few(std::size_t values) {
    if (values <= wire::kMostValues) return;
    const std::string most = std::to_string(wire::kMostValues);
    throw PythonError("TooLarge", "answers with more than " + most + " values, which are not compared");
  }

  static PythonError too_long() {
    const std::string most = std::to_string(wire::kLongestLineBytes >> 20);
    return {"TooLarge", "answers with what takes more than " + most + " MiB to describe, which is not compared"};
  }

  std::int64_t store(const std::string& digest, const void* data, std::size_t size) override {
    const Alone alone(lock_, bin_);
    const auto [known, is_new] = known_.emplace(digest, 0);
    if (is_new) {
      known->second = lseek(bin_, 0, SEEK_CUR);
      write_all(bin_, static_cast<const char*>(data), size);
    }
    return known->second;
  }

  void append(int file, const std::string& line) {
    const Alone alone(lock_, bin_);
    write_all(file, line.data(), line.size());
  }

  static void write_all(int file, const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t written = ::write(file, data, size);
      if (written < 0 && errno != EINTR) throw std::runtime_error(std::string("cannot write: ") + std::strerror(errno));
      if (written > 0) data += written, size -= static_cast<std::size_t>(written);
    }
  }

  int bin_;
  int index_;
  std::unordered_map<std::string, std::int64_t> known_;  // digest -> offset
  std::mutex lock_;
};

}  // namespace gate
