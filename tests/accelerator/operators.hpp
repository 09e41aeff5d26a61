// Operators of the fake accelerator: each one runs on the CPU, in a thread of a stream, over the memory of the device.
//
// What an operator returns must be known before it has run. Its shapes are those that the CPU's kernel returns for
// tensors of zeros, or has returned before for arguments of the same shapes. An operator whose shapes depend on values,
// or that returns a number, waits for the stream first, as on other accelerators.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>

#include <limits>
#include <sstream>
#include <unordered_map>

#include "driver.hpp"

namespace fakedev {

using at::Tensor;
using c10::IValue;
using Values = std::vector<IValue>;

constexpr auto kType = c10::DeviceType::PrivateUse1;

const at::Generator& default_generator(c10::DeviceIndex device);

inline Driver& driver() { return Driver::get(); }

inline bool on_device(const Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

inline Stream& stream_of(const c10::Device& device) { return driver().current_stream(device.index()); }

// Returns the tensor as kernels see it: on the CPU, over the same memory, owning nothing.
inline Tensor for_kernels(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  char* data = nullptr;
  if (tensor.numel() > 0) {
    void* begin = tensor.storage().data_ptr().get();
    data = static_cast<char*>(on_device(tensor) ? driver().for_kernels(begin) : begin);
    data += tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size());
  }
  const Tensor seen =
      at::from_blob(data, tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.scalar_type()));
  if (tensor.is_conj()) seen._set_conj(true);
  if (tensor.is_neg()) seen._set_neg(true);
  return seen;
}

inline std::vector<std::int64_t> contiguous_strides(c10::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t index = sizes.size(); index-- > 0; stride *= std::max<std::int64_t>(sizes[index], 1))
    strides[index] = stride;
  return strides;
}

inline Tensor empty_on_host(const Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(), at::TensorOptions().dtype(like.scalar_type()));
}

// Returns a host tensor of the same shape with memory of its own, all zeros.
inline Tensor zeros_on_host(const Tensor& like) {
  Tensor zeros = empty_on_host(like);
  if (zeros.storage().nbytes() > 0) std::memset(zeros.data_ptr(), 0, zeros.storage().nbytes());
  return zeros;
}

// Returns a host tensor with what is in the tensor now.
inline Tensor values_on_host(const Tensor& tensor) { return for_kernels(tensor).clone(); }

inline Tensor empty_on_device(c10::Device device, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                              at::ScalarType type) {
  const c10::DeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(kType),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type);
}

// Returns a tensor of the device with the shape of what the CPU's kernel has returned.
inline Tensor empty_on_device(c10::Device device, const Tensor& like) {
  if (like.is_non_overlapping_and_dense())
    return empty_on_device(device, like.sizes(), like.strides(), like.scalar_type());
  return empty_on_device(device, like.sizes(), contiguous_strides(like.sizes()), like.scalar_type());
}

// Returns `tensor`'s memory in another shape; the offset is counted in elements of `type`.
inline Tensor view_of(const Tensor& tensor, c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                      caffe2::TypeMeta type) {
  Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(tensor.storage()),
                                                         tensor.key_set(), type);
  view.unsafeGetTensorImpl()->set_storage_offset(offset);
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return view;
}

// Kernels are below autograd and everything else that a caller may have switched on in its own thread.
struct KernelScope {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard no_grad;
};

// Launches dst.copy_(src), both as kernels see them; `held` lives until that is done. It is no tensor: one that Python
// knows needs the GIL to be let go of, which whoever waits for the stream may hold.
inline void launch_copy(Stream& stream, Tensor dst, Tensor src, c10::Storage held = {}) {
  driver().launch(stream, {[dst, src, held](std::uint64_t) {
                    const KernelScope scope;
                    dst.copy_(src);
                  }});
}

// Storage

