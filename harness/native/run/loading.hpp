// The ways in which a caller loads a TorchScript archive, by the names of `serving.load`.
#pragma once

#include "standard.hpp"

#include <c10/core/Device.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "failures.hpp"
#include "values/tensor_reader.hpp"

namespace gate {

// An archive in memory, as a server reads one that comes from a store of its own.
class MemoryAdapter final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MemoryAdapter(std::string bytes) : bytes_(std::move(bytes)) {}

  std::size_t size() const override { return bytes_.size(); }

  std::size_t read(std::uint64_t position, void* buffer, std::size_t count, const char*) const override {
    if (position >= bytes_.size()) return 0;
    const std::size_t taken = std::min(count, bytes_.size() - static_cast<std::size_t>(position));
    std::memcpy(buffer, bytes_.data() + position, taken);
    return taken;
  }

 private:
  const std::string bytes_;
};

// Returns the extra files of an archive, to be filled by a load.
inline torch::jit::ExtraFilesMap extra_files_of(const std::string& path) {
  const std::string extra = "extra/";
  torch::jit::ExtraFilesMap files;
  for (const std::string& record : caffe2::serialize::PyTorchStreamReader(path).getAllRecords())
    if (record.compare(0, extra.size(), extra) == 0) files[record.substr(extra.size())] = "";
  return files;
}

inline torch::jit::Module load_archive(const std::string& how, const std::string& path, const c10::Device& device) {
  if (how == "torch.jit.load") return torch::jit::load(path, device);
  if (how == "no_map_location") return torch::jit::load(path);
  if (how == "read_adapter") return torch::jit::load(std::make_shared<MemoryAdapter>(read_file(path)), device);
  if (how == "buffer") {
    std::istringstream buffer(read_file(path));
    return torch::jit::load(buffer, device);
  }
  if (how == "extra_files") {
    torch::jit::ExtraFilesMap files = extra_files_of(path);
    return torch::jit::load(path, device, files);
  }
  throw PythonError("KeyError", "'" + how + "'");
}

}  // namespace gate
