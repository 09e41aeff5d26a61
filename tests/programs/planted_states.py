"""A Python process in a state of its own choice, for the tests of ``attach``: ``STATE PORT LIBRARY``.

``LIBRARY``: planted_states.cpp as a shared object. It prints "ready" once it is in the state.
"""

import asyncio
import atexit
import ctypes
import http.server
import itertools
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable

state, port, library = sys.argv[1], int(sys.argv[2]), sys.argv[3]
free, holding = ctypes.CDLL(library), ctypes.PyDLL(library)  # calls of the second keep the GIL


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802  the name that http.server calls
        if state == "unanswered" or self.path == "/waits":
            threading.Event().wait()
        if state == "timed":
            condition = threading.Condition()
            with condition:
                condition.wait(90)
        if state == "crossed":
            mine, other = locks if next(asked) % 2 else locks[::-1]
            with mine:
                time.sleep(0.8)  # until the other has its own
                with other:
                    pass
        end = time.perf_counter() + 0.004
        while time.perf_counter() < end:
            sum(range(200))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def thread(run: Callable[..., object], *arguments: object) -> None:
    threading.Thread(target=run, args=arguments, daemon=True).start()


def ready() -> None:
    print("ready", flush=True)


def serve() -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    jobs: queue.Queue[object] = queue.Queue()
    for _ in range(8):  # a pool that is idle
        thread(jobs.get)
    return server


def lock_twice() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def write_for_ever() -> None:
    file = os.open(f"disk-{os.getpid()}-{threading.get_ident()}", os.O_RDWR | os.O_CREAT, 0o600)
    os.unlink(f"disk-{os.getpid()}-{threading.get_ident()}")
    while True:
        os.pwrite(file, b"0" * 4096, 0)
        os.fsync(file)


async def serve_in_a_loop() -> None:
    """Serve as asyncio servers do, with a pool that has worked and is idle."""

    full = threading.Barrier(8)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if state == "push":
            writer.write(b"hello\r\n\r\n")
            await reader.read()
        words = await reader.readuntil(b"\r\n\r\n")
        if state == "long_poll":
            await asyncio.sleep(120)
        elif state == "executor":
            await asyncio.get_running_loop().run_in_executor(None, lock_twice)
        elif b"/waits" in words:
            await asyncio.get_running_loop().run_in_executor(None, full.wait)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.05) for _ in range(3)))
    async with await asyncio.start_server(handle, "127.0.0.1", port) as listening:
        await asyncio.sleep(0.1)
        ready()
        await listening.serve_forever()


def loop_in_python() -> None:
    while True:
        pass


if state in ("half_request", "long_poll", "push", "executor", "batch"):
    asyncio.run(serve_in_a_loop())
locks, asked = (threading.Lock(), threading.Lock()), itertools.count()
server = serve()
if state == "mutex":
    thread(free.hold_and_wait)
    time.sleep(0.1)
    for _ in range(3):
        thread(free.want)
elif state == "gil":  # one waits in C with the GIL in hand, for what a thread would give that wants the GIL
    print("ready", flush=True)
    time.sleep(0.1)
    thread(server.serve_forever)
    for _ in range(2):
        thread(loop_in_python)
    time.sleep(0.2)
    holding.wait_for_ever()
elif state == "kept_gil":  # it sleeps in C with the GIL in hand
    print("ready", flush=True)
    thread(server.serve_forever)
    time.sleep(0.2)
    holding.usleep(600_000_000)
elif state == "busy":
    thread(free.loop_for_ever)
elif state == "busy_python":
    thread(loop_in_python)
elif state == "compile":
    thread(free.compile_for_ever)
elif state == "disk":
    for _ in range(4):
        thread(write_for_ever)
elif state == "storm":
    for _ in range(64):
        thread(free.loop_for_ever)
elif state == "exit":
    atexit.register(free.wait_for_ever)
    atexit.register(ready)
    thread(server.serve_forever)
    sys.exit(0)
elif state == "zombie_leader":
    thread(server.serve_forever)
    time.sleep(0.2)
    ready()
    ctypes.CDLL(None).pthread_exit(None)
elif state == "prefork":
    thread(free.hold_and_wait)
    time.sleep(0.2)
    for index in range(3):
        if os.fork() == 0:
            if index == 0:
                free.want()
            server.serve_forever()
    ready()
    os.wait()
elif state == "all_wait":
    server.server_close()
    ready()
    lock_twice()
ready()
server.serve_forever()
