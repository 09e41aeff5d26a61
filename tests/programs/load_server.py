"""A server of HTTP/1.1 with four workers that sleep as a model computes; planted to be slower in one way.

``load_server.py PORT KIND``: ``same``; ``tail``: 1 request of 100 takes 5 ms more; ``p99``: what takes longest, one in ten,
takes 10 % more; ``ceiling``: each takes 18 % more of a worker, which leaves 15 % fewer of them a second; ``errors``: 1 request
of 100 is answered 500; ``drops``: 1 of 100 is not answered.
"""

import random
import socketserver
import sys
import threading
import time

MEAN_S, SPREAD_S, REST_S = 7e-3, 5e-4, 1e-3
SLOWEST_S = 9.6e-3
"""Nine of ten requests take less."""
WORKERS = threading.Semaphore(4)


class Handler(socketserver.StreamRequestHandler):
    kind = "same"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        drawn = random.Random()
        while self.rfile.readline():
            length = 0
            while (header := self.rfile.readline().strip().lower()) != b"":
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            self.rfile.read(length)
            seconds = max(drawn.gauss(MEAN_S, SPREAD_S), 0.0) + drawn.expovariate(1 / REST_S)
            unlucky = drawn.random() < 0.01
            if self.kind == "tail" and unlucky:
                seconds += 5e-3
            elif self.kind == "p99" and seconds > SLOWEST_S:
                seconds *= 1.1
            elif self.kind == "ceiling":
                seconds *= 1.18
            with WORKERS:
                time.sleep(seconds)
            if self.kind == "drops" and unlucky:
                return
            status = b"500 Internal Server Error" if self.kind == "errors" and unlucky else b"200 OK"
            self.wfile.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\n{}")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True


if __name__ == "__main__":
    Handler.kind = sys.argv[2]
    with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        server.serve_forever()
