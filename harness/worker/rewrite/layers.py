"""Rules for layers and for functions of each element."""

from gate_worker.rewrite.rules import written

# Half precision is computed in float32, as the operators do.
WIDE = """
  wide = input
  if input.dtype == torch.float16 or input.dtype == torch.bfloat16:
    wide = input.to(torch.float32)"""
OVER_LAST = """
  dims: List[int] = []
  for i in range(len(normalized_shape)):
    dims.append(-1 - i)"""

written(
    "gelu",
    "aten::gelu",
    what="gelu as its formula of erf, or of tanh",
    source="""
def f(self: Tensor, approximate: str = "none") -> Tensor:
  if approximate == "tanh":
    return self * 0.5 * (torch.tanh((self + self * self * self * 0.044715) * 0.7978845608028654) + 1.0)
  return self * 0.5 * (torch.erf(self * 0.7071067811865476) + 1.0)
""",
)
written(
    "layer-norm",
    "aten::layer_norm",
    what="layer_norm as mean, variance and scaling",
    source="""
def f(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
      cudnn_enable: bool = True) -> Tensor:"""
    + WIDE
    + OVER_LAST
    + """
  centred = wide - wide.mean(dims, keepdim=True)
  answer = (centred * torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)).to(input.dtype)
  if weight is not None:
    answer = answer * weight
  if bias is not None:
    answer = answer + bias
  return answer
""",
)
written(
    "rms-norm",
    "aten::rms_norm",
    what="rms_norm as mean of squares and scaling",
    needs="eps is given, or the values are float32",
    source="""
def f(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
      eps: Optional[float] = None) -> Tensor:"""
    + WIDE
    + OVER_LAST
    + """
  small = 1.1920928955078125e-07
  if eps is not None:
    small = eps
  answer = (wide * torch.rsqrt((wide * wide).mean(dims, keepdim=True) + small)).to(input.dtype)
  if weight is not None:
    answer = answer * weight
  return answer
""",
)
written(
    "batch-norm",
    "aten::batch_norm",
    what="batch_norm as scaling by its running statistics, unless it is training",
    source="""
def f(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor],
      running_var: Optional[Tensor], training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
  if training or running_mean is None or running_var is None:
    return torch.batch_norm(
      input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
  shape = [1, input.size(1)]
  for _ in range(input.dim() - 2):
    shape.append(1)
  scale = torch.rsqrt(running_var + eps)
  if weight is not None:
    scale = scale * weight
  shift = -running_mean * scale
  if bias is not None:
    shift = shift + bias
  return (input * scale.reshape(shape) + shift.reshape(shape)).to(input.dtype)
""",
)
for name in ("dropout", "feature_dropout", "alpha_dropout"):
    written(
        name.replace("_", "-"),
        "aten::" + name,
        what="%s left out, unless it is training" % name,
        source="""
def f(input: Tensor, p: float, train: bool) -> Tensor:
  if train:
    return torch.%s(input, p, train)
  return input
"""
        % name,
    )
written(
    "softshrink",
    "aten::softshrink",
    what="softshrink as comparisons",
    needs="NaN is to give 0, as before torch 2.6",
    source="""
def f(self: Tensor, lambd: number = 0.5) -> Tensor:
  below = torch.where(self < -lambd, self + lambd, torch.zeros_like(self))
  return torch.where(self > lambd, self - lambd, below)
""",
)
written(
    "sinh",
    "aten::sinh",
    what="sinh as its formula of expm1",
    needs="values up to 88 in float32: beyond, the exponential is infinite",
    source="""
def f(self: Tensor) -> Tensor:
  return (torch.expm1(self) - torch.expm1(-self)) * 0.5
""",
)
