// The images of this process and the names of addresses in them, read from memory without the dynamic loader's lock.
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

struct Image {  // what is needed of an ELF file in memory
  std::uintptr_t bias = 0, symbols = 0, strings = 0, hash = 0;
};

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

}  // namespace gate::stacks::detail
