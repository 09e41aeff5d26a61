"""A server of the Open Inference protocol without torch, with the defect that it is asked for in the new release.

``planted_server.py PORT SIDE DEFECT``; the old side, and DEFECT ``healthy``, are the twin.
"""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, SIDE, DEFECT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
BOTH = DEFECT.startswith("both:")
DEFECT = DEFECT.removeprefix("both:") if BOTH or SIDE == "new" else "healthy"
AT = int(os.environ.get("AT", "50"))
leaked: list[bytes] = []
locked, count, active = threading.Lock(), 0, 0
counting = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(200, b"", "text/plain")

    def do_POST(self) -> None:
        global active
        active += 1
        try:
            self.infer()
        finally:
            active -= 1

    def infer(self) -> None:
        global count
        with counting:
            count += 1
            number = count
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        values = json.loads(body)["inputs"][0]["data"]
        answers = [2.0 * value + 1.0 for value in values]
        name = "scores"
        if DEFECT == "hangs" and number == AT:
            locked.acquire()
            locked.acquire()  # nobody releases it
        if DEFECT == "dies" and number == AT:
            print("terminate called after throwing an instance of 'c10::Error'", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if DEFECT == "one_differs" and number % 200 == 0:
            answers[0] += 0.01
        if DEFECT == "rounds":
            answers = [value * (1 + 1e-7) for value in answers]
        if DEFECT == "varies":
            answers[0] += time.monotonic()
        if DEFECT == "html":
            return self.answer(200, b"<html>Bad gateway</html>", "text/html")
        if DEFECT == "unauthorized":
            return self.answer(401, b'{"error": "token"}', "application/json")
        if DEFECT == "other_names":
            name = "output__0"
        if DEFECT == "leaks":
            leaked.append(os.urandom(1 << 20))
        if DEFECT == "slow_answers":
            time.sleep(60)
        if "slow" in self.path:
            time.sleep(0.06)
        outputs = [{"name": name, "datatype": "FP32", "shape": [len(answers)], "data": answers}]
        self.answer(200, json.dumps({"model_name": "m", "id": str(number), "outputs": outputs}).encode())

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        half = DEFECT == "half" and body
        self.send_header("content-length", str(len(body) * (2 if half else 1)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        if half:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if DEFECT == "exits":
    print("loading models", flush=True)
    sys.exit("error: unsupported operator aten::gone")
if DEFECT == "deadlocks":
    locked.acquire()
    locked.acquire()
if DEFECT == "never_ready":
    time.sleep(3600)
if DEFECT == "loads_slowly":
    time.sleep(1.5)
if DEFECT == "leaves_a_daemon" and os.fork() == 0:
    os.setsid()
    time.sleep(3600)
if DEFECT == "large":
    leaked.append(os.urandom(64 << 20))
server = Server(("127.0.0.1", PORT + (1 if DEFECT == "other_port" else 0)), Handler)


def stop(*_: object) -> None:
    if DEFECT == "drops":
        os._exit(0)
    if DEFECT == "ignores_stop":
        return
    if DEFECT == "dies_at_stop":
        os.kill(os.getpid(), signal.SIGSEGV)
    threading.Thread(target=server.shutdown).start()


signal.signal(signal.SIGTERM, stop)
print("serving", flush=True)
server.serve_forever(poll_interval=0.05)
end = time.monotonic() + 4
while active and time.monotonic() < end:
    time.sleep(0.02)
os._exit(0)
