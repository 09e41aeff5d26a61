// Text without stdio: what is written to the file of the dumps, and lines read from /proc.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "stacks/shared.hpp"

namespace gate::stacks::detail {

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

inline void put(std::uint64_t value, unsigned base = 10, int width = 1) {
  char digits[24] = {};
  int at = sizeof(digits) - 1;
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
    --width;
  } while ((value || width > 0) && at > 0);
  put(digits + at);
}

inline void put(long value) { put(std::uint64_t(value)); }
inline void put(int value) { put(std::uint64_t(value)); }

struct Hex {
  std::uintptr_t value;
  int width = 1;
};

inline void put(Hex hex) {
  put("0x");
  put(hex.value, 16, hex.width);
}

template <typename... Parts>
void put_all(const Parts&... parts) {
  (put(parts), ...);
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

}  // namespace gate::stacks::detail
