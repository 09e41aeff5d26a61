// CUDA graph capture of one call, and its replay compared with the plain call. Built only with -DGATE_WITH_CUDA.
#pragma once

#include "standard.hpp"
#include "events.hpp"
#include "run/serving.hpp"

#ifdef GATE_WITH_CUDA

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/version.h>

#include "values/difference.hpp"

namespace gate::graphs {

inline constexpr int kTimedCalls = 20;

inline void begin(at::cuda::CUDAGraph& graph, const std::string& mode) {
#if TORCH_VERSION_MAJOR >= 2
  if (mode == "global") return graph.capture_begin({0, 0}, cudaStreamCaptureModeGlobal);
  if (mode == "thread_local") return graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  if (mode == "relaxed") return graph.capture_begin({0, 0}, cudaStreamCaptureModeRelaxed);
#else
  if (mode == "global") return graph.capture_begin();
#endif
  throw PythonError("Unsupported", "torch " TORCH_VERSION " cannot capture in mode '" + mode + "'");
}

// Captures `call` on the current stream. After an error the stream is left as it was before.
inline c10::IValue record(at::cuda::CUDAGraph& graph, const std::string& mode, PreparedCall call) {
  begin(graph, mode);
  try {
    c10::IValue output = call.make();
    graph.capture_end();
    return output;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    try {
      graph.capture_end();
    } catch (...) {  // it says again that the capture is invalid
    }
    (void)cudaGetLastError();
    std::rethrow_exception(error);
  }
}

// A point in the stream in use, with its time on the GPU. CUDA's own interface: torch's wrapper has moved since 1.13.
class GpuTime {
 public:
  GpuTime() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~GpuTime() { (void)cudaEventDestroy(event_); }
  GpuTime(const GpuTime&) = delete;
  GpuTime& operator=(const GpuTime&) = delete;

  void record() { C10_CUDA_CHECK(cudaEventRecord(event_, c10::cuda::getCurrentCUDAStream().stream())); }

  // Waits until the GPU has come here; returns the milliseconds since `begin`.
  float ms_since(const GpuTime& begin) const {
    float elapsed_ms = 0;
    C10_CUDA_CHECK(cudaEventSynchronize(event_));
    C10_CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, begin.event_, event_));
    return elapsed_ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Returns the milliseconds of one `action`, from many in a row, between events in the stream in use.
template <typename Action>
double timed_ms(Action&& action) {
  GpuTime begin, end;
  begin.record();
  for (int i = 0; i < kTimedCalls; ++i) action();
  end.record();
  return static_cast<double>(end.ms_since(begin)) / kTimedCalls;
}

// Returns what a call did to these buffers, for the end of a message; nothing where there are none.
inline std::string moved(const std::vector<std::string>& rebound) {
  std::string names;
  for (const std::string& name : rebound) (names += names.empty() ? "" : ", ") += name;
  return names.empty() ? "" : ": the call bound " + names + " to other memory";
}

// Captures on a stream and in a memory pool of the thread's own; the mark graph:MODEL holds what the Python worker's
// holds. The graph is never destroyed: a server keeps its own.
inline void capture(ServedModel& served, const std::string& mode, long warm_calls, EventLog& log, int thread) {
  const std::string& set = served.schedule().at(0).set;
  const Place place{served.name(), thread, set};
  at::cuda::CUDAGraph* graph = nullptr;  // made in the phase: whatever the device refuses is the model's failure
  auto& captured = *new c10::IValue;
  std::optional<c10::cuda::CUDAStream> stream;
  std::vector<std::string> rebound;
  log.phase(wire::kCapture, place, [&] {
    if (!served.device().is_cuda()) throw PythonError("RuntimeError", "a graph cannot be captured on the CPU");
    graph = new at::cuda::CUDAGraph;
    stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false);
    const c10::cuda::CUDAStreamGuard guard(*stream);
    for (long i = 0; i < warm_calls; ++i) served.prepare(set).make();
    // The graph reads these arguments whenever it is replayed.
    const auto& call = *new PreparedCall(served.prepare(set));
    served.synchronize();
    const BufferAddresses before = served.buffer_addresses();
    captured = record(*graph, mode, call);
    for (const auto& [name, address] : served.buffer_addresses()) {
      const auto known = before.find(name);
      if (known == before.end() || known->second != address) rebound.push_back(name);
    }
  });
  log.phase(wire::kReplay, place, [&] {
    const c10::cuda::CUDAStreamGuard guard(*stream);
    const c10::IValue expected = served.prepare(set).make();
    served.prepare(set);  // the state and the random numbers of a first call
    graph->replay();
    served.synchronize();
    const auto difference = difference_of(expected, captured);
    if (!difference) throw PythonError("RuntimeError", "the replay has another structure than the plain call");
    if (std::isinf(difference->largest))
      throw PythonError("RuntimeError", "the replay is not finite where the plain call is" + moved(rebound));
    const PreparedCall again = served.prepare(set);
    json::Object data;
    data.text("mode", mode);
    data.number("max_abs_difference", difference->largest);
    data.number("scale", difference->scale);
    data.raw("rebound", json::array(rebound, json::literal));
    data.number("call_ms", timed_ms([&] { PreparedCall(again).make(); }));
    data.number("replay_ms", timed_ms([&] { graph->replay(); }));
    log.mark(("graph:" + served.name()).c_str(), data.str());
  });
}

}  // namespace gate::graphs

#else

namespace gate::graphs {

inline void capture(ServedModel& served, const std::string& mode, long, EventLog& log, int thread) {
  log.phase(wire::kCapture, {served.name(), thread, served.schedule().at(0).set}, [&] {
    throw PythonError("RuntimeError", "cannot capture (" + mode + "): this worker was built without CUDA");
  });
}

}  // namespace gate::graphs

#endif
