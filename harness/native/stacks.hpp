// Stacks of all threads of this process, written by the process itself: on request and on a fatal signal.
//
//     gate::stacks::install("stacks.txt");      once, early; again in a forked child, with the child's file
//     gate::stacks::ThreadGuard guard;          in every thread whose stack overflow is to be seen
//
// On the request signal and on SIGSEGV, SIGABRT, SIGBUS, SIGILL and SIGFPE every thread of /proc/self/task is sent
// a signal, notes its own return addresses, and goes on: system calls restart, a futex wait too. One thread, the
// faulting one or the one that got the request, then writes them all. After a fatal signal the previous handler is
// put back and the signal raised again, so that the wait status shows it.
//
// Neither malloc nor the dynamic loader's lock is used: either may be what the process hangs on. That rules out
// backtrace_symbols_fd and dladdr, which take that lock; symbols come from the ELF images in memory. (Unwinding itself
// takes no lock from glibc 2.35 with GCC 12 on, and briefly the loader's before.) Every wait is bounded.
//
// The text, appended to whatever else is in the file:
//
//     == gate stacks armed SIGUSR1 pid 71
//     == gate stacks 1 request SIGUSR1 pid 71 tid 71
//     -- thread 71 S 0x00007f0c0f3d2740 worker
//       0 0x00007f0c01c0de29 _ZN3c104failEv+0x1d in /lib/libc10.so+0x6de29
//         <signal handler called>
//       1 0x00007f0c01c0de2a ? in ?
//         ... 812 frames left out
//     -- thread 72 S 0x0000000000000000 pool: no answer
//     == gate stacks 1 end
//
// and "crash SIGSEGV pid 71 tid 71 address 0x10" in place of "request SIGUSR1 ...". Third in a thread's line is its
// pthread_t, by which Python's faulthandler names threads. Addresses are those of the call instructions; after + stands
// the offset within the function, and within the image as its symbol table counts.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gate::stacks {
namespace detail {

constexpr int kThreads = 512, kHead = 96, kTail = 64, kModules = 2048, kPaths = 256 * 1024, kAddresses = 16 * 1024,
              kSymbols = 512 * 1024, kLongest = 1024, kPrograms = 32;
constexpr long kDeepest = 500000;
constexpr int kFatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE};
constexpr std::size_t kAlternateStack = 64 * 1024;
constexpr std::int64_t kAnswerNs = 400000000, kOtherCrashNs = 3000000000;
constexpr std::uintptr_t kInterrupted = std::uintptr_t(1) << 63;  // a mark: the frame below this one is a handler's

enum State : int { kFree, kAsked, kNoting, kNoted, kGivenUp };

struct Slot {
  std::atomic<int> state{kFree};
  pid_t tid = 0;
  std::uintptr_t ident = 0;
  char letter = '?';
  char name[32] = {};
  bool blocks = false;
  long total = 0;
  sigjmp_buf escape;
  std::atomic<bool> walking{false};
  std::uintptr_t head[kHead] = {};
  std::uintptr_t tail[kTail] = {};  // a ring: the outermost frames of a stack that is deeper than kHead
};

struct Module {
  std::uintptr_t begin, end, base, bias;  // base: where the file's first byte is mapped, 0 if it is not
  int path;
};

struct Name {
  std::uintptr_t address;
  int symbol;  // where in the pool, -1 while unknown
  std::uintptr_t offset;
};

struct Shared {
  int file = -1;
  int request = 0;
  std::atomic<pid_t> busy{0};  // the thread that writes a dump
  std::atomic<pid_t> crashing{0};
  int dumps = 0;
  struct sigaction previous[NSIG] = {};
  Slot slots[kThreads];
  int used = 0, module_count = 0, path_bytes = 0, name_count = 0;
  long not_listed = 0;
  Module modules[kModules];
  char paths[kPaths];
  Name names[kAddresses];
  char symbols[kSymbols];
  int symbol_bytes = 0;
  char text[32 * 1024];
  std::size_t length = 0;
};

inline Shared shared;

inline int ask_signal() { return SIGRTMAX - 4; }
inline pid_t own_tid() { return static_cast<pid_t>(syscall(SYS_gettid)); }

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

inline void nap(long ns) {
  timespec length{0, ns};
  nanosleep(&length, nullptr);
}

