// Outputs to files: trees to tensors.jsonl, raw little-endian bytes to tensors.bin, equal bytes once.
#pragma once

#include <ATen/core/ivalue.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "json.hpp"
#include "side_effects.hpp"
#include "trees.hpp"
#include "wire.hpp"

namespace gate {

// Appends call outputs to a folder; the same bytes, trees and offsets as harness/worker/tensors.py writes.
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
    const std::string tree = text(value);
    std::string changed;
    for (const PlacedTensor& input : effects.changed) {
      ((changed += changed.empty() ? "[" : ",[") += input.path) += ',';
      (changed += text(input.tensor)) += ']';
    }
    json::Object line;
    line.text("model", model).text("set", set).integer("call", call).raw("tree", tree);
    if (!changed.empty()) line.raw("changed", "[" + changed + "]");
    if (!effects.shared.empty()) line.raw("shared", effects.shared);
    append(index_, line.str() + "\n");
  }

 private:
  std::int64_t store(const std::string& digest, const void* data, std::size_t size) override {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto [known, is_new] = known_.emplace(digest, size_);
    if (is_new) {
      write_all(bin_, static_cast<const char*>(data), size);
      size_ += static_cast<std::int64_t>(size);
    }
    return known->second;
  }

  void append(int file, const std::string& line) {
    const std::lock_guard<std::mutex> guard(lock_);
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
  std::int64_t size_ = 0;
  std::unordered_map<std::string, std::int64_t> known_;  // digest -> offset
  std::mutex lock_;
};

}  // namespace gate
