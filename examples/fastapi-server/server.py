"""A model server of the Open Inference protocol (v2) with FastAPI, for TorchScript files.

server.py PORT THREADS MODEL.pt ...
"""

import sys
from pathlib import Path

import torch
import uvicorn
from fastapi import FastAPI, HTTPException

DTYPES = {"FP32": torch.float32, "FP64": torch.float64, "INT64": torch.int64, "UINT8": torch.uint8}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
port, threads, *files = sys.argv[1:]
torch.set_num_threads(int(threads))
models = {file.stem: torch.jit.load(str(file)) for file in map(Path, files)}
app = FastAPI()


@app.get("/v2/health/ready")
def ready():
    return {"ready": True}


@app.post("/v2/models/{name}/infer")
def infer(name: str, request: dict):
    if name not in models:
        raise HTTPException(404, f"no model {name}")
    inputs = [
        torch.tensor(item["data"], dtype=DTYPES[item["datatype"]]).reshape(item["shape"]) for item in request["inputs"]
    ]
    try:
        with torch.inference_mode():
            answer = models[name](*inputs)
    except RuntimeError as error:
        raise HTTPException(400, str(error).strip().splitlines()[-1])
    tensors = answer if isinstance(answer, (list, tuple)) else [answer]
    outputs = [
        {
            "name": f"output__{at}",
            "datatype": NAMES[item.dtype],
            "shape": list(item.shape),
            "data": item.flatten().tolist(),
        }
        for at, item in enumerate(tensors)
    ]
    return {"model_name": name, "outputs": outputs}


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
