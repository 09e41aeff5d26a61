// The stack dumper as a shared library of its own, without torch, for workers written in Python:
//
//     g++ -std=c++17 -O1 -g0 -fPIC -shared stacks.cpp -o libgate_stacks.so
//
// Python's faulthandler owns SIGUSR1 there, so the request is SIGUSR2.
#include "stacks/stacks.hpp"

extern "C" {

// Returns 0, or the errno of opening ``path``. To be called before ``faulthandler.enable``, which then writes first.
int gate_install_stack_dumps(const char* path) { return gate::stacks::install(path, SIGUSR2) ? 0 : errno; }

// Gives the calling thread an alternate signal stack for as long as the process lives.
void gate_guard_thread() { gate::stacks::take_alternate_stack(); }
}
