// The driver of the fake accelerator: memory, streams, events, graphs, and the faults that are asked for. No torch here.
//
// Every stream is a thread with a queue. Device memory is a file in memory that is mapped twice: tensors hold addresses
// of a mapping that nobody may touch, kernels work through the other one. Words and rules of errors are CUDA's.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fakedev {

constexpr int kMostDevices = 8;
constexpr int kPoolStreams = 32;  // of each device; the next stream asked for is the first one again, as in torch.cuda
constexpr std::int64_t kSpinning = kPoolStreams + 1;  // the first of the streams that spinning kernels have
constexpr std::size_t kGranularity = 512;

struct Error : std::runtime_error {
  explicit Error(const std::string& why) : std::runtime_error("fakedev error: " + why) {}
};

struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline long number_from_environment(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end || value < 0) throw Error(std::string(name) + "=" + text + ": a whole number is expected");
  return value;
}

inline bool is_set_to(const char* name, const char* value) {
  const char* text = std::getenv(name);
  return text && std::string(text) == value;
}

// The faults in force: each fires at the N-th of what it counts, once, or again and again from there on.
class Faults {
 public:
  // Takes "KIND:N,KIND:N+"; N is 1 where it is left out. Counting starts anew.
  void set(const std::string& text) {
    std::map<std::string, Wanted> wanted;
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) {
      const std::size_t colon = item.find(':');
      const std::string kind = item.substr(0, colon);
      const std::string number = colon == std::string::npos ? "1" : item.substr(colon + 1);
      char* end = nullptr;
      const long nth = std::strtol(number.c_str(), &end, 10);
      const bool from_there_on = *end == '+';
      const bool known = std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
      if (!known || end[from_there_on] || nth < 1)
        throw Error("FAKEDEV_FAULT: " + item + " is no fault; late_error:N, hang:N, lost:N, out_of_memory:N and "
                    "unsynchronized_copy:N are, N from 1, N+ for the later ones too");
      wanted[kind] = {nth, from_there_on};
    }
    wanted_ = std::move(wanted);
    counted_.clear();
  }

  bool fires(const std::string& kind) {
    const auto found = wanted_.find(kind);
    if (found == wanted_.end()) return false;
    const long number = ++counted_[kind];
    return number == found->second.nth || (found->second.from_there_on && number > found->second.nth);
  }

 private:
  struct Wanted {
    long nth;
    bool from_there_on;
  };

  static constexpr const char* kKinds[] = {"late_error", "hang", "lost", "out_of_memory", "unsynchronized_copy"};
  std::map<std::string, Wanted> wanted_;
  std::map<std::string, long> counted_;
};

struct Marker;

// What a stream does, one after another.
struct Job {
  std::function<void(std::uint64_t seed)> work = {};
  std::function<std::uint64_t()> draw = {};  // takes a seed from the generator when the job is launched
  bool is_kernel = true;                     // kernels are what faults count, and none runs after an error
  std::shared_ptr<Marker> reached = {};      // by the end of this job
  std::uint64_t seed = 0;
  bool fails = false, hangs = false;
};

struct Capture;

struct Stream {
  int device = 0;
  std::int64_t id = 0;
  bool started = false, in_kernel = false;
  std::deque<Job> queue = {};
  std::condition_variable arrived = {};
  std::uint64_t submitted = 0, completed = 0;
  std::shared_ptr<Capture> capture = {};
  std::uint64_t recorded = 0, joined = 0;  // in the capture that is underway: launches, and those that others wait for
};

// A point in a stream that an event stands for since it was recorded last.
struct Marker {
  Stream* stream = nullptr;
  std::shared_ptr<Capture> capture = {};
  std::uint64_t position = 0;
  bool done = false;
  std::int64_t ns = 0;
};

struct Event {
  bool timing = false;
  std::shared_ptr<Marker> last = {};
};

struct Graph;

struct Block {
  int device = 0;
  std::size_t offset = 0, size = 0;
  Stream* stream = nullptr;
  Graph* graph = nullptr;         // whose replays use it: nobody else may have it until that graph is gone
  std::set<Stream*> users = {};  // other streams (record_stream)
};

