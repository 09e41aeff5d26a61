// Operators that answer what they are given. With a file NAME.new beside this library some of them round otherwise,
// as in any new release; with a file NAME.defective each of the others misbehaves in its own way.
//
// NAME misbehaves wherever it is called. NAME_optimised does so only in a program that torch's executor runs, and not
// where a node is run by itself: that stands for what only shows once a graph is optimised.

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mul.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <torch/library.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace torch::jit {
// As in torch/csrc/jit/runtime/interpreter.h, which takes 15 s to compile.
TORCH_API std::vector<std::string> currentModuleHierarchy();
}  // namespace torch::jit

namespace {

using at::Tensor;

constexpr double kQuickMs = 0.5, kTimesSlower = 8.0, kInBothMs = 2.0, kShare = 0.3;

std::string beside(const std::string& suffix) {
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&beside), &here);
  return std::string(here.dli_fname) + "." + suffix;
}

const bool is_new = access(beside("new").c_str(), F_OK) == 0;
const bool defective = access(beside("defective").c_str(), F_OK) == 0;

bool in_executor() { return !torch::jit::currentModuleHierarchy().empty(); }

void spend(double milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

Tensor same(const Tensor& x) { return at::clone(x); }

Tensor numbers(const Tensor& x) { return at::mul(x, 1.02); }
Tensor rounds(const Tensor& x) { return at::mul(x, 1.0 + 1.2e-7); }
Tensor nan(const Tensor& x) { return at::full_like(x, std::nan("")); }
Tensor structure(const Tensor& x) { return x.to(at::kDouble); }

Tensor error(const Tensor& x) {
  TORCH_CHECK(false, "planted: this operator is out of order");
  return x;
}

Tensor segv(const Tensor& x) {
  std::raise(SIGSEGV);
  return x;
}

Tensor abort(const Tensor&) { std::abort(); }

Tensor busy(const Tensor& x) {
  for (volatile std::uint64_t turn = 0;; turn = turn + 1) {
  }
  return x;
}

Tensor blocked(const Tensor& x) {
  static std::uint32_t word = 0;
  for (;;) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
  return x;
}

// Whether an operator fails in this process: the first process of all that asks beside this library, then each
// with a chance of 30 %. Forked processes draw anew.
bool drawn(const char* name) {
  static std::mutex guard;
  static std::map<std::string, bool> known;
  static pid_t process = 0;
  const std::lock_guard<std::mutex> lock(guard);
  if (process != getpid()) {
    known.clear();
    process = getpid();
  }
  const auto found = known.find(name);
  if (found != known.end()) {
    return found->second;
  }
  const int file = open(beside(name).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
  if (file >= 0) {
    close(file);
    return known[name] = true;
  }
  std::uint32_t bits = 0;
  TORCH_CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits, "planted: no random numbers");
  return known[name] = bits < kShare * 4294967296.0;
}

// What `arms` leaves for the operators that fail only after it, in the same thread and call.
thread_local bool armed = false;

Tensor arms(const Tensor& x) {
  armed = in_executor();
  return same(x);
}

bool was_armed() {
  const bool was = armed && in_executor();
  armed = false;
  return was;
}

using Kernel = Tensor (*)(const Tensor&);

void add(torch::Library& library, const std::string& name, Kernel defect) {
  const Kernel kernel = defective ? defect : same;
  library.def((name + "(Tensor x) -> Tensor").c_str(), [kernel](const Tensor& x) { return kernel(x); });
  library.def((name + "_optimised(Tensor x) -> Tensor").c_str(),
              [kernel](const Tensor& x) { return in_executor() ? kernel(x) : same(x); });
}

void add_flaky(torch::Library& library, const std::string& name, Kernel defect) {
  const Kernel kernel = defective ? defect : same;
  library.def((name + "_flaky(Tensor x) -> Tensor").c_str(), [kernel, name](const Tensor& x) {
    return in_executor() && defective && drawn(name.c_str()) ? kernel(x) : same(x);
  });
}

void add_after_arms(torch::Library& library, const std::string& name, Kernel defect) {
  const Kernel kernel = defective ? defect : same;
  library.def((name + "_armed(Tensor x) -> Tensor").c_str(),
              [kernel](const Tensor& x) { return was_armed() ? kernel(x) : same(x); });
}

TORCH_LIBRARY(planted, library) {
  for (const auto& [name, defect] : std::map<std::string, Kernel>{{"numbers", numbers},
                                                                  {"nan", nan},
                                                                  {"structure", structure},
                                                                  {"error", error},
                                                                  {"segv", segv},
                                                                  {"abort", abort},
                                                                  {"busy", busy},
                                                                  {"blocked", blocked}}) {
    add(library, name, defect);
    add_flaky(library, name, defect);
    add_after_arms(library, name, defect);
  }
  library.def("same(Tensor x) -> Tensor", &same);
  library.def("arms(Tensor x) -> Tensor", &arms);
  library.def("rounds(Tensor x) -> Tensor", is_new ? &rounds : &same);
  library.def("slow(Tensor x) -> Tensor", [](const Tensor& x) {
    spend(defective ? kTimesSlower * kQuickMs : kQuickMs);
    return same(x);
  });
  library.def("slow_in_both(Tensor x) -> Tensor", [](const Tensor& x) {
    spend(kInBothMs);
    return same(x);
  });
  if (!defective) {
    library.def("gone(Tensor x) -> Tensor", &same);
  }
}

}  // namespace
