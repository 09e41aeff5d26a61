// A fake accelerator on torch's PrivateUse1 interface, named "fakedev". Loading this library registers it.
//
// fakedev.py is its Python module; the functions at the end of this file are what that calls.
#include <ATen/TensorOperators.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/version.h>

#include "operators.hpp"

namespace fakedev {

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 4
template <typename T>
using optional = c10::optional<T>;
#else
template <typename T>
using optional = std::optional<T>;
#endif

// Memory

void release_block(void* block) { driver().release(static_cast<Block*>(block)); }

struct Allocator final : c10::Allocator {
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2
  c10::DataPtr allocate(std::size_t bytes) const override { return allocated(bytes); }
#else
  c10::DataPtr allocate(std::size_t bytes) override { return allocated(bytes); }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    void *const to = driver().for_kernels(dest), *const from = driver().for_kernels(src);
    driver().launch(driver().current_stream(Driver::current_device()),
                    {[=](std::uint64_t) { std::memcpy(to, from, count); }});
  }
#endif

 private:
  static c10::DataPtr allocated(std::size_t bytes) {
    const int index = Driver::current_device();
    const c10::Device device(kType, static_cast<c10::DeviceIndex>(index));
    if (bytes == 0) return {nullptr, device};
    try {
      const auto [block, address] = driver().allocate(index, bytes, driver().current_stream(index));
      return {address, block, &release_block, device};
    } catch (const OutOfMemory& error) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
      throw;  // unreachable: the line above throws torch's own
    }
  }
};

Allocator allocator;
REGISTER_ALLOCATOR(kType, &allocator);