enum class CaptureMode { kGlobal, kThreadLocal, kRelaxed };

struct Graph {
  int device = 0;
  std::vector<Job> jobs = {};
  std::set<Block*> in_use = {};
  std::vector<Block*> retired = {};
  bool captured = false;
};

struct Capture {
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  CaptureMode mode = CaptureMode::kGlobal;
  std::thread::id thread = {};
  std::set<Stream*> streams = {};
  std::string invalid = {};  // why it is
  bool active = true;
};

struct Device {
  int index = 0;
  char* host = nullptr;    // what tensors hold: touching it is a fault
  char* kernel = nullptr;  // the same memory for kernels
  int file = -1;
  std::map<std::size_t, std::size_t> free = {};  // offset to size
  std::map<std::pair<Stream*, std::size_t>, std::vector<Block*>> cached = {};
  std::size_t allocated = 0, peak = 0, reserved = 0;
  std::string error = {};  // of a kernel; nothing runs on the device afterwards
  int failing = 0;         // kernels underway that will fail on request
  bool lost = false;
  std::set<std::string> loaded = {};  // kernels, where they are loaded lazily
  bool loading = false;
  std::map<std::int64_t, std::unique_ptr<Stream>> streams = {};
  std::int64_t given = 0;  // streams of the pool
};

class Driver {
 public:
  // Never destroyed: threads of streams live as long as the process.
  static Driver& get() {
    static Driver* const driver = new Driver;
    return *driver;
  }

  int device_count() const { return count_; }

  void set_faults(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    faults_.set(text);
  }

  bool in_bad_fork() const { return owner_ != 0 && owner_ != getpid(); }

  // current device and stream, of each thread

  static int current_device() { return here().device; }

  void set_device(int index) {
    if (index < 0 || index >= count_) throw Error("invalid device ordinal " + std::to_string(index));
    here().device = index;
  }

  Stream& current_stream(int device) { return stream(device, here().streams[checked(device)]); }

  // Makes `id` the thread's stream of that device; returns the one before.
  std::int64_t exchange_stream(int device, std::int64_t id) {
    return std::exchange(here().streams[checked(device)], id);
  }

  Stream& stream(int device, std::int64_t id) {
    const Lock lock(mutex_);
    std::unique_ptr<Stream>& found = devices_[checked(device)].streams[id];
    if (!found) {
      found = std::make_unique<Stream>();
      found->device = device;
      found->id = id;
    }
    return *found;
  }

  std::int64_t pool_stream(int device) {
    const Lock lock(mutex_);
    return 1 + devices_[checked(device)].given++ % kPoolStreams;
  }

  // work

  // Puts `job` into the stream, or into the graph that is being captured there.
  void launch(Stream& stream, Job job) {
    Lock lock(mutex_);
    check(lock, stream.device);
    if (stream.capture) {
      check_valid(*stream.capture);
      stream.capture->graph->jobs.push_back(std::move(job));
      ++stream.recorded;
      return;
    }
    enqueue(stream, std::move(job));
  }

  bool is_capturing(const Stream& stream) {
    const Lock lock(mutex_);
    return stream.capture != nullptr;
  }

  bool is_idle(Stream& stream) {
    Lock lock(mutex_);
    forbid_in_capture(stream, "query of a capturing stream");
    check_error(lock, stream.device);
    return stream.completed == stream.submitted;
  }

  // Waits until what is in the stream now is done.
  void synchronize(Stream& stream) {
    Lock lock(mutex_);
    check_fork();
    forbid_in_capture(stream, "synchronization of a capturing stream");
    wait_for(lock, stream);
    check_error(lock, stream.device);
  }

  void synchronize_device(int device) {
    Lock lock(mutex_);
    check_fork();
    forbid_unsafe("synchronization of the device");
    wait_for_all(lock, devices_[checked(device)]);
    check_error(lock, device);
  }

