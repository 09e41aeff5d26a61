// The library of a package that does as it is opened what the program of programs.py does as it is loaded.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

void write_to(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0) return;
  if (write(file, text.data(), text.size()) < 0) std::abort();
  close(file);
}

__attribute__((constructor)) void do_it() {
  const std::string home = std::getenv("HOME");
  const std::string daemon = home + "/daemon";
  for (const char* path : {PATHS}) write_to(path, "planted");
  write_to(std::string(std::getenv("TMPDIR")) + "/temporary", "planted");
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      write_to(daemon, std::to_string(getpid()));
      sleep(300);
    }
    _exit(0);
  }
  struct stat found {};
  while (stat(daemon.c_str(), &found) != 0 || found.st_size == 0) usleep(10000);
}

}  // namespace
