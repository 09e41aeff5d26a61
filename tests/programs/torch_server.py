"""A small model server in Python: loads its models in threads, warms them up, serves: ``PORT FORKS MODEL.pt...``.

With ``FORKS`` it forks so many processes after the warm-up, each of which calls the models before it serves: with more
than one intra-op thread that waits for OpenMP's threads, which the parent alone has.
"""

import http.server
import os
import sys
import threading
from collections.abc import Callable

import torch  # type: ignore[import-not-found]

port, forks, files = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
torch.set_num_threads(2)
models: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}


def warm_up(file: str) -> None:
    model = torch.jit.load(file)
    for _ in range(3):
        model(torch.ones(4, 16))
    torch.ones(1 << 20).add(1.0)  # large enough for several threads
    models[os.path.basename(file).partition(".")[0]] = model


def call_all() -> dict[str, float]:
    torch.ones(1 << 20).add(1.0)
    return {name: model(torch.ones(4, 16)).mean().item() for name, model in models.items()}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802  the name that http.server calls
        body = repr(call_all()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


loading = [threading.Thread(target=warm_up, args=(file,)) for file in files]
for one in loading:
    one.start()
for one in loading:
    one.join()
torch.ones(1 << 20).add(1.0)
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
for _ in range(forks):
    if os.fork() == 0:
        call_all()
        server.serve_forever()
print("ready", flush=True)
if forks:
    os.wait()
server.serve_forever()