inline void resize_storage(const c10::Storage& storage, std::size_t bytes) {
  const c10::Device device = storage.device();
  const c10::DeviceGuard guard(device);
  c10::DataPtr fresh = c10::GetAllocator(kType)->allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    void* const from = driver().for_kernels(storage.data_ptr().get());
    void* const to = driver().for_kernels(fresh.get());
    driver().launch(stream_of(device), {[=](std::uint64_t) { std::memcpy(to, from, kept); }});
  }
  storage.set_data_ptr_noswap(std::move(fresh));
  storage.set_nbytes(bytes);
}

inline void reshape(const Tensor& tensor, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const std::size_t bytes =
      at::detail::computeStorageNbytes(sizes, strides, tensor.element_size(), tensor.storage_offset());
  if (bytes > tensor.storage().nbytes()) resize_storage(tensor.storage(), bytes);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
}

// Operators that run on the CPU

struct Call {
  const c10::OperatorHandle& op;   // what was called
  const c10::OperatorHandle& cpu;  // what runs
  Values arguments;
  c10::Device device;
};

template <typename Function>
IValue with_tensors(const IValue& value, const Function& function) {
  if (value.isTensor()) return function(value.toTensor());
  if (!value.isList()) return value;
  // Not by the type of the list: one that TorchScript has made is no list of optional tensors.
  c10::List<IValue> items = value.toList().copy();
  for (std::size_t index = 0; index < items.size(); ++index)
    if (const IValue item = items.get(index); item.isTensor()) items.set(index, function(item.toTensor()));
  return items;
}