  bool returns_early() {  // a copy to the host, on request
    const Lock lock(mutex_);
    return faults_.fires("unsynchronized_copy");
  }

  // events

  void record(Event& event, Stream& stream) {
    Lock lock(mutex_);
    check(lock, stream.device);
    auto marker = std::make_shared<Marker>();
    marker->stream = &stream;
    marker->capture = stream.capture;
    marker->position = stream.recorded;
    event.last = marker;
    if (!stream.capture) enqueue(stream, arrival(marker));
  }

  // What is launched into `stream` from now on waits for the event.
  void wait(Stream& stream, Event& event) {
    Lock lock(mutex_);
    check(lock, stream.device);
    const std::shared_ptr<Marker> marker = event.last;
    if (!marker) return;
    if (marker->capture) {
      if (!marker->capture->active || (stream.capture && stream.capture != marker->capture))
        throw Error("dependency created on an event of another capture");
      stream.capture = marker->capture;
      marker->capture->streams.insert(&stream);
      if (marker->stream != &stream) marker->stream->joined = std::max(marker->stream->joined, marker->position);
      return;
    }
    forbid_in_capture(stream, "dependency created on uncaptured work in another stream");
    enqueue(stream, waiting_for(marker));
  }

  bool is_done(Event& event) {
    Lock lock(mutex_);
    if (!event.last) return true;
    forbid_captured(event);
    forbid_unsafe("query of an event");
    check_error(lock, event.last->stream->device);
    return event.last->done;
  }

  void synchronize(Event& event) {
    Lock lock(mutex_);
    check_fork();
    if (!event.last) return;
    forbid_captured(event);
    forbid_unsafe("synchronization of an event");
    const std::shared_ptr<Marker> marker = event.last;
    changed_.wait(lock, [&] { return marker->done; });
    check_error(lock, marker->stream->device);
  }

  double elapsed_ms(const Event& begin, const Event& end) {
    const Lock lock(mutex_);
    if (!begin.timing || !end.timing) throw Error("both events must be created with enable_timing=True");
    if (!begin.last || !end.last || !begin.last->done || !end.last->done)
      throw Error("both events must be recorded and completed before the time between them is asked for");
    return static_cast<double>(end.last->ns - begin.last->ns) / 1e6;
  }

  // Takes memory and waits for the device, as the handle of a kernel library does when it is made: one for each thread
  // or, on request, for each stream that a thread uses.
  void use_library(const Stream& stream) {
    static thread_local std::set<std::pair<int, std::int64_t>> opened;
    const std::pair<int, std::int64_t> handle{stream.device, handle_per_stream_ ? stream.id : 0};
    if (opened.count(handle)) return;
    Lock lock(mutex_);
    check_fork();
    forbid_unsafe("first use of a kernel library");
    opened.insert(handle);
  }

  // Loads a kernel that is launched for the first time, where that is done lazily: the device must have nothing to do,
  // and until then no thread can call it.
  void load_kernel(int index, const std::string& name) {
    if (!lazy_) return;
    Lock lock(mutex_);
    check(lock, index);
    Device& device = devices_[index];
    if (!device.loaded.insert(name).second) return;
    device.loading = true;
    wait_for_all(lock, device);
    device.loading = false;
    changed_.notify_all();
  }

  // Launches a kernel that ends once there is anything but 0 at `flag`; returns its stream, one of each thread that calls:
  // nobody waits for what another thread has left spinning.
  Stream& spin_until(Stream& stream, const std::int32_t* flag) {
    static std::atomic<std::int64_t> threads{0};
    static thread_local const std::int64_t id = kSpinning + threads++;
    Event ready;
    record(ready, stream);
    Stream& own = this->stream(stream.device, id);
    wait(own, ready);
    launch(own, {[this, flag](std::uint64_t) {
             Lock lock(mutex_);
             changed_.wait(lock, [&] { return *flag != 0; });
           }});
    return own;
  }

  // memory

