// One dump: every thread notes its own return addresses, and one thread writes them all.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "stacks/shared.hpp"
#include "stacks/modules.hpp"
#include "stacks/text.hpp"

namespace gate::stacks::detail {

struct Walk {
  Slot* slot;
  long seen = 0;
  bool own_handler = true;  // the frames up to the first interrupted one are the dumper's
};

inline _Unwind_Reason_Code note_frame(_Unwind_Context* context, void* opaque) {
  auto* walk = static_cast<Walk*>(opaque);
  Slot& slot = *walk->slot;
  int interrupted = 0;
  std::uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
  if (++walk->seen > kDeepest) return _URC_END_OF_STACK;
  if (interrupted && walk->own_handler) {
    walk->own_handler = false;
    slot.total = 0;
    interrupted = 0;
  } else if (!interrupted && address) {
    --address;  // the call, not the line after it
  }
  if (!address && slot.total) return _URC_END_OF_STACK;
  if (interrupted) address |= kInterrupted;
  if (slot.total < kHead) slot.head[slot.total] = address;
  slot.tail[slot.total % kTail] = address;
  ++slot.total;
  return _URC_NO_REASON;
}

// Unwinding may read a bad address, out of the middle of another unwinding (an exception being thrown) or through a
// stack that is damaged: what was noted until then is kept.
inline void note_stack(Slot& slot) {
  slot.total = 0;
  slot.ident = (std::uintptr_t)pthread_self();
  static Walk walks[kThreads];
  Walk& walk = walks[&slot - shared.slots];
  walk = {&slot};
  if (sigsetjmp(slot.escape, 1) == 0) {
    slot.walking.store(true);
    _Unwind_Backtrace(note_frame, &walk);
  }
  slot.walking.store(false);
}

inline void put_frame(long index, std::uintptr_t marked) {
  std::uintptr_t address = marked & ~kInterrupted;
  if (marked & kInterrupted) put("    <signal handler called>\n");
  put_all(index < 10 ? "  " : " ", index, " ", Hex{address, 16});
  const Module* module = module_of(address);
  put_all(" in ", module ? shared.paths + module->path : "?");
  if (module != nullptr && module->base != 0) put_all("+", Hex{address - module->bias});
  put("\n");
}

inline void put_thread(const Slot& slot) {
  const char letter[2] = {slot.letter, 0};
  put_all("-- thread ", slot.tid, " ", letter, " ", Hex{slot.ident, 16}, " ", slot.name);
  if (slot.state.load() != kNoted) {
    put(slot.blocks ? ": blocks signals\n" : ": no answer\n");
    return;
  }
  put("\n");
  each_frame(slot, [&slot](long index, std::uintptr_t address) {
    if (index > kHead && index == slot.total - kTail) put_all("    ... ", index - kHead, " frames left out\n");
    put_frame(index, address);
  });
}

inline Slot* take_slot(pid_t tid) {
  while (shared.used < kThreads && shared.slots[shared.used].state.load() == kNoting) ++shared.used;  // stuck there
  if (shared.used == kThreads) {
    ++shared.not_listed;
    return nullptr;
  }
  Slot& slot = shared.slots[shared.used++];
  slot.tid = tid;
  slot.ident = 0;
  slot.letter = '?';
  slot.blocks = false;
  slot.total = 0;
  std::memset(slot.name, 0, sizeof(slot.name));
  describe(slot);
  return &slot;
}

struct DirectoryEntry {  // what getdents64 fills in
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

inline void ask_others() {
  alignas(8) static char entries[4096];
  const pid_t pid = getpid(), own = own_tid();
  int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  long got = 0;
  while (folder >= 0 && (got = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->length;
      const char* text = entry->name;
      pid_t tid = static_cast<pid_t>(parse(&text, 10));
      if (tid == 0 || tid == own) continue;
      Slot* slot = take_slot(tid);
      if (slot == nullptr) continue;
      slot->state.store(slot->blocks ? kGivenUp : kRequested);
      if (!slot->blocks && syscall(SYS_tgkill, pid, tid, ask_signal()) != 0) slot->state.store(kGivenUp);
    }
  }
  if (folder >= 0) close(folder);
}

inline void wait_for_answers(int from) {
  const pid_t pid = getpid();
  const std::int64_t limit = now_ns() + kAnswerNs;
  for (int i = from; i < shared.used; ++i) {
    Slot& slot = shared.slots[i];
    while (slot.state.load() == kRequested || slot.state.load() == kNoting) {
      if (now_ns() > limit || syscall(SYS_tgkill, pid, slot.tid, 0) != 0) break;
      nap(500000);
    }
    int requested = kRequested;
    slot.state.compare_exchange_strong(requested, kGivenUp);
  }
}

inline void put_end() {
  if (shared.not_listed) put_all("-- ", shared.not_listed, " more threads\n");
  put_all("== gate stacks ", shared.dumps, " end\n");
  flush();
}

// Write the stacks of all threads, this one first; its own frames are in slot 0 afterwards.
inline void dump(const char* kind, int number, std::uintptr_t address, std::uintptr_t caller) {
  shared.used = 0;
  shared.not_listed = 0;
  ++shared.dumps;
  put_all("== gate stacks ", shared.dumps, " ", kind, " ", signal_name(number), " pid ", getpid(), " tid ", own_tid());
  const bool crash = kind[0] == 'c';
  if (crash) put_all(" address ", Hex{address});
  put("\n");
  if (crash) flush();  // whatever comes now may fail
  read_modules();
  Slot* own = take_slot(own_tid());
  if (own == nullptr) return;
  note_stack(*own);
  if (own->total == 1 && caller) {  // a call to where no code is: the return address is on top of the stack
    own->head[1] = own->tail[1] = caller - 1;
    own->total = 2;
  }
  own->state.store(kNoted);
  const int first = static_cast<int>(own - shared.slots);
  if (crash) {
    put_thread(*own);
    flush();
  }
  const int others = shared.used;
  ask_others();
  wait_for_answers(others);
  for (int i = crash ? others : first; i < shared.used; ++i) {
    if (shared.slots[i].tid) put_thread(shared.slots[i]);
  }
  put_end();
  for (int i = first; i < shared.used; ++i) {
    int noted = shared.slots[i].state.load();
    if (noted != kNoting) shared.slots[i].state.store(kFree);
  }
}

}  // namespace gate::stacks::detail