// Device, streams and events as torch sees them

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override {
    return {kType, static_cast<c10::DeviceIndex>(Driver::current_device())};
  }
  void setDevice(c10::Device device) const override { driver().set_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { setDevice(device); }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(driver().device_count());
  }

  c10::Stream getStream(c10::Device device) const noexcept override { return seen(stream_of(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, driver().pool_stream(device.index()));
  }
  c10::Stream getNewStream(c10::Device device, int) const { return getStreamFromGlobalPool(device, false); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const std::int64_t before = driver().exchange_stream(stream.device_index(), stream.id());
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), before);
  }
  bool queryStream(const c10::Stream& stream) const override { return driver().is_idle(one(stream)); }
  void synchronizeStream(const c10::Stream& stream) const override { driver().synchronize(one(stream)); }
  void synchronizeDevice(c10::DeviceIndex index) const { driver().synchronize_device(index); }
  bool isStreamCapturing(const c10::Stream& stream) const { return driver().is_capturing(one(stream)); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get_deleter() == &release_block) driver().record_use(static_cast<Block*>(data.get_context()), one(stream));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag flag) const override {
    if (!*event) *event = new Event{flag == c10::EventFlag::BACKEND_DEFAULT};
    driver().record(*static_cast<Event*>(*event), one(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) driver().wait(one(stream), *static_cast<Event*>(event));
  }
  bool queryEvent(void* event) const override { return !event || driver().is_done(*static_cast<Event*>(event)); }
  void synchronizeEvent(void* event) const {
    if (event) driver().synchronize(*static_cast<Event*>(event));
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const {
    TORCH_CHECK(begin && end, "both events must be recorded before the time between them is asked for");
    return driver().elapsed_ms(*static_cast<Event*>(begin), *static_cast<Event*>(end));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }

  static c10::Stream seen(const Stream& stream) {
    return c10::Stream(c10::Stream::UNSAFE, {kType, static_cast<c10::DeviceIndex>(stream.device)}, stream.id);
  }

 private:
  static Stream& one(const c10::Stream& stream) { return driver().stream(stream.device_index(), stream.id()); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// Random numbers: kernels are seeded from this generator when they are launched

struct Generator final : at::CPUGeneratorImpl {
  explicit Generator(c10::DeviceIndex index) {
    device_ = c10::Device(kType, index);
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device_.index());
    copy->set_state(*get_state());
    return copy;
  }
};

const at::Generator& default_generator(c10::DeviceIndex index) {
  static const auto* const generators = [] {
    auto* made = new std::vector<at::Generator>;
    for (int device = 0; device < driver().device_count(); ++device)
      made->push_back(at::make_generator<Generator>(static_cast<c10::DeviceIndex>(device)));
    return made;
  }();
  return generators->at(static_cast<std::size_t>(index < 0 ? Driver::current_device() : index));
}

// torch gives Python no other way to the default generators of such a device.
thread_local bool hand_out_default = false;

at::Generator new_generator(c10::DeviceIndex index) {
  if (hand_out_default) return default_generator(index);
  if (index < 0) index = static_cast<c10::DeviceIndex>(Driver::current_device());
  return at::make_generator<Generator>(index);
}

// What else torch asks a device. The functions that a release does not know are never called there.

struct Hooks final : at::PrivateUse1HooksInterface {
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) override { return default_generator(index); }
#else
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
#endif
  at::Generator getNewGenerator(c10::DeviceIndex index) const { return new_generator(index); }
  c10::Device getDeviceFromPtr(void* data) const override {
    const Device* device = driver().device_of(data);
    TORCH_CHECK(device, "this address is not one of fakedev");
    return {kType, static_cast<c10::DeviceIndex>(device->index)};
  }
  // Copies that nobody waits for go to memory that torch calls pinned; any memory of the host will do here.
  c10::Allocator* getPinnedMemoryAllocator() const { return c10::GetAllocator(c10::DeviceType::CPU); }
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const { return driver().memory(index).reserved > 0; }
  c10::DeviceIndex deviceCount() const { return static_cast<c10::DeviceIndex>(driver().device_count()); }
  void setCurrentDevice(c10::DeviceIndex index) const { driver().set_device(index); }
  c10::DeviceIndex getCurrentDevice() const { return static_cast<c10::DeviceIndex>(Driver::current_device()); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const {
    const c10::DeviceIndex before = getCurrentDevice();
    setCurrentDevice(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const { return exchangeDevice(index); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const { resize_storage(storage, bytes); }
};

const bool registered = [] {
  c10::register_privateuse1_backend("fakedev");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 7
REGISTER_GENERATOR_PRIVATEUSE1(new_generator)
#endif

// Operators that make tensors or change what they are

c10::Device device_or_current(const optional<c10::Device>& device) {
  if (device.has_value() && device->has_index()) return *device;
  return {kType, static_cast<c10::DeviceIndex>(Driver::current_device())};
}

void check_plain(const optional<c10::Layout>& layout, const optional<bool>& pinned) {
  TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided, "fakedev has strided tensors only");
  TORCH_CHECK(!pinned.value_or(false), "only host tensors can be pinned");
}

at::ScalarType type_or_default(const optional<at::ScalarType>& type) {
  return type.value_or(c10::get_default_dtype_as_scalartype());
}

Tensor empty(c10::IntArrayRef sizes, optional<at::ScalarType> type, optional<c10::Layout> layout,
             optional<c10::Device> device, optional<bool> pinned, optional<c10::MemoryFormat> format) {
  check_plain(layout, pinned);
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(sizes, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type_or_default(type), format);
}

Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, optional<at::ScalarType> type,
                     optional<c10::Layout> layout, optional<c10::Device> device, optional<bool> pinned) {
  check_plain(layout, pinned);
  return empty_on_device(device_or_current(device), sizes, strides, type_or_default(type));
}

Tensor as_strided(const Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides, optional<std::int64_t> offset) {
  return view_of(self, sizes, strides, offset.value_or(self.storage_offset()), self.dtype());
}

const Tensor& resize_(const Tensor& self, c10::IntArrayRef sizes, optional<c10::MemoryFormat> format) {
  if (self.sizes() == sizes && !format.has_value()) return self;
  reshape(self, sizes, contiguous_strides(sizes));
  if (format.has_value()) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

Tensor& set_storage_at(Tensor& self, at::Storage source, std::int64_t offset, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (strides.size() == sizes.size()) reshape(self, sizes, strides);
  else reshape(self, sizes, contiguous_strides(sizes));
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<std::int64_t>(source.nbytes() / self.element_size());
  return set_storage_at(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage_at(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

void record_stream(Tensor& self, c10::Stream stream) {
  Guard().recordDataPtrOnStream(self.storage().data_ptr(), stream);
}

// A kernel that waits for what is launched after it, as those of collectives and persistent ones do.
void spin_until(Tensor& flag) {
  TORCH_CHECK(on_device(flag) && flag.scalar_type() == at::kInt && flag.numel() == 1, "flag: one int32 of fakedev");
  const std::int32_t* const seen = for_kernels(flag).data_ptr<std::int32_t>();
  record_stream(flag, Guard::seen(driver().spin_until(stream_of(flag.device()), seen)));
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, optional<bool> train) {
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const Tensor kept = at::empty_like(input).bernoulli_(1 - p);
  return {input * kept * (p == 1 ? 0.0 : 1 / (1 - p)), kept.to(at::kBool)};
}

// Recurrent layers ask devices of this kind for fused cells.

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& of_input, const Tensor& of_hidden, const Tensor& before,
                                             const optional<Tensor>& input_bias, const optional<Tensor>& hidden_bias) {
  Tensor gates = of_input + of_hidden;
  if (input_bias.has_value() && input_bias->defined()) gates = gates + *input_bias + *hidden_bias;
  const std::vector<Tensor> parts = gates.chunk(4, 1);
  const Tensor cell = parts[1].sigmoid() * before + parts[0].sigmoid() * parts[2].tanh();
  return {parts[3].sigmoid() * cell.tanh(), cell, gates};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& of_input, const Tensor& of_hidden, const Tensor& before,
                                    const optional<Tensor>& input_bias, const optional<Tensor>& hidden_bias) {
  const bool biased = input_bias.has_value() && input_bias->defined();
  const std::vector<Tensor> input = (biased ? of_input + *input_bias : of_input).chunk(3, 1);
  const std::vector<Tensor> hidden = (biased ? of_hidden + *hidden_bias : of_hidden).chunk(3, 1);
  const Tensor fresh = (input[2] + (input[0] + hidden[0]).sigmoid() * hidden[2]).tanh();
  return {(before - fresh) * (input[1] + hidden[1]).sigmoid() + fresh, of_input};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("resize_", &resize_);
  m.impl("set_.source_Storage_storage_offset", &set_storage_at);
  m.impl("set_.source_Storage", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("record_stream", &record_stream);
  m.impl("native_dropout", &native_dropout);
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("_fused_sdp_choice", torch::CppFunction::makeFromBoxedFunction<&attention_choice>());
}

TORCH_LIBRARY(fakedev, m) { m.def("spin_until(Tensor(a!) flag) -> ()"); }
TORCH_LIBRARY_IMPL(fakedev, PrivateUse1, m) { m.impl("spin_until", &spin_until); }
TORCH_LIBRARY_IMPL(fakedev, AutogradPrivateUse1, m) { m.impl("spin_until", torch::CppFunction::makeFallthrough()); }

// A copy is what resolves a conjugate: without these lines torch would call it again to resolve its own argument.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

// For fakedev.py: each returns 0, or -1 and leaves a message

thread_local std::string message;

template <typename Action>
int guarded(const Action& action) noexcept {
  try {
    action();
    return 0;
  } catch (const std::exception& error) {
    message = error.what();
    return -1;
  }
}

}  // namespace fakedev

using namespace fakedev;

extern "C" {

const char* fakedev_message() { return message.c_str(); }
int fakedev_device_type() { return static_cast<int>(kType); }
int fakedev_in_bad_fork() { return driver().in_bad_fork(); }
int fakedev_current_device() { return Driver::current_device(); }
void fakedev_hand_out_default(int yes) { hand_out_default = yes != 0; }
void* fakedev_event_new(int timing) { return new Event{timing != 0}; }
void fakedev_event_delete(Event* event) { delete event; }
void* fakedev_graph_new() { return new Graph; }
void fakedev_graph_delete(Graph* graph) {
  driver().reset(*graph);
  delete graph;
}

#define GUARDED(name, parameters, ...) \
  int fakedev_##name parameters { return guarded([&] { __VA_ARGS__; }); }
#define STREAM driver().stream(device, id)
#define CURRENT_STREAM driver().current_stream(Driver::current_device())

GUARDED(device_count, (std::int64_t* count), *count = driver().device_count())
GUARDED(set_device, (int device), driver().set_device(device))
GUARDED(set_faults, (const char* text), driver().set_faults(text))
GUARDED(synchronize, (int device), driver().synchronize_device(device))
GUARDED(sleep, (std::int64_t us), driver().launch(CURRENT_STREAM, {[us](std::uint64_t) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}}))
GUARDED(pool_stream, (int device, std::int64_t* id), *id = driver().pool_stream(device))
GUARDED(current_stream, (int device, std::int64_t* id), *id = driver().current_stream(device).id)
GUARDED(set_stream, (int device, std::int64_t id), driver().exchange_stream(device, id))
GUARDED(stream_idle, (int device, std::int64_t id, std::int64_t* idle), *idle = driver().is_idle(STREAM))
GUARDED(stream_capturing, (int device, std::int64_t id, std::int64_t* yes), *yes = driver().is_capturing(STREAM))
GUARDED(stream_synchronize, (int device, std::int64_t id), driver().synchronize(STREAM))
GUARDED(event_record, (Event* event, int device, std::int64_t id), driver().record(*event, STREAM))
GUARDED(event_wait, (Event* event, int device, std::int64_t id), driver().wait(STREAM, *event))
GUARDED(event_done, (Event* event, std::int64_t* done), *done = driver().is_done(*event))
GUARDED(event_synchronize, (Event* event), driver().synchronize(*event))
GUARDED(event_elapsed, (Event* begin, Event* end, double* ms), *ms = driver().elapsed_ms(*begin, *end))
GUARDED(memory, (int device, std::int64_t* numbers), {
  const auto [allocated, peak, reserved, capacity] = driver().memory(device);
  std::int64_t index = 0;
  for (const std::size_t number : {allocated, peak, reserved, capacity})
    numbers[index++] = static_cast<std::int64_t>(number);
})
GUARDED(reset_peak, (int device), driver().reset_peak(device))
GUARDED(empty_cache, (), driver().empty_cache())
GUARDED(graph_reset, (Graph* graph), driver().reset(*graph))
GUARDED(graph_begin, (Graph* graph, int mode),
        driver().begin_capture(*graph, CURRENT_STREAM, static_cast<CaptureMode>(mode)))
GUARDED(graph_end, (Graph* graph), driver().end_capture(*graph, CURRENT_STREAM))
GUARDED(graph_replay, (Graph* graph), driver().replay(*graph, CURRENT_STREAM))

}  // extern "C"
