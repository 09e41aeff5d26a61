# mypy: ignore-errors
"""Plain torch: what loading an archive and calling each of some operators prints, on stderr below ``== NAME``."""

import io
import sys
import warnings

warnings.simplefilter("always")

import torch

torch.set_warn_always(True)


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


eye, ones = torch.eye(3), torch.ones(3)
CALLS = {
    "aten::_aminmax": lambda f: f(ones),
    "aten::_lu_with_info": lambda f: f(eye),
    "aten::chain_matmul": lambda f: f([eye, eye]),
    "aten::cholesky": lambda f: f(eye),
    "aten::fbgemm_linear_quantize_weight": lambda f: f(eye),
    "aten::fbgemm_pack_gemm_matrix_fp16": lambda f: f(eye),
    "aten::fbgemm_pack_quantized_matrix": lambda f: f(torch.ones(4, 4, dtype=torch.int8)),
    "aten::frobenius_norm": lambda f: f(eye, [0, 1]),
    "aten::lu_solve": lambda f: f(eye, *torch.linalg.lu_factor(eye)),
    "aten::nuclear_norm": lambda f: f(eye),
    "aten::qr": lambda f: f(eye),
    "aten::quantize_per_channel": lambda f: f(ones, ones, ones.long(), 0, torch.quint8),
    "aten::quantize_per_tensor": lambda f: f(ones, 0.1, 0, torch.quint8),
    "aten::triangular_solve": lambda f: f(eye, eye),
    "aten::relu": lambda f: f(eye),
}
EXIST = {str(schema).split("(")[0].split(".")[0] for schema in torch._C._jit_get_all_schemas()}
buffer = io.BytesIO()
torch.jit.save(torch.jit.trace(Double(), ones), buffer)
buffer.seek(0)
print("== load", file=sys.stderr, flush=True)
torch.jit.load(buffer)
for name, call in CALLS.items():
    print("== " + name, file=sys.stderr, flush=True)
    if name in EXIST:
        call(torch._C._jit_get_operation(name)[0])
    else:
        print("GONE", file=sys.stderr, flush=True)
