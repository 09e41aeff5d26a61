// The C++ worker: serves the verbs `run` and `benchmark` of docs/formats/wire.md with LibTorch alone, as a C++ model
// server would.
//
//     worker RUN_DIR CONTROLLER_PID
//
// One translation unit. harness/environments/native.py compiles it against the LibTorch in an environment's wheel.

#include <fcntl.h>
#include <unistd.h>

#include "defects.hpp"
#include "lifecycle.hpp"

int main(int count, char** arguments) {
  using namespace gate;
  if (count != 3) {
    std::fputs("usage: worker RUN_DIR CONTROLLER_PID\n", stderr);
    return wire::kExitRefused;
  }
  lifecycle::take_signals_back();
  processes::die_with_parent(static_cast<pid_t>(std::atoi(arguments[2])));
  const int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // what models print goes where errors go
  try {
    lifecycle::work_in(arguments[1], answers);
  } catch (...) {
    std::fprintf(stderr, "the worker itself failed: %s\n", current_failure().message.c_str());
    lifecycle::leave(wire::kExitBroken);
  }
}
