"""A server of the Open Inference protocol with torch and nothing else: ``PORT MODEL.pt...``; tensors are float32."""

import http.server
import json
import os
import sys
from typing import Any

import torch  # type: ignore[import-not-found]

torch.set_num_threads(1)
models = {os.path.basename(file).partition(".")[0]: torch.jit.load(file) for file in sys.argv[2:]}


class Handler(http.server.BaseHTTPRequestHandler):
    wbufsize = 1 << 16

    def do_GET(self) -> None:  # noqa: N802  the name that http.server calls
        self.answer({"ready": True})

    def do_POST(self) -> None:  # noqa: N802
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        inputs = [torch.tensor(item["data"]).reshape(item["shape"]) for item in asked["inputs"]]
        output = models[self.path.split("/")[3]](*inputs)
        data = {"name": "y", "datatype": "FP32", "shape": list(output.shape), "data": output.flatten().tolist()}
        self.answer({"outputs": [data]})

    def answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