// --- text -----------------------------------------------------------------------------------------------------------

inline void flush() {
  std::size_t done = 0;
  while (done < shared.length) {
    ssize_t wrote = write(shared.file, shared.text + done, shared.length - done);
    if (wrote <= 0 && errno != EINTR) break;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  shared.length = 0;
}

inline void put(const char* text) {
  for (; *text; ++text) {
    if (shared.length == sizeof(shared.text)) flush();
    shared.text[shared.length++] = *text;
  }
}

inline void put_number(std::uint64_t value, unsigned base = 10, int width = 1) {
  char digits[24] = {};
  int at = sizeof(digits) - 1;
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
    --width;
  } while ((value || width > 0) && at > 0);
  put(digits + at);
}

inline void put_hex(std::uintptr_t value, int width = 1) {
  put("0x");
  put_number(value, 16, width);
}

inline const char* signal_name(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGUSR1: return "SIGUSR1";
    case SIGUSR2: return "SIGUSR2";
    default: return "signal";
  }
}

// --- reading /proc without stdio ------------------------------------------------------------------------------------

struct Lines {  // one reader at a time: the buffer is shared, since the alternate stack may be small
  int file;
  std::size_t have = 0, at = 0;
  explicit Lines(const char* path) : file(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Lines() {
    if (file >= 0) close(file);
  }
  static char* buffer() {
    static char bytes[8192];
    return bytes;
  }
  bool next(char* line, std::size_t size) {
    std::size_t length = 0;
    while (file >= 0) {
      if (at == have) {
        ssize_t got = read(file, buffer(), 8192);
        if (got <= 0) break;
        have = static_cast<std::size_t>(got);
        at = 0;
      }
      char byte = buffer()[at++];
      if (byte == '\n') {
        line[length] = 0;
        return true;
      }
      if (length + 1 < size) line[length++] = byte;
    }
    line[length] = 0;
    return length > 0;
  }
};

inline std::uintptr_t parse(const char** text, unsigned base) {
  std::uintptr_t value = 0;
  for (;; ++*text) {
    char byte = **text;
    unsigned digit = 99;
    if (byte >= '0' && byte <= '9') digit = unsigned(byte - '0');
    if (byte >= 'a' && byte <= 'f') digit = unsigned(byte - 'a') + 10;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

inline char* task_path(pid_t tid, const char* leaf) {
  static char path[64];
  char digits[16] = {};
  int at = sizeof(digits) - 1;
  for (unsigned value = static_cast<unsigned>(tid); value; value /= 10) digits[--at] = char('0' + value % 10);
  std::strcpy(path, "/proc/self/task/");
  std::strcat(path, digits + at);
  return std::strcat(path, leaf);
}

inline void describe(Slot& slot) {
  static char line[256];
  Lines lines(task_path(slot.tid, "/status"));
  while (lines.next(line, sizeof(line))) {
    if (!std::strncmp(line, "Name:\t", 6)) {
      std::strncpy(slot.name, line + 6, sizeof(slot.name) - 1);
    } else if (!std::strncmp(line, "State:\t", 7)) {
      slot.letter = line[7];
    } else if (!std::strncmp(line, "SigBlk:\t", 8)) {
      const char* text = line + 8;
      slot.blocks = parse(&text, 16) >> (ask_signal() - 1) & 1;
    }
  }
}

// --- images and their symbols ---------------------------------------------------------------------------------------

// Copies memory that another thread may be unmapping (dlclose): false where it is gone. Without this system call
// (an old container) it is read as it is.
inline bool peek(void* to, std::uintptr_t from, std::size_t size) {
  iovec local{to, size}, remote{reinterpret_cast<void*>(from), size};
  long got = syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
  if (got < 0 && (errno == ENOSYS || errno == EPERM)) {
    std::memcpy(to, remote.iov_base, size);
    return true;
  }
  return got == static_cast<long>(size);
}

struct Image {  // what is needed of an ELF file in memory
  std::uintptr_t bias = 0, symbols = 0, strings = 0, hash = 0;
};

// How far the image's own addresses are from those in memory, and its program headers; false if there is none.
inline bool headers_of(std::uintptr_t base, std::uintptr_t* bias, ElfW(Phdr) * programs, int* count) {
  ElfW(Ehdr) header;
  if (base == 0 || !peek(&header, base, sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  *count = std::min<int>(header.e_phnum, kPrograms);
  if (!peek(programs, base + header.e_phoff, sizeof(*programs) * static_cast<std::size_t>(*count))) return false;
  for (int i = 0; i < *count; ++i) {
    if (programs[i].p_type != PT_LOAD || programs[i].p_offset != 0) continue;
    *bias = base - programs[i].p_vaddr;
    return true;
  }
  return false;
}

inline void read_modules() {
  static char line[PATH_MAX + 128], first[PATH_MAX];  // first: the file whose first byte is mapped at base
  shared.module_count = shared.path_bytes = 0;
  Lines lines("/proc/self/maps");
  std::uintptr_t base = 0;
  while (lines.next(line, sizeof(line)) && shared.module_count < kModules) {
    const char* at = line;
    std::uintptr_t begin = parse(&at, 16);
    std::uintptr_t end = parse(&++at, 16);
    const char* rights = ++at;
    at += 5;
    std::uintptr_t offset = parse(&at, 16);
    const char* path = std::strchr(at, '/');
    if (path == nullptr) path = std::strchr(at, '[');  // [vdso]
    if (path == nullptr) continue;
    if (offset == 0) {
      base = rights[0] == 'r' && path[0] == '/' ? begin : 0;
      std::strncpy(first, path, sizeof(first) - 1);
    }
    if (rights[2] != 'x') continue;
    const bool known = base != 0 && !std::strcmp(first, path);
    std::size_t size = std::strlen(path) + 1;
    if (shared.path_bytes + size > std::size_t(kPaths)) return;
    std::memcpy(shared.paths + shared.path_bytes, path, size);
    static ElfW(Phdr) programs[kPrograms];
    Module module{begin, end, known ? base : 0, 0, shared.path_bytes};
    int count = 0;
    if (!headers_of(module.base, &module.bias, programs, &count)) module.base = 0;
    shared.modules[shared.module_count++] = module;
    shared.path_bytes += static_cast<int>(size);
  }
}

inline const Module* module_of(std::uintptr_t address) {
  const Module* begin = shared.modules;
  const Module* end = begin + shared.module_count;
  const Module* found =
      std::upper_bound(begin, end, address, [](std::uintptr_t value, const Module& m) { return value < m.end; });
  return found != end && found->begin <= address ? found : nullptr;
}

inline Image image_of(const Module& module) {
  static ElfW(Phdr) programs[kPrograms];
  static ElfW(Dyn) entries[128];
  Image image;
  int count = 0;
  if (!headers_of(module.base, &image.bias, programs, &count)) return image;
  for (int i = 0; i < count; ++i) {
    if (programs[i].p_type != PT_DYNAMIC) continue;
    std::size_t wanted = std::min(sizeof(entries), static_cast<std::size_t>(programs[i].p_memsz));
    if (!peek(entries, image.bias + programs[i].p_vaddr, wanted)) return image;
    for (std::size_t k = 0; k < wanted / sizeof(*entries) && entries[k].d_tag != DT_NULL; ++k) {
      std::uintptr_t value = entries[k].d_un.d_ptr;
      if (value < image.bias) value += image.bias;  // the loader relocates these in place, mostly
      if (entries[k].d_tag == DT_SYMTAB) image.symbols = value;
      if (entries[k].d_tag == DT_STRTAB) image.strings = value;
      if (entries[k].d_tag == DT_GNU_HASH) image.hash = value;
    }
  }
  return image;
}

inline std::size_t symbol_count(std::uintptr_t hash) {
  static std::uint32_t words[1024];
  std::uint32_t head[4], last = 0;
  if (!peek(head, hash, sizeof(head))) return 0;
  std::uintptr_t buckets = hash + sizeof(head) + std::uintptr_t(head[2]) * sizeof(ElfW(Addr));
  for (std::uint32_t done = 0; done < head[0];) {
    std::uint32_t now = std::min<std::uint32_t>(1024, head[0] - done);
    if (!peek(words, buckets + 4 * std::uintptr_t(done), 4 * std::size_t(now))) return 0;
    for (std::uint32_t i = 0; i < now; ++i) last = std::max(last, words[i]);
    done += now;
  }
  if (last < head[1]) return head[1];
  std::uintptr_t chain = buckets + 4 * std::uintptr_t(head[0]);
  for (std::uint32_t word = 0; !(word & 1); ++last) {
    if (!peek(&word, chain + 4 * std::uintptr_t(last - head[1]), 4)) return 0;
  }
  return last;
}

inline int keep_symbol(std::uintptr_t text) {
  if (shared.symbol_bytes + kLongest > kSymbols) return -1;
  char* to = shared.symbols + shared.symbol_bytes;
  for (std::size_t have = 0; have < std::size_t(kLongest);) {  // up to the next 256 bytes, which are on one page
    std::size_t now = std::min<std::size_t>(256 - (text + have) % 256, std::size_t(kLongest) - have);
    if (!peek(to + have, text + have, now)) return -1;
    if (std::memchr(to + have, 0, now) != nullptr) {
      int at = shared.symbol_bytes;
      shared.symbol_bytes += static_cast<int>(std::strlen(to)) + 1;
      return at;
    }
    have += now;
  }
  return -1;  // too long: the reader finds it in the file
}

// Name the addresses [first, last) that lie in ``module``: one pass over its dynamic symbols.
inline void name_from(const Module& module, Name* first, Name* last) {
  static ElfW(Sym) symbols[512];
  const Image image = image_of(module);
  if (!image.symbols || !image.strings || !image.hash) return;
  const std::size_t count = symbol_count(image.hash);
  for (std::size_t done = 0; done < count;) {
    std::size_t now = std::min<std::size_t>(512, count - done);
    if (!peek(symbols, image.symbols + done * sizeof(*symbols), now * sizeof(*symbols))) return;
    for (std::size_t i = 0; i < now; ++i) {
      const auto& symbol = symbols[i];
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0 || (symbol.st_info & 15) == STT_TLS) continue;
      std::uintptr_t begin = image.bias + symbol.st_value;
      Name* at = std::lower_bound(first, last, begin, [](const Name& n, std::uintptr_t b) { return n.address < b; });
      if (at >= last || at->address >= begin + symbol.st_size || at->symbol >= 0) continue;
      int kept = keep_symbol(image.strings + symbol.st_name);
      for (; at < last && at->address < begin + symbol.st_size; ++at) {
        at->symbol = kept;
        at->offset = at->address - begin;
      }
    }
    done += now;
  }
}

inline bool lower(const Name& a, const Name& b) { return a.address < b.address; }

template <class F>
void each_frame(const Slot& slot, F&& visit) {
  long head = std::min(slot.total, long(kHead));
  for (long i = 0; i < head; ++i) visit(i, slot.head[i]);
  for (long i = std::max(head, slot.total - kTail); i < slot.total; ++i) visit(i, slot.tail[i % kTail]);
}

inline void name_frames(int from, int to) {
  shared.name_count = shared.symbol_bytes = 0;
  for (int i = from; i < to; ++i) {
    if (shared.slots[i].state.load() != kNoted) continue;
    each_frame(shared.slots[i], [](long, std::uintptr_t address) {
      if (shared.name_count < kAddresses) shared.names[shared.name_count++] = {address & ~kInterrupted, -1, 0};
    });
  }
  Name* end = shared.names + shared.name_count;
  std::make_heap(shared.names, end, lower);  // in place and without recursion
  std::sort_heap(shared.names, end, lower);
  end = std::unique(shared.names, end, [](const Name& a, const Name& b) { return a.address == b.address; });
  shared.name_count = static_cast<int>(end - shared.names);
  for (Name* first = shared.names; first < end;) {
    const Module* module = module_of(first->address);
    Name* last = first + 1;
    while (module != nullptr && last < end && last->address < module->end) ++last;
    if (module != nullptr) name_from(*module, first, last);
    first = last;
  }
}

// --- noting and writing ---------------------------------------------------------------------------------------------

struct Walk {
  Slot* slot;
  long seen = 0;
  bool own_handler = true;  // the frames up to the first interrupted one are this file's
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
  put(index < 10 ? "  " : " ");
  put_number(std::uint64_t(index));
  put(" ");
  put_hex(address, 16);
  const Name wanted{address, -1, 0};
  const Name* end = shared.names + shared.name_count;
  const Name* name = std::lower_bound(static_cast<const Name*>(shared.names), end, wanted, lower);
  if (name != end && name->address == address && name->symbol >= 0) {
    put(" ");
    put(shared.symbols + name->symbol);
    put("+");
    put_hex(name->offset);
  } else {
    put(" ?");
  }
  const Module* module = module_of(address);
  put(" in ");
  put(module ? shared.paths + module->path : "?");
  if (module != nullptr && module->base != 0) {
    put("+");
    put_hex(address - module->bias);
  }
  put("\n");
}

inline void put_thread(const Slot& slot) {
  put("-- thread ");
  put_number(std::uint64_t(slot.tid));
  put(" ");
  char letter[2] = {slot.letter, 0};
  put(letter);
  put(" ");
  put_hex(slot.ident, 16);
  put(" ");
  put(slot.name);
  if (slot.state.load() != kNoted) {
    put(slot.blocks ? ": blocks signals\n" : ": no answer\n");
    return;
  }
  put("\n");
  each_frame(slot, [&slot](long index, std::uintptr_t address) {
    if (index > kHead && index == slot.total - kTail) {
      put("    ... ");
      put_number(std::uint64_t(index - kHead));
      put(" frames left out\n");
    }
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
      slot->state.store(slot->blocks ? kGivenUp : kAsked);
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
    while (slot.state.load() == kAsked || slot.state.load() == kNoting) {
      if (now_ns() > limit || syscall(SYS_tgkill, pid, slot.tid, 0) != 0) break;
      nap(500000);
    }
    int asked = kAsked;
    slot.state.compare_exchange_strong(asked, kGivenUp);
  }
}

inline void put_end() {
  if (shared.not_listed) {
    put("-- ");
    put_number(std::uint64_t(shared.not_listed));
    put(" more threads\n");
  }
  put("== gate stacks ");
  put_number(std::uint64_t(shared.dumps));
  put(" end\n");
  flush();
}

// Write the stacks of all threads, this one first; its own frames are in slot 0 afterwards.
inline void dump(const char* kind, int number, std::uintptr_t address, std::uintptr_t caller) {
  shared.used = 0;
  shared.not_listed = 0;
  ++shared.dumps;
  put("== gate stacks ");
  put_number(std::uint64_t(shared.dumps));
  put(" ");
  put(kind);
  put(" ");
  put(signal_name(number));
  put(" pid ");
  put_number(std::uint64_t(getpid()));
  put(" tid ");
  put_number(std::uint64_t(own_tid()));
  const bool crash = kind[0] == 'c';
  if (crash) {
    put(" address ");
    put_hex(address);
    put("\n");
    flush();  // whatever comes now may fail
  } else {
    put("\n");
  }
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
    name_frames(first, shared.used);
    put_thread(*own);
    flush();
  }
  const int others = shared.used;
  ask_others();
  wait_for_answers(others);
  name_frames(crash ? others : first, shared.used);
  for (int i = crash ? others : first; i < shared.used; ++i) {
    if (shared.slots[i].tid) put_thread(shared.slots[i]);
  }
  put_end();
  for (int i = first; i < shared.used; ++i) {
    int noted = shared.slots[i].state.load();
    if (noted != kNoting) shared.slots[i].state.store(kFree);
  }
}

// --- handlers -------------------------------------------------------------------------------------------------------

inline void on_ask(int, siginfo_t*, void*) {
  const int saved = errno;
  const pid_t tid = own_tid();
  for (Slot& slot : shared.slots) {
    int asked = kAsked;
    if (slot.tid == tid && slot.state.compare_exchange_strong(asked, kNoting)) {
      note_stack(slot);
      slot.state.store(kNoted);
      break;
    }
  }
  errno = saved;
}

inline void on_request(int number, siginfo_t*, void*) {
  const int saved = errno;
  pid_t nobody = 0;
  if (shared.busy.compare_exchange_strong(nobody, own_tid())) {
    dump("request", number, 0, 0);
    shared.busy.store(0);
  }
  errno = saved;
}

constexpr std::uintptr_t kUnknownAddress = ~std::uintptr_t(0);

// SI_KERNEL (an address that is none, an instruction that is not allowed) comes without the address.
inline std::uintptr_t fault_address(int number, const siginfo_t* info, const void* context) {
  if (number == SIGABRT) return 0;
  if (info->si_code == SI_KERNEL) return kUnknownAddress;
  if (info->si_code > 0) return reinterpret_cast<std::uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  // Raised again by another handler (faulthandler): the kernel still has the address of the thread's last page fault.
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  if (registers[REG_TRAPNO] == 14) return static_cast<std::uintptr_t>(registers[REG_CR2]);
#endif
  (void)context;
  return kUnknownAddress;
}

inline std::uintptr_t caller_of(const siginfo_t* info, const void* context) {
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto target = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (info->si_code > 0 && reinterpret_cast<std::uintptr_t>(info->si_addr) == target) {
    return *reinterpret_cast<const std::uintptr_t*>(registers[REG_RSP]);
  }
#endif
  (void)info;
  (void)context;
  return 0;
}

inline void leave_by(int number, const siginfo_t* info) {
  const auto& before = shared.previous[number];
  const bool default_action =
      !(before.sa_flags & SA_SIGINFO) && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN);
  struct sigaction fall_back {};
  fall_back.sa_handler = SIG_DFL;
  sigaction(number, default_action ? &fall_back : &shared.previous[number], nullptr);
  shared.previous[number] = fall_back;  // should the signal come here a second time
  if (!default_action && info->si_code > 0) return;  // the instruction faults again, for the previous handler
  syscall(SYS_tgkill, getpid(), own_tid(), number);  // delivered when this handler returns
}

inline void on_fatal(int number, siginfo_t* info, void* context) {
  const pid_t tid = own_tid();
  for (Slot& slot : shared.slots) {
    if (slot.tid == tid && slot.walking.load()) siglongjmp(slot.escape, 1);
  }
  pid_t none = 0;
  if (shared.crashing.compare_exchange_strong(none, tid)) {
    const std::int64_t limit = now_ns() + kOtherCrashNs;
    pid_t writer = 0;
    while (!shared.busy.compare_exchange_strong(writer, tid) && writer != tid && now_ns() < limit) {
      writer = 0;
      nap(1000000);
    }
    shared.length = 0;
    dump("crash", number, fault_address(number, info, context), caller_of(info, context));
  } else if (none != tid) {
    const std::int64_t limit = now_ns() + kOtherCrashNs;  // another thread was first, and ends the process
    while (now_ns() < limit) nap(10000000);
  }
  leave_by(number, info);
}

inline void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, &shared.previous[number]);
}

}  // namespace detail