inline std::vector<Tensor> tensors_of(const IValue& value) {
  std::vector<Tensor> tensors;
  with_tensors(value, [&](const Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

template <typename Function>
Values with_tensors(const Call& call, const Function& function) {
  Values arguments;
  for (const IValue& value : call.arguments)
    arguments.push_back(value.isDevice() ? IValue(c10::Device(c10::kCPU)) : with_tensors(value, function));
  return arguments;
}

inline bool is_view(const c10::Argument& returned) {
  return returned.alias_info() && !returned.alias_info()->isWrite();
}

inline bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

// Indices may lie on the host while the data does not.
inline bool takes_host_tensors(const std::string& name) {
  for (const char* known : {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})
    if (name == known) return true;
  return false;
}

// Returns the one device that the arguments are on.
inline c10::Device device_for(const c10::OperatorHandle& op, const Values& arguments) {
  c10::Device device(kType, static_cast<c10::DeviceIndex>(Driver::current_device()));
  std::vector<Tensor> tensors;
  for (const IValue& value : arguments) {
    if (value.isDevice() && value.toDevice().has_index()) device = value.toDevice();
    for (const Tensor& tensor : tensors_of(value)) tensors.push_back(tensor);
  }
  const auto first = std::find_if(tensors.begin(), tensors.end(), on_device);
  if (first != tensors.end()) device = first->device();
  for (const Tensor& tensor : tensors) {
    const bool free = !on_device(tensor) && (tensor.dim() == 0 || takes_host_tensors(op.schema().name()));
    TORCH_CHECK(free || tensor.device() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
                tensor.device(), "! (when checking the arguments of ", op.schema().name(), ")");
  }
  return device;
}

inline std::vector<std::size_t> generators_of(const Call& call) {
  std::vector<std::size_t> found;
  const auto& arguments = call.op.schema().arguments();
  for (std::size_t index = 0; index < arguments.size(); ++index)
    if (arguments[index].name() == "generator") found.push_back(index);
  return found;
}

inline void set_generators(Values& arguments, const std::vector<std::size_t>& places, std::uint64_t seed) {
  for (const std::size_t place : places) arguments[place] = at::make_generator<at::CPUGeneratorImpl>(seed);
}

// Returns what takes one seed from the generator of the call: the numbers are those of the order of launches.
inline std::function<std::uint64_t()> seeds_of(const Call& call, const std::vector<std::size_t>& places) {
  if (places.empty()) return {};
  const IValue& given = call.arguments[places[0]];
  at::Generator generator =
      given.isGenerator() ? given.toGenerator() : default_generator(call.device.index());
  TORCH_CHECK(generator.device().type() == kType, "Expected a generator of ", call.device, " but found one of ",
              generator.device());
  return [generator]() mutable {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return static_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl())->random64();
  };
}

// Runs the CPU's kernel in this thread.
inline Values run(const c10::OperatorHandle& cpu, const Values& arguments) {
  const KernelScope scope;
  torch::jit::Stack stack(arguments);
  cpu.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  return stack;
}

// Whether the shape of what it returns follows from values: of masks, where indices are its argument; else torch says so,
// of the variant that is not given its output.
inline bool has_shape_of_values(const Call& call) {
  const std::string& name = call.op.schema().name();
  if (name == "aten::index") {
    for (const Tensor& tensor : tensors_of(call.arguments[1]))
      if (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte) return true;
    return false;
  }
  for (const std::string& overload : {call.op.schema().overload_name(), std::string(), std::string("Tensor")}) {
    const auto variant = c10::Dispatcher::singleton().findSchema({name, overload});
    if (variant.has_value() && variant->hasTag(at::Tag::dynamic_output_shape)) return true;
  }
  return false;
}

// Whether it must know the values of its arguments before it can return.
inline bool needs_values(const Call& call) {
  if (call.op.hasTag(at::Tag::data_dependent_output) || has_shape_of_values(call)) return true;
  for (const c10::Argument& returned : call.op.schema().returns()) {
    const c10::TypeKind kind = returned.type()->kind();
    if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType) return true;
  }
  return false;
}

// Returns what is given for the value that the CPU's kernel returned at `index`: an argument where it is written to,
// else what `made` makes.
template <typename Function>
IValue returned(const Call& call, std::size_t index, const IValue& value, const Function& made) {
  const c10::Argument& declared = call.op.schema().returns()[index];
  const auto& arguments = call.op.schema().arguments();
  for (std::size_t place = 0; declared.alias_info() && place < arguments.size(); ++place) {
    if (!arguments[place].alias_info() || !(*arguments[place].alias_info() == *declared.alias_info())) continue;
    if (is_written(declared)) return call.arguments[place];
    const Tensor base = call.arguments[place].toTensor();
    return with_tensors(value, [&](const Tensor& tensor) {
      const std::int64_t bytes = base.storage_offset() * static_cast<std::int64_t>(base.element_size());
      const std::int64_t offset = bytes / static_cast<std::int64_t>(tensor.element_size()) + tensor.storage_offset();
      return view_of(base, tensor.sizes(), tensor.strides(), offset, tensor.dtype());
    });
  }
  return with_tensors(value, made);
}

// Gives written arguments the shapes that they have got on the host; returns whether any had another one.
inline bool resize_written(const Call& call, const Values& on_host) {
  bool resized = false;
  const auto& declared = call.op.schema().arguments();
  for (std::size_t place = 0; place < declared.size(); ++place) {
    if (!is_written(declared[place])) continue;
    const std::vector<Tensor> there = tensors_of(call.arguments[place]), here = tensors_of(on_host[place]);
    for (std::size_t index = 0; index < there.size(); ++index)
      if (on_device(there[index]) && there[index].sizes() != here[index].sizes()) {
        reshape(there[index], here[index].sizes(), here[index].strides());
        resized = true;
      }
  }
  return resized;
}

// Waits for the stream, runs the operator here, and launches copies of what came out.
inline Values called_with_values(const Call& call) {
  Stream& stream = stream_of(call.device);
  driver().synchronize(stream);
  Values arguments =
      with_tensors(call, [](const Tensor& tensor) { return on_device(tensor) ? values_on_host(tensor) : tensor; });
  const std::vector<std::size_t> generators = generators_of(call);
  if (const auto draw = seeds_of(call, generators)) set_generators(arguments, generators, draw());
  const Values results = run(call.cpu, arguments);
  resize_written(call, arguments);
  const auto& declared = call.op.schema().arguments();
  for (std::size_t place = 0; place < declared.size(); ++place) {
    if (!is_written(declared[place])) continue;
    const std::vector<Tensor> there = tensors_of(call.arguments[place]), here = tensors_of(arguments[place]);
    for (std::size_t index = 0; index < there.size(); ++index)
      if (on_device(there[index])) launch_copy(stream, for_kernels(there[index]), here[index]);
  }
  Values given;
  for (std::size_t index = 0; index < results.size(); ++index)
    given.push_back(returned(call, index, results[index], [&](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      const Tensor made = empty_on_device(call.device, tensor);
      launch_copy(stream, for_kernels(made), tensor);
      return made;
    }));
  return given;
}

// Returns all that the shapes of what a call returns can depend on; empty where that is not known.
inline std::string signature(const Call& call) {
  std::ostringstream key;
  key << call.cpu.schema().operator_name() << c10::get_default_dtype();
  for (const IValue& value : call.arguments) {
    const bool plain = value.isNone() || value.isScalar() || value.isString() || value.isDevice() ||
                       value.isIntList() || value.isDoubleList() || value.isBoolList();
    if (!plain && !value.isGenerator() && !value.isTensor() && !value.isTensorList()) return {};
    key << '|';
    if (plain) key << value.tagKind() << value;
    for (const Tensor& tensor : tensors_of(value))
      key << tensor.device() << tensor.scalar_type() << tensor.sizes() << tensor.strides() << tensor.is_conj()
          << tensor.is_neg() << tensor.unsafeGetTensorImpl()->is_wrapped_number();
  }
  return key.str();
}

// What calls have returned, without memory, by signature: kernels on zeros would cost as much as the calls themselves.
class KnownShapes {
 public:
  bool find(const std::string& key, Values& results) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find(key);
    if (key.empty() || found == known_.end()) return false;
    results = found->second;
    return true;
  }

  void keep(const std::string& key, const Values& results) {
    if (key.empty()) return;
    Values shapes;
    for (const IValue& value : results)
      shapes.push_back(with_tensors(value, [](const Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        const auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(c10::kMeta);
        return at::empty_strided(tensor.sizes(), tensor.strides(), options);
      }));
    const std::lock_guard<std::mutex> lock(mutex_);
    known_[key] = std::move(shapes);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Values> known_;
};

// Returns at once what the operator will have written when the stream has come to it.
inline Values called(const Call& call) {
  bool views = false;
  for (const c10::Argument& declared : call.op.schema().returns()) views |= is_view(declared);
  Stream& stream = stream_of(call.device);
  if (!views && needs_values(call)) return called_with_values(call);

  static auto* known = new KnownShapes;
  const std::string key = views ? std::string() : signature(call);
  const std::vector<std::size_t> generators = generators_of(call);
  Values results;
  if (!known->find(key, results)) {
    Values shapes = with_tensors(call, [&](const Tensor& tensor) {
      if (!on_device(tensor)) return tensor;
      return views ? empty_on_host(tensor) : zeros_on_host(tensor);
    });
    set_generators(shapes, generators, 0);
    try {
      results = run(call.cpu, shapes);
    } catch (const std::exception&) {  // because of the shapes, or only because of zeros (a singular matrix)
      if (driver().is_capturing(stream)) throw;
      return called_with_values(call);
    }
    if (!resize_written(call, shapes)) known->keep(key, results);
  }

  std::vector<Tensor> made;
  Values given;
  for (std::size_t index = 0; index < results.size(); ++index)
    given.push_back(returned(call, index, results[index], [&](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      const Tensor fresh = empty_on_device(call.device, tensor);
      made.push_back(for_kernels(fresh));
      return fresh;
    }));
  if (views) return given;

  Values arguments = with_tensors(call, [](const Tensor& tensor) {
    return on_device(tensor) ? for_kernels(tensor) : tensor.defined() ? tensor.clone() : tensor;
  });
  std::vector<bool> fresh;
  for (const c10::Argument& declared : call.op.schema().returns()) fresh.push_back(!declared.alias_info());
  const c10::OperatorHandle cpu = call.cpu;
  const auto work = [cpu, arguments, generators, fresh, made](std::uint64_t seed) {
    Values with_generators = arguments;
    set_generators(with_generators, generators, seed);
    const Values results = run(cpu, with_generators);
    const KernelScope scope;
    auto next = made.begin();
    for (std::size_t index = 0; index < results.size(); ++index)
      if (fresh[index])
        for (const Tensor& tensor : tensors_of(results[index])) (next++)->copy_(tensor);
  };
  driver().load_kernel(stream.device, call.op.schema().name());
  driver().launch(stream, {work, seeds_of(call, generators)});
  return given;
}

// Runs what is on the stack as the operator `cpu` of the CPU.
inline void run_on_stack(const c10::OperatorHandle& op, const c10::OperatorHandle& cpu, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(cpu.hasKernelForDispatchKey(c10::DispatchKey::CPU) || &op != &cpu, "Could not run '",
                              op.schema().operator_name(), "' with arguments from the 'fakedev' backend.");
  const std::size_t count = op.schema().arguments().size();
  Values arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const c10::Device device = device_for(op, arguments);
  const c10::DeviceGuard guard(device);
  const Values given = called({op, cpu, std::move(arguments), device});
  torch::jit::drop(*stack, count);
  for (const IValue& value : given) stack->push_back(value);
}

inline void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { run_on_stack(op, op, stack); }

// Convolutions of a device that torch does not know come here. As of cuDNN, their library is opened first.
inline void convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Values arguments(stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()), stack->end());
  driver().use_library(stream_of(device_for(op, arguments)));
  static const c10::OperatorHandle cpu = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  run_on_stack(op, cpu, stack);
}