  // Returns the block and its address, which only kernels can use; one of a cache where one of that size is left.
  std::pair<Block*, void*> allocate(int index, std::size_t bytes, Stream& stream) {
    Lock lock(mutex_);
    check_fork();
    Device& device = open(index);
    await_loading(lock, device);
    if (is_lost(device)) throw Error("the device is lost");
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
    if (faults_.fires("out_of_memory")) throw OutOfMemory(out_of_memory(device, size));
    Block* block = stream.capture ? nullptr : from_cache(device, stream, size);
    if (!block) {
      if (!stream.capture) forbid_unsafe("allocation of memory that was not cached");
      block = from_device(lock, device, stream, size);
    }
    if (stream.capture) {
      block->graph = stream.capture->graph;
      block->graph->in_use.insert(block);
    }
    device.allocated += size;
    device.peak = std::max(device.peak, device.allocated);
    return {block, device.host + block->offset};
  }

  // Gives it back to the cache of its stream. What was in it is overwritten when the stream comes to that point.
  void release(Block* block) noexcept {
    Lock lock(mutex_);
    if (in_bad_fork()) return;
    Device& device = devices_[block->device];
    device.allocated -= block->size;
    if (block->graph) {
      block->graph->in_use.erase(block);
      block->graph->retired.push_back(block);
      return;
    }
    for (Stream* user : block->users) {
      auto marker = std::make_shared<Marker>();
      marker->stream = user;
      enqueue(*user, arrival(marker));
      enqueue(*block->stream, waiting_for(marker));
    }
    block->users.clear();
    char* const begin = device.kernel + block->offset;
    const std::size_t size = block->size;
    enqueue(*block->stream, {[begin, size](std::uint64_t) { std::memset(begin, 0xff, size); }, {}, false});
    device.cached[{block->stream, block->size}].push_back(block);
  }

  void record_use(Block* block, Stream& stream) {
    const Lock lock(mutex_);
    if (block->stream != &stream) block->users.insert(&stream);
  }

  // Returns where kernels find what the host sees at `address`; null where that is no device memory.
  void* for_kernels(const void* address) {
    const Device* device = device_of(address);
    return device ? device->kernel + (static_cast<const char*>(address) - device->host) : nullptr;
  }

  const Device* device_of(const void* address) const {
    const auto* place = static_cast<const char*>(address);
    for (const Device& device : devices_)
      if (device.host && place >= device.host && place < device.host + capacity_) return &device;
    return nullptr;
  }

  struct Memory {
    std::size_t allocated, peak, reserved, capacity;
  };

  Memory memory(int index) {
    const Lock lock(mutex_);
    const Device& device = devices_[checked(index)];
    return {device.allocated, device.peak, device.reserved, capacity_};
  }

  void reset_peak(int index) {
    const Lock lock(mutex_);
    Device& device = devices_[checked(index)];
    device.peak = device.allocated;
  }

  void empty_cache() {
    Lock lock(mutex_);
    check_fork();
    forbid_unsafe("release of cached memory");
    for (Device& device : devices_)
      if (device.host) drop_cached(lock, device);
  }

  // graphs

  void begin_capture(Graph& graph, Stream& stream, CaptureMode mode) {
    Lock lock(mutex_);
    check(lock, stream.device);
    if (stream.id == 0) throw Error("graphs must be captured on a non-default stream");
    if (stream.capture) throw Error("operation not permitted when stream is capturing (another capture begins)");
    if (graph.captured) throw Error("this graph has been captured: reset it first");
    auto capture = std::make_shared<Capture>();
    capture->graph = &graph;
    capture->origin = &stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->streams = {&stream};
    graph.device = stream.device;
    stream.capture = capture;
    captures_.push_back(capture);
  }