// Gives this thread a stack for signal handlers, so that the overflow of its own stack can be reported; null where it
// has one already or there is no memory. Python's faulthandler does the same, for the main thread alone.
inline void* take_alternate_stack() {
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return nullptr;
  void* memory =
      mmap(nullptr, detail::kAlternateStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  stack_t wanted{};
  wanted.ss_sp = memory;
  wanted.ss_size = detail::kAlternateStack;
  sigaltstack(&wanted, nullptr);
  return memory;
}

// The same for as long as this object lives, in the thread that made it.
class ThreadGuard {
 public:
  ThreadGuard() : memory_(take_alternate_stack()) {}
  ~ThreadGuard() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    if (memory_ != nullptr && sigaltstack(&none, nullptr) == 0) munmap(memory_, detail::kAlternateStack);
  }
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;

 private:
  void* memory_;
};

// Appends dumps to the file ``stacks_path`` from now on: on ``request_signal``, and on fatal signals. The first call
// of a process (or of the parent that forked it) installs the handlers; later ones change the file only. The calling
// thread gets an alternate stack. Returns false where the file cannot be opened; then nothing is installed.
inline bool install(const char* stacks_path, int request_signal = SIGUSR1) {
  using namespace detail;
  int file = open(stacks_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool first = shared.file < 0;
  if (!first) close(shared.file);
  shared.file = file;
  if (first) {
    shared.slots[0].tid = own_tid();
    note_stack(shared.slots[0]);  // the unwinder loads what it needs now, not in a handler
    shared.slots[0].total = 0;
    take_alternate_stack();
    shared.request = request_signal;
    handle(ask_signal(), on_ask, SA_RESTART);
    handle(request_signal, on_request, SA_RESTART);
    for (int number : kFatal) handle(number, on_fatal, SA_NODEFER);  // for a fault while the stack is walked
  }
  put("== gate stacks armed ");
  put(signal_name(shared.request));
  put(" pid ");
  put_number(std::uint64_t(getpid()));
  put("\n");
  flush();
  return true;
}

}  // namespace gate::stacks
