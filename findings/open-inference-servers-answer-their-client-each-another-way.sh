#!/usr/bin/env bash
# The two Open Inference (v2) servers of PyPI answer the protocol's own client differently: one request, four outcomes.
#
# Seen with kserve==0.21.0, mlserver==1.7.1, tritonclient==2.73.0 (numpy 2.4.6), Linux x86-64, CPython 3.11. A model that
# returns its input, asked by tritonclient over HTTP with a vector of three, its bytes as they are or as JSON:
#     kserve     bytes  same                          JSON  400: a header that only bytes need is missing
#     mlserver   bytes  422: no JSON                  JSON  shape (3, 1) for (3,)
# and a model that answers [1, inf, -inf, nan], by JSON: both say [1.0,null,null,null] with status 200, so that a client
# reads NaN for all three, and an infinity that became NaN in a new release looks like one that stayed.
# kserve answers an empty tensor as bytes with 500 (a ValidationError of its own response), its neighbours with the tensor.
# Needs: uv, Python 3.11, a package index, about 500 MB and a minute. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
for name in kserve==0.21.0 mlserver==1.7.1; do
  uv venv -q --python 3.11 "$work/${name%%=*}"
  uv pip install -q --python "$work/${name%%=*}/bin/python" "$name" tritonclient[http]==2.73.0 numpy==2.4.6
done
ports=$("$work/kserve/bin/python" - <<'PY'
import socket
taken = [socket.socket() for _ in range(4)]
for each in taken:
    each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in taken))
PY
)
read -r kserve mlserver mlserver_grpc mlserver_metrics <<< "$ports"

cat > "$work/serve.py" <<'PY'
import sys
import numpy as np
from kserve import InferOutput, InferResponse, Model, ModelServer

class Served(Model):
    def __init__(self, name):
        super().__init__(name)
        self.ready = True

    def predict(self, request, headers=None, response_headers=None):
        outputs = []
        for tensor in request.inputs:
            array = tensor.as_numpy() if self.name == "echo" else np.array([1, np.inf, -np.inf, np.nan], np.float32)
            output = InferOutput(name=tensor.name, shape=list(array.shape), datatype=tensor.datatype)
            output.set_data_from_numpy(array, binary_data=self.name == "echo")
            outputs.append(output)
        return InferResponse(response_id="1", model_name=self.name, infer_outputs=outputs)

ModelServer(http_port=int(sys.argv[1]), enable_grpc=False).start([Served("echo"), Served("fixed")])
PY
"$work/kserve/bin/python" "$work/serve.py" "$kserve" > "$work/kserve.log" 2>&1 &
pids+=($!)

mkdir -p "$work/models/echo" "$work/models/fixed"
cat > "$work/models/runtimes.py" <<'PY'
import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Served(MLModel):
    async def load(self):
        return True

    async def predict(self, request):
        outputs = []
        for tensor in request.inputs:
            fixed = np.array([1, np.inf, -np.inf, np.nan], np.float32)
            array = NumpyCodec.decode_input(tensor) if self.name == "echo" else fixed
            outputs.append(NumpyCodec.encode_output(tensor.name, array))
        return InferenceResponse(model_name=self.name, outputs=outputs)
PY
for name in echo fixed; do
  echo "{\"name\": \"$name\", \"implementation\": \"runtimes.Served\"}" > "$work/models/$name/model-settings.json"
done
cat > "$work/models/settings.json" <<JSON
{"http_port": $mlserver, "grpc_port": $mlserver_grpc, "metrics_port": $mlserver_metrics, "parallel_workers": 0}
JSON
(cd "$work/models" && PYTHONPATH=. exec "$work/mlserver/bin/mlserver" start .) > "$work/mlserver.log" 2>&1 &
pids+=($!)

said=$("$work/kserve/bin/python" - "$kserve" "$mlserver" 2> "$work/client.log" <<'PY'
import http.client, json, sys, time
import numpy as np
import tritonclient.http as triton

def wait(port):
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/v2/models/fixed/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit("never ready")

def echo(port, array, binary):
    client = triton.InferenceServerClient(f"127.0.0.1:{port}")
    tensor = triton.InferInput("x", list(array.shape), "FP32")
    tensor.set_data_from_numpy(array, binary_data=binary)
    try:
        answer = client.infer("echo", [tensor]).as_numpy("x")
    except triton.InferenceServerException as error:
        return error.status()
    return "same" if answer.shape == array.shape and np.array_equal(answer, array) else f"shape {answer.shape}"

def fixed(port):
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.0]}]}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/v2/models/fixed/infer", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.dumps(json.loads(answer.read())["outputs"][0]["data"])

vector, empty = np.array([1, 2, 3], np.float32), np.zeros((0, 3), np.float32)
for name, port in (("kserve", int(sys.argv[1])), ("mlserver", int(sys.argv[2]))):
    wait(port)
    print(name, "bytes:", echo(port, vector, True), "JSON:", echo(port, vector, False), "infinite:", *fixed(port))
print("empty:", echo(int(sys.argv[1]), empty, True))
PY
)
echo "$said"
[ "$said" = "kserve bytes: same JSON: 400 infinite: 200 [1.0, null, null, null]
mlserver bytes: 422 JSON: shape (3, 1) infinite: 200 [1.0, null, null, null]
empty: 500" ]