// Attention is made of plain operators.
inline void attention_choice(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  stack->emplace_back(std::int64_t{0});
}

// Copies

// Writes over what a copy that nobody has waited for has not brought yet.
inline void scramble(const Tensor& host) {
  const KernelScope scope;
  const Tensor seen = for_kernels(host);
  if (seen.is_floating_point() || seen.is_complex()) seen.fill_(std::numeric_limits<double>::quiet_NaN());
  else seen.fill_(1);
}

inline void launch_between(const Tensor& from, const Tensor& to) {
  Stream &first = stream_of(from.device()), &second = stream_of(to.device());
  Event ready, done;
  driver().record(ready, second);
  driver().wait(first, ready);
  launch_copy(first, for_kernels(to), for_kernels(from));
  driver().record(done, first);
  driver().wait(second, done);
}

inline Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  if (dst.numel() == 0) return dst;
  const bool to_host = !on_device(dst), from_host = !on_device(self);
  if (!to_host && !from_host && self.device() != dst.device()) {
    launch_between(self, dst);
    return dst;
  }
  const c10::Device device = to_host ? self.device() : dst.device();
  const c10::DeviceGuard guard(device);
  Stream& stream = stream_of(device);
  if (to_host || from_host) {
    if (!non_blocking) non_blocking = to_host && driver().returns_early();
    if (non_blocking && to_host) scramble(dst);
    launch_copy(stream, for_kernels(dst), for_kernels(self), (to_host ? dst : self).storage());
    if (!non_blocking) driver().synchronize(stream);
  } else {
    launch_copy(stream, for_kernels(dst), for_kernels(self));
  }
  return dst;
}

inline Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  if (dst.sizes() != self.sizes()) {
    if (on_device(dst)) reshape(dst, self.sizes(), contiguous_strides(self.sizes()));
    else dst.resize_(self.sizes());
  }
  return copy_from(self, dst, false);
}

inline at::Scalar local_scalar_dense(const Tensor& self) {
  driver().synchronize(stream_of(self.device()));
  const KernelScope scope;
  return for_kernels(self).item();
}

}  // namespace fakedev