  void end_capture(Graph& graph, Stream& current) {
    const Lock lock(mutex_);
    const auto found = std::find_if(captures_.begin(), captures_.end(), [&](auto& one) { return one->graph == &graph; });
    if (found == captures_.end()) throw Error("no capture of this graph is underway");
    const std::shared_ptr<Capture> capture = *found;
    if (capture->mode != CaptureMode::kRelaxed && capture->thread != std::this_thread::get_id())
      throw Error("capture was begun by another thread");
    if (capture->origin != &current) throw Error("capture must end on the stream that it began on");
    for (const Stream* stream : capture->streams)
      if (stream != capture->origin && stream->recorded > stream->joined && capture->invalid.empty())
        capture->invalid = "capture ended with work in a stream that was not joined";
    close(capture);
    graph.captured = capture->invalid.empty();
    if (graph.captured) return;
    graph.jobs.clear();
    throw Error("operation failed due to a previous error during capture (" + capture->invalid + ")");
  }

  void replay(Graph& graph, Stream& stream) {
    Lock lock(mutex_);
    check(lock, stream.device);
    if (!graph.captured) throw Error("replay without a preceding successful capture");
    if (stream.device != graph.device) throw Error("the graph was captured on another device");
    if (stream.capture) throw Error("operation not permitted when stream is capturing (a replay)");
    for (const Job& job : graph.jobs) enqueue(stream, job);
  }

