// A process in a state of its own choice, for the tests of `attach`: ./planted_states STATE [PORT].
// As a library: `play` does the same within another program. It prints "ready" once it is in the state.
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {
std::mutex first, second;
std::condition_variable never;
sem_t nobody_posts;
volatile double sink;

void compute(double seconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 10000; ++i) sink = sink * 1.0000001 + 1.0;
}

// An endless loop in a kernel: it never looks up.
__attribute__((noinline)) void kernel_loop() {
  for (;;) sink = sink * 1.0000001 + 1.0;
}

void wait_forever() {
  std::mutex own;
  std::unique_lock<std::mutex> lock(own);
  never.wait(lock, [] { return false; });
}

struct Pool {  // idle threads that wait for work
  std::mutex mutex;
  std::condition_variable work;
  std::deque<int> connections;
  std::vector<std::thread> threads;

  explicit Pool(int count, std::function<void(int)> answer) {
    for (int i = 0; i < count; ++i)
      threads.emplace_back([this, answer] {
        for (;;) {
          std::unique_lock<std::mutex> lock(mutex);
          work.wait(lock, [this] { return !connections.empty(); });
          int connection = connections.front();
          connections.pop_front();
          lock.unlock();
          answer(connection);
        }
      });
  }
  void give(int connection) {
    std::lock_guard<std::mutex> lock(mutex);
    connections.push_back(connection);
    work.notify_one();
  }
};

int listen_on(int port) {
  int server = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) || listen(server, 64)) _exit(3);
  return server;
}

// Accepts for ever and hands connections to a pool, as servers do.
void serve(int server, Pool& pool) {
  int events = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = server;
  epoll_ctl(events, EPOLL_CTL_ADD, server, &event);
  for (;;) {
    epoll_event ready;
    if (epoll_wait(events, &ready, 1, -1) == 1) pool.give(accept(server, nullptr, nullptr));
  }
}

void answer(int connection, double seconds) {
  char request[1024];
  while (recv(connection, request, sizeof request, 0) > 0) {
    compute(seconds);
    if (send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 40, MSG_NOSIGNAL) < 0) break;
  }
  close(connection);
}

void ready() {
  std::puts("ready");
  std::fflush(stdout);
}

void threads(int count, std::function<void()> run) {
  for (int i = 0; i < count; ++i) std::thread(run).detach();
}

void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }
}  // namespace

namespace torch::jit {  // the name of the real function in which a slow compilation is seen
struct GraphExecutorImpl {
  __attribute__((noinline)) void compileSpec() { kernel_loop(); }
};
}  // namespace torch::jit

namespace {
void play_state(const std::string& state, int port) {
  std::thread acceptor;
  static Pool* pool = nullptr;
  auto served = [&](double seconds) {
    int server = listen_on(port);
    pool = new Pool(8, [seconds](int connection) { answer(connection, seconds); });
    std::thread([server] { serve(server, *pool); }).detach();
  };
  if (state == "mutex") {  // one holds it and waits for what nobody gives; others want it
    served(0.001);
    sem_init(&nobody_posts, 0, 0);
    std::thread([] { first.lock(); sem_wait(&nobody_posts); }).detach();
    settle();
    threads(3, [] { first.lock(); });
    settle(), ready(), wait_forever();
  } else if (state == "cycle") {
    served(0.001);
    std::thread([] { first.lock(); settle(); second.lock(); }).detach();
    std::thread([] { second.lock(); settle(); first.lock(); }).detach();
    settle(), settle(), ready(), wait_forever();
  } else if (state == "ended") {  // the holder has ended with the lock in hand
    served(0.001);
    std::thread([] { first.lock(); }).join();
    threads(1, [] { first.lock(); });
    settle(), ready(), wait_forever();
  } else if (state == "all_wait") {
    threads(4, wait_forever);
    settle(), ready(), wait_forever();
  } else if (state == "busy") {
    served(0.001);
    threads(1, kernel_loop);
    ready(), wait_forever();
  } else if (state == "compile") {
    served(0.001);
    threads(1, [] { torch::jit::GraphExecutorImpl().compileSpec(); });
    ready(), wait_forever();
  } else if (state == "disk") {
    served(0.001);
    for (int i = 0; i < 4; ++i)
      std::thread([i] {
        std::string name = "disk-" + std::to_string(getpid()) + "-" + std::to_string(i);
        int file = open(name.c_str(), O_RDWR | O_CREAT, 0600);
        unlink(name.c_str());
        char block[4096] = {};
        for (;;) {
          if (pwrite(file, block, sizeof block, 0) < 0) _exit(4);
          fsync(file);
        }
      }).detach();
    settle(), ready(), wait_forever();
  } else if (state == "vfork") {  // uninterruptible, until the child ends
    served(0.001);
    threads(1, [] {
      if (vfork() == 0) {
        timespec pause{60, 0};
        nanosleep(&pause, nullptr);
        _exit(0);
      }
    });
    settle(), ready(), wait_forever();
  } else if (state == "storm") {
    served(0.001);
    threads(64, kernel_loop);
    ready(), wait_forever();
  } else if (state == "exit") {
    served(0.001);
    std::atexit([] { ready(); wait_forever(); });
    std::exit(0);
  } else if (state == "zombie_leader") {
    served(0.001);
    settle(), ready();
    pthread_exit(nullptr);
  } else if (state == "zombie") {
    pid_t child = fork();
    if (child == 0) _exit(0);
    std::printf("%d ", child);
    settle(), ready(), pause();
  } else if (state == "prefork") {  // a child inherits a lock that a thread of its parent held
    std::thread([] { first.lock(); wait_forever(); }).detach();
    settle();
    int server = listen_on(port);
    for (int i = 0; i < 3; ++i)
      if (fork() == 0) {
        if (i == 0) first.lock();
        for (;;) answer(accept(server, nullptr, nullptr), 0.001);
      }
    settle(), ready();
    while (wait(nullptr) > 0) {
    }
  } else if (state == "unanswered") {  // the pool's only work waits for a condition
    int server = listen_on(port);
    pool = new Pool(8, [](int connection) { char byte; recv(connection, &byte, 1, 0); wait_forever(); });
    std::thread([server] { serve(server, *pool); }).detach();
    ready(), wait_forever();
  } else if (state == "served") {  // healthy: idle, or under the load that comes
    served(0.004);
    settle(), ready();
    std::this_thread::sleep_for(std::chrono::hours(24));
  } else if (state == "loop") {
    ready(), kernel_loop();
  } else {
    std::exit(2);
  }
}
}  // namespace

extern "C" void play(const char* state, int port) { play_state(state, port); }
extern "C" void hold_and_wait() { first.lock(); sem_init(&nobody_posts, 0, 0); sem_wait(&nobody_posts); }
extern "C" void want() { first.lock(); }
extern "C" void compile_for_ever() { torch::jit::GraphExecutorImpl().compileSpec(); }
extern "C" void loop_for_ever() { kernel_loop(); }
extern "C" void wait_for_ever() { wait_forever(); }

int main(int count, char** words) {
  if (count < 2) return 2;
  play_state(words[1], count > 2 ? std::atoi(words[2]) : 0);
  return 0;
}
