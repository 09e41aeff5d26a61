// The images of this process, read from memory without the dynamic loader's lock.
#pragma once

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "stacks/shared.hpp"
#include "stacks/text.hpp"

namespace gate::stacks::detail {

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

// How far the image's own addresses are from those in memory, and its program headers; false if there is none.
inline bool headers_of(std::uintptr_t base, std::uintptr_t* bias, ElfW(Phdr) * programs, int* count) {
  ElfW(Ehdr) header;
  if (base == 0 || !peek(&header, base, sizeof(header))) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
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
  const Module* module =
      std::upper_bound(begin, end, address, [](std::uintptr_t value, const Module& m) { return value < m.end; });
  return module != end && module->begin <= address ? module : nullptr;
}

template <class F>
void each_frame(const Slot& slot, F&& visit) {
  long head = std::min(slot.total, long(kHead));
  for (long i = 0; i < head; ++i) visit(i, slot.head[i]);
  for (long i = std::max(head, slot.total - kTail); i < slot.total; ++i) visit(i, slot.tail[i % kTail]);
}

}  // namespace gate::stacks::detail