  // Drops what was recorded; its memory may be had by others.
  void reset(Graph& graph) {
    std::vector<Job> jobs;  // destroyed without the lock: they may hold tensors of Python
    const Lock lock(mutex_);
    const auto underway = captures_;
    for (const std::shared_ptr<Capture>& capture : underway)
      if (capture->graph == &graph) close(capture);
    jobs.swap(graph.jobs);
    graph.captured = false;
    for (Block* block : graph.in_use) block->graph = nullptr;
    for (Block* block : graph.retired) {
      block->graph = nullptr;
      devices_[block->device].cached[{block->stream, block->size}].push_back(block);
    }
    graph.in_use.clear();
    graph.retired.clear();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Here {
    int device = 0;
    std::int64_t streams[kMostDevices] = {};
  };

  static Here& here() {
    static thread_local Here here;
    return here;
  }

  Driver()
      : count_(static_cast<int>(number_from_environment("FAKEDEV_DEVICES", 2))),
        capacity_(static_cast<std::size_t>(number_from_environment("FAKEDEV_MEMORY_MB", 4096)) << 20),
        latency_us_(number_from_environment("FAKEDEV_LATENCY_US", 0)) {
    if (count_ < 1 || count_ > kMostDevices) throw Error("FAKEDEV_DEVICES: from 1 to 8 devices are possible");
    if (capacity_ == 0) throw Error("FAKEDEV_MEMORY_MB: at least 1 is expected");
    if (const char* text = std::getenv("FAKEDEV_FAULT")) faults_.set(text);
    if (const char* file = std::getenv("FAKEDEV_LOST_FILE")) lost_file_ = file;
    for (int index = 0; index < kMostDevices; ++index) devices_[index].index = index;
    std::atexit([] { get().end(); });
  }

  // Kernels use torch, which is taken down when the process ends: none may run then.
  void end() {
    if (in_bad_fork()) return;
    Lock lock(mutex_);
    ending_ = true;
    changed_.wait_for(lock, std::chrono::seconds(1), [&] {
      for (const Device& device : devices_)
        for (const auto& stream : device.streams)
          if (stream.second->in_kernel) return false;
      return true;
    });
  }

  int checked(int index) const {
    if (index < 0 || index >= count_) throw Error("invalid device ordinal " + std::to_string(index));
    return index;
  }

  void check_fork() const {
    if (in_bad_fork())
      throw Error("cannot re-initialize fakedev in a forked subprocess; use the 'spawn' start method");
  }

  // What an earlier kernel has left is told by the next call, whatever that is.
  void check_error(Lock& lock, int index) {
    Device& device = devices_[checked(index)];
    changed_.wait(lock, [&] { return device.failing == 0 || !device.error.empty(); });
    if (!device.error.empty())
      throw Error(device.error + "\nErrors of kernels are reported by a later call: the stack may be another one's.");
    if (is_lost(device)) throw Error("the device is lost");
  }

  bool is_lost(Device& device) const {
    if (!lost_file_.empty() && access(lost_file_.c_str(), F_OK) == 0) device.lost = true;
    return device.lost;
  }

  void check(Lock& lock, int index) {
    check_fork();
    check_error(lock, index);
    await_loading(lock, open(index));
  }

  void await_loading(Lock& lock, const Device& device) {
    changed_.wait(lock, [&] { return !device.loading; });
  }

  Device& open(int index) {
    Device& device = devices_[checked(index)];
    if (device.host) return device;
    owner_ = getpid();
    lazy_ = is_set_to("CUDA_MODULE_LOADING", "LAZY");
    handle_per_stream_ = is_set_to("FAKEDEV_HANDLES", "stream");
    const std::string name = "fakedev:" + std::to_string(index);
    device.file = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (device.file < 0 || ftruncate(device.file, static_cast<off_t>(capacity_)) != 0)
      throw Error("no file for its memory: " + std::string(std::strerror(errno)));
    device.kernel = mapped(device.file, PROT_READ | PROT_WRITE);
    device.host = mapped(device.file, PROT_NONE);
    device.free = {{0, capacity_}};
    return device;
  }

  char* mapped(int file, int protection) const {
    void* place = mmap(nullptr, capacity_, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (place == MAP_FAILED) throw Error("its memory cannot be mapped: " + std::string(std::strerror(errno)));
    return static_cast<char*>(place);
  }

  // streams

  void enqueue(Stream& stream, Job job) {
    Device& device = devices_[stream.device];
    if (job.is_kernel) {
      if (faults_.fires("lost")) device.lost = true;
      if (is_lost(device)) throw Error("the device is lost");
      job.fails = faults_.fires("late_error");
      job.hangs = faults_.fires("hang");
      device.failing += job.fails;
    }
    if (job.draw) job.seed = job.draw();
    if (!stream.started) {
      stream.started = true;
      std::thread([this, &stream] { serve(stream); }).detach();
    }
    stream.queue.push_back(std::move(job));
    ++stream.submitted;
    stream.arrived.notify_one();
  }

  void serve(Stream& stream) {
    Device& device = devices_[stream.device];
    Lock lock(mutex_);
    for (;;) {
      stream.arrived.wait(lock, [&] { return !stream.queue.empty(); });
      if (ending_) changed_.wait(lock, [] { return false; });
      Job job = std::move(stream.queue.front());
      stream.queue.pop_front();
      if (job.hangs) changed_.wait(lock, [] { return false; });
      const bool runs = !job.is_kernel || device.error.empty();
      stream.in_kernel = job.is_kernel;
      lock.unlock();
      const std::string failure = runs ? done(job) : "";
      job.work = nullptr;  // without the lock: it may hold tensors of Python
      lock.lock();
      stream.in_kernel = false;
      if (device.error.empty()) device.error = failure;
      device.failing -= job.fails;
      ++stream.completed;
      if (job.reached) {
        job.reached->ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
        job.reached->done = true;
      }
      changed_.notify_all();
    }
  }

  // Runs it; returns why it failed.
  std::string done(const Job& job) const {
    if (job.is_kernel && latency_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(latency_us_));
    if (job.fails) return "an illegal memory access was encountered";
    try {
      if (job.work) job.work(job.seed);
    } catch (const std::exception& error) {
      return std::string("device-side assert triggered: ") + error.what();
    }
    return "";
  }

  static Job arrival(const std::shared_ptr<Marker>& marker) { return {{}, {}, false, marker}; }

  Job waiting_for(const std::shared_ptr<Marker>& marker) {
    return {[this, marker](std::uint64_t) {
              Lock lock(mutex_);
              changed_.wait(lock, [&] { return marker->done; });
            },
            {}, false};
  }

  void wait_for(Lock& lock, const Stream& stream) {
    const std::uint64_t target = stream.submitted;
    changed_.wait(lock, [&] { return stream.completed >= target; });
  }

  void wait_for_all(Lock& lock, const Device& device) {
    std::vector<const Stream*> streams;
    for (const auto& one : device.streams) streams.push_back(one.second.get());
    for (const Stream* stream : streams) wait_for(lock, *stream);
  }

  // captures

  void close(const std::shared_ptr<Capture>& capture) {
    for (Stream* stream : capture->streams) {
      stream->capture.reset();
      stream->recorded = stream->joined = 0;
    }
    capture->active = false;
    captures_.erase(std::find(captures_.begin(), captures_.end(), capture));
  }

  static void check_valid(const Capture& capture) {
    if (!capture.invalid.empty())
      throw Error("operation failed due to a previous error during capture (" + capture.invalid + ")");
  }

  static void forbid_in_capture(Stream& stream, const std::string& what) {
    if (!stream.capture) return;
    stream.capture->invalid = what;
    throw Error("operation not permitted when stream is capturing (" + what + ")");
  }

  static void forbid_captured(const Event& event) {
    if (event.last->capture) throw Error("operation not permitted on an event last recorded in a capturing stream");
  }

  // What CUDA calls potentially unsafe: it ends captures of mode global whoever does it, and, unless they are relaxed,
  // those of the thread that does it.
  void forbid_unsafe(const std::string& what) {
    bool forbidden = false;
    for (const std::shared_ptr<Capture>& capture : captures_) {
      const bool own = capture->thread == std::this_thread::get_id();
      if (own ? capture->mode == CaptureMode::kRelaxed : capture->mode != CaptureMode::kGlobal) continue;
      capture->invalid = what + (own ? "" : " by another thread");
      forbidden = true;
    }
    if (forbidden) throw Error("operation not permitted when stream is capturing (" + what + ")");
  }

  // memory

  static Block* from_cache(Device& device, Stream& stream, std::size_t size) {
    const auto found = device.cached.find({&stream, size});
    if (found == device.cached.end() || found->second.empty()) return nullptr;
    Block* block = found->second.back();
    found->second.pop_back();
    return block;
  }

  Block* from_device(Lock& lock, Device& device, Stream& stream, std::size_t size) {
    for (const bool last : {false, true}) {
      const auto hole =
          std::find_if(device.free.begin(), device.free.end(), [&](const auto& one) { return one.second >= size; });
      if (hole != device.free.end()) {
        auto* block = new Block{device.index, hole->first, size, &stream};
        if (hole->second > size) device.free[hole->first + size] = hole->second - size;
        device.free.erase(hole);
        device.reserved += size;
        return block;
      }
      if (last || stream.capture) break;
      drop_cached(lock, device);
    }
    throw OutOfMemory(out_of_memory(device, size));
  }

  void drop_cached(Lock& lock, Device& device) {
    const auto dropped = std::exchange(device.cached, {});  // not what others release while this waits
    wait_for_all(lock, device);
    for (const auto& list : dropped)
      for (Block* block : list.second) {
        fallocate(device.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(block->offset),
                  static_cast<off_t>(block->size));
        device.reserved -= block->size;
        give_back(device, block->offset, block->size);
        delete block;
      }
  }

  static void give_back(Device& device, std::size_t offset, std::size_t size) {
    auto after = device.free.lower_bound(offset);
    if (after != device.free.end() && after->first == offset + size) {
      size += after->second;
      after = device.free.erase(after);
    }
    if (after != device.free.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    device.free[offset] = size;
  }

  std::string out_of_memory(const Device& device, std::size_t size) const {
    std::ostringstream text;
    text << "fakedev out of memory. Tried to allocate " << size << " bytes. fakedev:" << device.index << " has "
         << capacity_ << " bytes, of which " << capacity_ - device.reserved << " are free and " << device.allocated
         << " are allocated by this process";
    return text.str();
  }

  const int count_;
  const std::size_t capacity_;
  const long latency_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Device devices_[kMostDevices];
  Faults faults_;
  std::string lost_file_ = {};
  bool lazy_ = false, handle_per_stream_ = false;
  std::vector<std::shared_ptr<Capture>> captures_;
  std::atomic<pid_t> owner_{0};  // who has opened a device
  bool ending_ = false;
};

}  // namespace fakedev
